"""Three wirings of the same parts. Nothing is computed here.

Shapes: B batch, T target tokens, S source tokens, D d_model, V vocabulary.
"""

from torch import Tensor, nn

from .cache import Cache
from .masks import Padded
from .recurrent import RecurrentDecoder, RecurrentEncoder, RecurrentState
from .stacks import Decoder, Encoder

State = Cache | RecurrentState  # what a decoder keeps from step to step


class EncoderDecoder(nn.Module):
    """Translation and text-to-text: the encoder reads the source, the decoder writes while looking at it.

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
        """Logits (B, T, V) for the token after each of `target`."""
        x, real = self.source_embedding(source, source_keep)
        return self.decode(target, self.encoder(x, real), real, keep=target_keep)

    def encode(self, source: Tensor, keep: Padded = None) -> Tensor:
        """(B, S) → memory (B, S, D). Its padding is the source's, unless the source is cut into patches."""
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
        """(B, T) → logits (B, T, V); with a cache, `target` holds only the new tokens.

        A cache serves one memory: its keys and values are computed at the first step and read from then on.
        """
        x, real = self.target_embedding(target, keep)
        x = self.decoder(x, memory, keep=real, memory_keep=memory_keep, cache=cache, positions=positions)
        return self.head(x, real if cache is None else None)

    def new_cache(self, capacity: int | None = None) -> State:
        """An empty cache for `decode`: growing, or of a fixed capacity."""
        return self.decoder.new_cache(capacity)


class EncoderOnly(nn.Module):
    """Classification, masked words, embedding, images, series: what the head makes of the encoder's output."""

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
        """What the head says of each row, or with `places` (P,), indexes into all B · T tokens, of those tokens alone:
        where a few are asked about, a vocabulary's logits for all would be most of the work."""
        x, real = self.embedding(inputs, keep, segments=segments)
        hidden = self.encoder(x, real, positions=positions)
        return self.head(hidden, real) if places is None else self.head(hidden.flatten(0, 1).index_select(0, places))


class DecoderOnly(nn.Module):
    """Generation: each token is predicted from those before it."""

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
        """(B, T) → logits (B, T, V); with a cache, `tokens` holds only the new ones and `keep` covers all."""
        x, real = self.embedding(tokens, keep)
        x = self.decoder(x, keep=real, cache=cache, positions=positions)
        return self.head(x, real if cache is None else None)

    def new_cache(self, capacity: int | None = None) -> Cache:
        """An empty cache: growing, or of a fixed capacity."""
        return self.decoder.new_cache(capacity)
