"""The three architectures: encoder-decoder, encoder-only and decoder-only. They only connect parts.

Shapes: B batch, T target tokens, S source tokens, D d_model, V vocabulary.
"""

from torch import Tensor, nn

from .cache import Cache
from .masks import Padded
from .recurrent import RecurrentDecoder, RecurrentEncoder, RecurrentState
from .stacks import Decoder, Encoder

State = Cache | RecurrentState  # the state of a decoder between steps


class EncoderDecoder(nn.Module):
    """For translation and text-to-text: the decoder generates the target and attends to the encoded source.

    Encoder and decoder may be recurrent.
    """

    def __init__(
        self,
        *,
        source_embedding: nn.Module,
        encoder: Encoder | RecurrentEncoder,
        target_embedding: nn.Module,
        decoder: Decoder | RecurrentDecoder,
        head: nn.Module,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.encoder = encoder
        self.target_embedding = target_embedding
        self.decoder = decoder
        self.head = head

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_keep: Padded = None,
        target_keep: Padded = None,
    ) -> Tensor:
        """Return logits (B, T, V): entry t predicts the token after target[:, t]."""
        x, real = self.source_embedding(source, source_keep)
        return self.decode(target, self.encoder(x, real), real, keep=target_keep)

    def encode(self, source: Tensor, keep: Padded = None) -> Tensor:
        """Encode (B, S) to the memory (B, S, D). Its padding is that of the source, unless patches change it."""
        x, real = self.source_embedding(source, keep)
        return self.encoder(x, real)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        memory_keep: Padded = None,
        cache: State | None = None,
        *,
        keep: Padded = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return logits (B, T, V) for the target (B, T); with a cache, `target` holds only the new tokens.

        A cache belongs to one memory, whose keys and values are computed at the first step and reused afterwards.
        """
        x, real = self.target_embedding(target, keep)
        x = self.decoder(x, memory, keep=real, memory_keep=memory_keep, cache=cache, positions=positions)
        return self.head(x, real if cache is None else None)

    def new_cache(self, capacity: int | None = None) -> State:
        """Return an empty cache for `decode`: growing, or of a fixed capacity."""
        return self.decoder.new_cache(capacity)


class EncoderOnly(nn.Module):
    """For classification, masked language models, embeddings, images and series: an encoder and a head."""

    def __init__(self, *, embedding: nn.Module, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.encoder = encoder
        self.head = head

    def forward(
        self,
        inputs: Tensor,
        keep: Padded = None,
        *,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        places: Tensor | None = None,
    ) -> Tensor:
        """Return the output of the head, for the tokens at `places` (P,) only if given: indices into all B · T tokens.

        Masked language models need the logits of few tokens; computing all of them would be most of the work.
        """
        x, real = self.embedding(inputs, keep, segments=segments)
        hidden = self.encoder(x, real, positions=positions)
        return self.head(hidden, real) if places is None else self.head(hidden.flatten(0, 1).index_select(0, places))


class DecoderOnly(nn.Module):
    """For generation: each token is predicted from the tokens before it."""

    def __init__(self, *, embedding: nn.Module, decoder: Decoder, head: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.decoder = decoder
        self.head = head

    def forward(
        self,
        tokens: Tensor,
        keep: Padded = None,
        *,
        cache: Cache | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return logits (B, T, V); with a cache, `tokens` holds only the new tokens and `keep` covers all of them."""
        x, real = self.embedding(tokens, keep)
        x = self.decoder(x, keep=real, cache=cache, positions=positions)
        return self.head(x, real if cache is None else None)

    def new_cache(self, capacity: int | None = None) -> Cache:
        """Return an empty cache: growing, or of a fixed capacity."""
        return self.decoder.new_cache(capacity)
