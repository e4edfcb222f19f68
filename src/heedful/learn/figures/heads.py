"""Figures of many heads: a small model is trained on the spot, its heads are drawn and switched off one by one.

Shapes: B batch, T tokens, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from ...core import (
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    PreNorm,
    Sinusoidal,
    TokenEmbedding,
)
from ...lens.document import n_parameters
from ...lens.recorder import record
from . import figure, rounded
from .small_training import train_small


@contextmanager
def heads_off(attention: MultiHeadAttention, heads: Sequence[int]) -> Iterator[None]:
    """Put zeros in the place of what these heads hand to the output projection."""

    def silence(_: nn.Module, args: tuple[Tensor]) -> Tensor:
        split = args[0].unflatten(-1, (attention.n_heads, -1)).clone()
        split[..., list(heads), :] = 0
        return split.flatten(-2)

    hook = attention.out_proj.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        hook.remove()


LETTERS = {"en": "ABCDEFGHIJKL", "ko": "가나다라마바사아자차카타"}
LENGTH, N_QUESTIONS = 8, 4  # which letter stands before, after, first and last


def letter_batch(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return rows of random letters (B, T), and the answers to the four questions at every place (B, T, 4)."""
    ids = torch.randint(len(LETTERS["en"]), (size, LENGTH), generator=generator)
    first, last = ids[:, :1].expand_as(ids), ids[:, -1:].expand_as(ids)
    return ids, torch.stack([ids.roll(1, 1), ids.roll(-1, 1), first, last], dim=-1)


class LetterModel(nn.Module):
    """One attention block that answers four questions about every letter of a row: (B, T) → (B, T, 4, V)."""

    def __init__(self, n_heads: int, d_model: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS["en"]), d_model)
        self.positions = nn.Parameter(torch.randn(LENGTH, d_model))
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.answers = nn.Linear(d_model, N_QUESTIONS * len(LETTERS["en"]))

    def forward(self, ids: Tensor) -> Tensor:
        mixed = self.attention(self.embedding(ids) + self.positions)
        answers: Tensor = self.answers(mixed).unflatten(-1, (N_QUESTIONS, -1))
        return answers


@cache
def letter_model(n_heads: int) -> LetterModel:
    """Return a model that was trained on rows of letters."""
    model = train_small(lambda: LetterModel(n_heads), letter_batch)
    assert isinstance(model, LetterModel)
    return model


@torch.no_grad()
def letter_scores(model: LetterModel, off: Sequence[int] = ()) -> list[float]:
    """Return the share of right answers to each question over new rows, with some heads switched off."""
    ids, answers = letter_batch(250, torch.Generator().manual_seed(1))
    with heads_off(model.attention, off):
        scores: list[float] = rounded((model(ids).argmax(dim=-1) == answers).float().mean(dim=(0, 1)))
        return scores


@figure("heads-at-work")
def heads_at_work(language: str) -> dict[str, Any]:
    """Return maps of four heads, and the scores of one and of every choice of the four: bit h means head h is on."""
    many, single = letter_model(4), letter_model(1)
    ids, _ = letter_batch(1, torch.Generator().manual_seed(2))
    with torch.no_grad(), record(many) as maps:
        many(ids)
    choices = [[head for head in range(4) if not switches >> head & 1] for switches in range(16)]
    return {
        "letters": [LETTERS[language][n] for n in ids[0]],
        "maps": rounded(maps.looks[0].weights[0]),
        "scores": [letter_scores(many, off) for off in choices],
        "single_scores": letter_scores(single),
        "parameters": [n_parameters(model.attention) for model in (many, single)],
    }


ANIMALS = ["animal", "dog", "cat", "horse", "child", "woman", "driver", "bird"]
PLACES = ["street", "road", "river", "bridge", "field", "lake", "path", "yard"]
OF_ANIMALS = ["tired", "old", "scared", "hungry", "sick", "lazy"]
OF_PLACES = ["wide", "long", "busy", "dark", "deep", "wet"]
FORM = "the {} did not cross the {} because it was too {}"
VOCABULARY = sorted({*FORM.replace("{}", "").split(), *ANIMALS, *PLACES, *OF_ANIMALS, *OF_PLACES})
SENTENCES = [
    (FORM.format(animal, place, word).split(), animal if word in OF_ANIMALS else place)
    for animal, place, word in product(ANIMALS, PLACES, OF_ANIMALS + OF_PLACES)
]
TRAINING = [(tokens, answer) for tokens, answer in SENTENCES if not {"animal", "street"} <= {*tokens}]
IT = FORM.split().index("it")


class PronounModel(nn.Module):
    """Two encoder layers of four heads; what *it* means is read off at *it*: (B, T) → (B, V)."""

    def __init__(self, d_model: int = 48) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(len(VOCABULARY), d_model)

        def wrap(sublayer: nn.Module) -> PreNorm:
            return PreNorm(sublayer, LayerNorm(d_model))

        self.attentions = [MultiHeadAttention(d_model, 4) for _ in range(2)]  # registered by the encoder
        layers = [EncoderLayer(wrap(part), wrap(FeedForward(d_model, 2 * d_model))) for part in self.attentions]
        self.encoder = Encoder(layers, positions=Sinusoidal(d_model), norm=LayerNorm(d_model))
        self.answer = nn.Linear(d_model, len(VOCABULARY))

    def forward(self, ids: Tensor) -> Tensor:
        x, _ = self.embedding(ids)
        answer: Tensor = self.answer(self.encoder(x)[:, IT])
        return answer


def token_ids(tokens: Sequence[str]) -> Tensor:
    """Return the ids of a sentence's words: (T,)."""
    return torch.tensor([VOCABULARY.index(word) for word in tokens])


@cache
def pronoun_model(seed: int) -> PronounModel:
    """Return a model that was trained on all sentences but those that name both the animal and the street."""
    sentences = torch.stack([token_ids(tokens) for tokens, _ in TRAINING])
    answers = token_ids([answer for _, answer in TRAINING])

    def batch(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(TRAINING), (size,), generator=generator)
        return sentences[rows], answers[rows]

    model = train_small(PronounModel, batch, rate=5e-3, seed=seed)
    assert isinstance(model, PronounModel)
    return model


@torch.no_grad()
def pronoun_readings(model: PronounModel, adjective: str) -> dict[str, Any]:
    """Return where *it* looks in each head, and the chances of the two answers, whole and without each head."""
    ids = token_ids(FORM.format("animal", "street", adjective).split())[None]
    nouns = token_ids(["animal", "street"])
    with record(model) as recording:
        whole = model(ids).softmax(dim=-1)[0, nouns]
    without = []
    for layer, head in product(range(2), range(4)):
        with heads_off(model.attentions[layer], [head]):
            without.append(model(ids).softmax(dim=-1)[0, nouns])
    weights = torch.cat([recording.encoder[layer][0, :, IT] for layer in range(2)])
    return {"weights": rounded(weights), "whole": rounded(whole), "without": rounded(torch.stack(without))}


@figure("what-it-refers-to")
def what_it_refers_to(language: str) -> dict[str, Any]:
    """Return the readings of *tired* and *wide* by two models that differ in their random start only."""
    adjectives = ["tired", "wide"]
    return {
        "words": FORM.format("animal", "street", "…").split(),
        "it": IT,
        "adjectives": adjectives,
        "models": [{word: pronoun_readings(pronoun_model(seed), word) for word in adjectives} for seed in (0, 2)],
    }
