"""Figures of the three generations of translators, each trained on the same sentences: chapters 1 and 4.

The weights are in generations.safetensors; `python -m heedful.learn.figures.generations` trains them again.
Shapes: B batch, S source tokens, T target tokens, H heads.
"""

import random
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from ...core import EncoderDecoder
from ...families.registry import build

WEIGHTS = Path(__file__).with_name("generations.safetensors")
PAD, START, END = 0, 1, 2
SUBJECTS = {"I": "나는", "you": "너는", "we": "우리는", "they": "그들은"}
VERBS = {"love": "사랑", "like": "좋아", "study": "공부", "hate": "싫어", "understand": "이해", "explain": "설명"}
OBJECTS = {
    "deep learning": "딥러닝 을",
    "the Transformer": "트랜스포머 를",
    "attention": "어텐션 을",
    "math": "수학 을",
    "music": "음악 을",
    "poetry": "시 를",
    "machine translation": "기계 번역 을",
    "the paper": "논문 을",
}
HELD_OUT = ("I", "love", "deep learning"), ("I", "study", "the Transformer")  # never in a training sentence
MOST_CLAUSES = 4
CONFIGS: dict[str, dict[str, Any]] = {
    "vector": {"family": "recurrent", "attention": "none"},
    "additive": {"family": "recurrent", "attention": "additive"},
    "transformer": {
        "family": "original", "norm": "pre", "n_heads": 4, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1,
    },
}  # fmt: skip
Clause = tuple[str, str, str]


def sentence_pair(clauses: list[Clause]) -> tuple[list[str], list[str]]:
    """Return the English and the Korean tokens of clauses (subject, verb, object)."""
    english = " and ".join(" ".join(clause) for clause in clauses)
    endings = ["하고"] * (len(clauses) - 1) + ["한다"]
    korean = [
        f"{SUBJECTS[subject]} {OBJECTS[thing]} {VERBS[verb]}{ending}"
        for (subject, verb, thing), ending in zip(clauses, endings, strict=True)
    ]
    return english.split(), " ".join(korean).split()


@cache
def vocabularies() -> tuple[list[str], list[str]]:
    """Return all English and all Korean tokens in the order of their ids."""
    english = " ".join([*SUBJECTS, *VERBS, *OBJECTS, "and"]).split()
    korean = " ".join(
        [*SUBJECTS.values(), *OBJECTS.values(), *(v + e for v in VERBS.values() for e in ("하고", "한다"))]
    )
    first = ["<pad>", "<s>", "</s>"]
    return first + list(dict.fromkeys(english)), first + list(dict.fromkeys(korean.split()))


def sample(seed: int, n_clauses: int, count: int) -> list[list[Clause]]:
    """Draw sentences without the held-out clauses."""
    draw = random.Random(seed)

    def clause() -> Clause:
        drawn = draw.choice([*SUBJECTS]), draw.choice([*VERBS]), draw.choice([*OBJECTS])
        return clause() if drawn in HELD_OUT else drawn

    return [[clause() for _ in range(n_clauses)] for _ in range(count)]


def encode(sentences: list[list[Clause]]) -> tuple[Tensor, Tensor]:
    """Return the ids of both sides, padded: (B, S) with </s>, and (B, T) with <s> and </s>."""
    tables = [{token: n for n, token in enumerate(tokens)} for tokens in vocabularies()]
    rows = [
        [[table[token] for token in side] for table, side in zip(tables, sentence_pair(sentence), strict=True)]
        for sentence in sentences
    ]
    source = [torch.tensor([*english, END]) for english, _ in rows]
    target = [torch.tensor([START, *korean, END]) for _, korean in rows]
    return tuple(torch.nn.utils.rnn.pad_sequence(side, batch_first=True) for side in (source, target))  # type: ignore[return-value]


def new_model(name: str) -> EncoderDecoder:
    """Build a model with new weights: "vector", "additive" or "transformer"."""
    english, korean = map(len, vocabularies())
    sizes = {"vocab_size": english, "target_vocab_size": korean, "tied": "output", "d_model": 32, "dropout": 0.0}
    model = build({**CONFIGS[name], **sizes})
    assert isinstance(model, EncoderDecoder)
    return model


@cache
def trained_model(name: str) -> EncoderDecoder:
    """Load a trained model."""
    model = new_model(name)
    weights = load_file(WEIGHTS)
    model.load_state_dict(
        {key.removeprefix(f"{name}."): value.float() for key, value in weights.items() if key.startswith(f"{name}.")}
    )
    return model.eval()


def teacher_forced(model: EncoderDecoder, source: Tensor, target: Tensor) -> Tensor:
    """Return the logits (B, T - 1, V) of all target tokens after the first, each given those before it."""
    logits: Tensor = model(source, target[:, :-1], source_keep=source != PAD)
    return logits


def exact(model: EncoderDecoder, sentences: list[list[Clause]]) -> list[bool]:
    """Return for each sentence whether greedy decoding writes exactly its translation.

    It does if and only if every token is the most likely one after the right ones before it.
    """
    source, target = encode(sentences)
    with torch.no_grad():
        right = (teacher_forced(model, source, target).argmax(-1) == target[:, 1:]) | (target[:, 1:] == PAD)
    return right.all(dim=1).tolist()


def train(name: str, *, steps: int = 1600, batch: int = 64, rate: float = 4e-3) -> EncoderDecoder:
    """Train a model on sentences of one to four clauses."""
    torch.manual_seed(0)
    model = new_model(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        source, target = encode(sample(step, step % MOST_CLAUSES + 1, batch))
        logits = teacher_forced(model, source, target)
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


def main() -> None:
    """Train all three models and write their weights in half precision."""
    weights = {f"{name}.{key}": value.half() for name in CONFIGS for key, value in train(name).state_dict().items()}
    save_file(weights, WEIGHTS)


if __name__ == "__main__":
    main()
