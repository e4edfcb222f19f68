"""Our search over transformers' models, against their own generate, token for token.

The models run through our protocol, uncached: what is compared is the search, the batching and the counting.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.core import padding
from heedful.core.cache import State
from heedful.generation import generate

transformers = pytest.importorskip("transformers")

V, START, END, PAD = 31, 1, 2, 0
INPUTS = [[5, 9, 30, 2], [7, 2], [4, 4, 8, 21, 17, 11, 2], [12, 6, 2], [3, 29, 2]]


class Written:
    """A cache that holds tokens."""

    def __init__(self) -> None:
        self.tokens: Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.tokens is None else self.tokens.shape[1]

    def append(self, tokens: Tensor) -> Tensor:
        self.tokens = tokens if self.tokens is None else torch.cat([self.tokens, tokens], dim=1)
        return self.tokens

    def reorder(self, rows: Tensor) -> None:
        assert self.tokens is not None
        self.tokens = self.tokens[rows]

    def select(self, rows: Tensor, memory_rows: Tensor | None = None) -> None:
        self.reorder(rows)


def ones(keep: Any, x: Tensor) -> Tensor:
    """Our padding as theirs: (B, T) of ones and zeros."""
    rows, length = x.shape[:2]
    return keep.tensor(1, length).reshape(-1, length).expand(rows, length).long()


class Translator(nn.Module):
    """Marian as an encoder-decoder of ours."""

    def __init__(self, theirs: Any) -> None:
        super().__init__()
        self.theirs = theirs

    def encode(self, source: Tensor, keep: Any) -> Tensor:
        return self.theirs.model.encoder(input_ids=source, attention_mask=ones(keep, source)).last_hidden_state

    def decode(self, target: Tensor, memory: Tensor, memory_keep: Any, cache: Written) -> Tensor:
        tokens = cache.append(target)
        beams = len(tokens) // len(memory)
        return self.theirs(
            decoder_input_ids=tokens,
            encoder_outputs=(memory.repeat_interleave(beams, dim=0),),
            attention_mask=ones(memory_keep, memory).repeat_interleave(beams, dim=0),
            use_cache=False,
        ).logits

    def new_cache(self) -> State:
        return Written()


class LanguageModel(nn.Module):
    """GPT-2 as a decoder of ours."""

    def __init__(self, theirs: Any) -> None:
        super().__init__()
        self.theirs = theirs

    def forward(self, tokens: Tensor, keep: Tensor | None, *, cache: Written) -> Tensor:
        tokens = cache.append(tokens)
        real = torch.ones_like(tokens) if keep is None else keep.long()
        positions = (real.cumsum(dim=1) - 1).clamp(min=0)
        return self.theirs(input_ids=tokens, attention_mask=real, position_ids=positions, use_cache=False).logits

    def new_cache(self) -> State:
        return Written()


def marian() -> Any:
    config = transformers.MarianConfig(
        vocab_size=V,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
        tie_word_embeddings=False,
    )
    model = transformers.MarianMTModel(config)
    model.final_logits_bias[0, END] = 1.0  # so that some answers end
    return shaken(model)


def gpt2() -> Any:
    config = transformers.GPT2Config(
        vocab_size=V,
        n_positions=64,
        n_embd=16,
        n_layer=2,
        n_head=4,
        tie_word_embeddings=False,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
    )
    return shaken(transformers.GPT2LMHeadModel(config))


def shaken(model: Any) -> Any:
    """As they start, matrices are so small that all tokens are about as likely, whatever came before."""
    for parameter in model.parameters():
        if parameter.dim() > 1 and parameter.requires_grad:  # Marian's sinusoids need no gradient
            nn.init.normal_(parameter, std=0.5)
    return model.double().eval()


def theirs_of(model: Any, ids: list[int], **settings: Any) -> list[tuple[tuple[int, ...], bool]]:
    """Their answers to one input: tokens up to the end, and whether there is one."""
    beams = settings["num_beams"]
    out = model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        do_sample=False,
        num_return_sequences=beams,
        **settings,
    )
    written = out[:, 1:] if model.config.is_encoder_decoder else out[:, len(ids) :]
    answers = []
    for row in written.tolist():
        finished = END in row
        answers.append((tuple(row[: row.index(END)]) if finished else tuple(row), finished))
    return answers


MODELS = {"marian": (marian, Translator), "gpt2": (gpt2, LanguageModel)}


@pytest.mark.parametrize(
    ("beam", "alpha", "shortest"), [(1, 1.0, 0), (4, 1.0, 0), (4, 0.0, 0), (4, -0.5, 3), (4, 2.0, 3)]
)
@pytest.mark.parametrize("name", MODELS)
def test_answers_equal_theirs(name: str, beam: int, alpha: float, shortest: int) -> None:
    build, wrap = MODELS[name]
    kinds = set()
    for seed in range(3):
        torch.manual_seed(seed)
        theirs = build()
        answers = generate(
            wrap(theirs),
            INPUTS,
            beam=beam,
            n_best=beam,
            length_penalty=alpha,
            max_new_tokens=8,
            min_new_tokens=shortest,
            start=START,
            end=END,
        )
        settings: dict[str, Any] = {"num_beams": beam, "max_new_tokens": 8, "min_new_tokens": shortest}
        if beam > 1:
            settings |= {"early_stopping": "never", "length_penalty": alpha}
        for ids, ours in zip(INPUTS, answers, strict=True):
            wanted = theirs_of(theirs, ids, **settings)
            assert [(answer.tokens, answer.finished) for answer in ours] == wanted
            kinds |= {finished for _, finished in wanted}
    assert kinds == {True, False}  # ends and limits were both met


def test_the_wrapped_padding_means_what_theirs_means() -> None:
    """The comparison would be empty if the adapter lost its padding."""
    model = Translator(marian())
    alone = model.encode(torch.tensor([[5, 9, 2]]), padding([3]))
    padded = model.encode(torch.tensor([[5, 9, 2, 0, 0], [5, 9, 2, 6, 7]]), padding([3, 5]))
    torch.testing.assert_close(padded[0, :3], alone[0], rtol=1e-4, atol=1e-5)
    assert (padded[1, :3] - alone[0]).abs().max() > 1e-2
