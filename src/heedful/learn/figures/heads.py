"""Figures of many heads: a small model is trained on the spot, its heads are drawn and switched off one by one.

Shapes: B batch, T tokens, V vocabulary.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...lab.models import BareSublayer, Reader, encoder, fall, seeded, train
from ...lens import ablate, record
from ...lens.document import n_parameters
from ..toy import CORPORA
from . import figure, rounded

STEPS, BATCH = 200, 16
LETTERS = {"en": "ABCDEFGHIJKL", "ko": "가나다라마바사아자차카타"}
LENGTH, N_QUESTIONS = 8, 4  # which letter stands before, after, first and last


def letter_batch(size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return rows of random letters (B, T), and the answers to the four questions at every place (B, T, 4)."""
    ids = torch.randint(len(LETTERS["en"]), (size, LENGTH), generator=generator)
    first, last = ids[:, :1].expand_as(ids), ids[:, -1:].expand_as(ids)
    return ids, torch.stack([ids.roll(1, 1), ids.roll(-1, 1), first, last], dim=-1)


def answers_of(model: Reader, ids: Tensor) -> Tensor:
    """Return the logits of the answers to the four questions: (B, T, 4, V)."""
    return model(ids).unflatten(-1, (N_QUESTIONS, -1))


@cache
@seeded()
def letter_model(n_heads: int) -> Reader:
    """Return one layer of attention alone, trained on rows of letters."""
    n_letters, draws = len(LETTERS["en"]), torch.Generator().manual_seed(0)
    bare: dict[str, Any] = {"residual": BareSublayer, "norm": nn.Identity, "has_feed_forward": False}
    model = Reader(n_letters, encoder(64, n_heads=n_heads, **bare), N_QUESTIONS * n_letters, 64)

    def loss(_: int) -> Tensor:
        ids, answers = letter_batch(BATCH, draws)
        return F.cross_entropy(answers_of(model, ids).flatten(0, -2), answers.flatten())

    train(model, loss, STEPS, fall(1e-2, STEPS))
    return model


@torch.no_grad()
def letter_scores(model: Reader, off: Sequence[int] = ()) -> list[float]:
    """Return the share of right answers to each question over new rows, with some heads switched off."""
    ids, answers = letter_batch(250, torch.Generator().manual_seed(1))
    with ablate(model, heads=[f"encoder.0.{head}" for head in off]):
        scores: list[float] = rounded((answers_of(model, ids).argmax(dim=-1) == answers).float().mean(dim=(0, 1)))
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
        "maps": rounded(maps.encoder[0][0]),
        "scores": [letter_scores(many, off) for off in choices],
        "single_scores": letter_scores(single),
        "parameters": [n_parameters(model.stack) for model in (many, single)],
    }


PRONOUNS = CORPORA["pronouns"]
FORM: str = PRONOUNS["form"]
ANIMALS, PLACES, OF_ANIMALS, OF_PLACES = (PRONOUNS[name] for name in ("animals", "places", "of_animals", "of_places"))
VOCABULARY = sorted({*FORM.replace("{}", "").split(), *ANIMALS, *PLACES, *OF_ANIMALS, *OF_PLACES})
SENTENCES = [
    (FORM.format(animal, place, reason).split(), animal if reason in OF_ANIMALS else place)
    for animal, place, reason in product(ANIMALS, PLACES, OF_ANIMALS + OF_PLACES)
]
TRAINING = [(tokens, answer) for tokens, answer in SENTENCES if not {"animal", "street"} <= {*tokens}]
IT = FORM.split().index("it")
SEEDS = (25, 5)  # of the two models


def token_ids(tokens: Sequence[str]) -> Tensor:
    """Return the ids of a sentence's words: (T,)."""
    return torch.tensor([VOCABULARY.index(word) for word in tokens])


@cache
def pronoun_model(seed: int) -> Reader:
    """Return two layers of four heads that say at *it* what it means: (B, T) → (B, V).

    They were trained on all sentences but those that name both the animal and the street.
    """
    sentences = torch.stack([token_ids(tokens) for tokens, _ in TRAINING])
    answers = token_ids([answer for _, answer in TRAINING])
    draws = torch.Generator().manual_seed(seed)
    with seeded(seed):
        model = Reader(len(VOCABULARY), encoder(48, 2), len(VOCABULARY), 48, at=IT)

    def loss(_: int) -> Tensor:
        rows = torch.randint(len(TRAINING), (BATCH,), generator=draws)
        return F.cross_entropy(model(sentences[rows]), answers[rows])

    train(model, loss, STEPS, fall(5e-3, STEPS))
    return model


@torch.no_grad()
def pronoun_readings(model: Reader, adjective: str) -> dict[str, Any]:
    """Return where *it* looks in each head, and the chances of the two answers, whole and without each head."""
    ids = token_ids(FORM.format("animal", "street", adjective).split())[None]
    nouns = token_ids(["animal", "street"])
    with record(model) as recording:
        whole = model(ids).softmax(dim=-1)[0, nouns]
    without = []
    for layer, head in product(range(2), range(4)):
        with ablate(model, heads=[f"encoder.{layer}.{head}"]):
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
        "models": [{word: pronoun_readings(pronoun_model(seed), word) for word in adjectives} for seed in SEEDS],
    }
