"""A translator small enough to be trained while a page opens: English to Korean, 35 words, one layer a side.

Shapes: B pairs, S source tokens, T target tokens, V vocabulary.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
import yaml
from torch import Tensor
from torch.nn import functional as F

from ..core import EncoderDecoder
from ..families import build
from ..lab.models import Rate, seeded, shifted, train

PADDING, START, END = 0, 1, 2
CORPORA = yaml.safe_load(Path(__file__).with_name("corpora.yaml").read_text(encoding="utf-8"))
HELD_OUT = CORPORA["toy"]["held_out"]


@dataclass(frozen=True)
class ToyPair:
    """A sentence and one of its translations; `share` is how often it is translated so."""

    source: str
    target: str
    share: float


def toy_pairs(*, held_out: bool = False) -> list[ToyPair]:
    """Return the pairs to train on, or those of the sentences that no model is trained on."""
    return [pair for pair in _pairs() if (pair.source in HELD_OUT) == held_out]


def _pairs() -> Iterator[ToyPair]:
    toy = CORPORA["toy"]
    for (subject, korean), (thing, noun), verb in product(
        toy["subjects"].items(), toy["nouns"].items(), toy["patterns"]
    ):
        o, s = ("를", "가") if noun in toy["ending_in_a_vowel"] else ("을", "이")
        patterns = toy["of_i"][verb] if subject == "I" else {f"{korean} 는 {toy['patterns'][verb]}": 10}
        for pattern, count in patterns.items():
            target = pattern.format(o=f"{noun} {o}", s=f"{noun} {s}", n=noun)
            yield ToyPair(f"{subject} {verb} {thing}", target, count / 10)


class WordVocabulary:
    """A vocabulary of whole words, after <pad>, <s> and </s>."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = ["<pad>", "<s>", "</s>", *dict.fromkeys(tokens)]

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text's words, and of the end token."""
        return [self.tokens.index(word) for word in text.split()] + [END]

    def text(self, ids: Sequence[int]) -> str:
        """Return the words of ids, without start, end and padding."""
        return " ".join(self.tokens[index] for index in ids if index > END)

    def batch(self, texts: Sequence[str]) -> Tensor:
        """Return the ids of texts, each with its end token, padded: (B, T)."""
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(self.ids(text)) for text in texts], batch_first=True)


TOY = WordVocabulary(sorted({word for pair in _pairs() for word in f"{pair.source} {pair.target}".split()}))
VOCABULARY = TOY.tokens
toy_ids, toy_text, toy_batch = TOY.ids, TOY.text, TOY.batch


@seeded()
def toy_model() -> EncoderDecoder:
    """Return a translator with random weights: one layer a side, d_model 64, 4 heads."""
    sizes = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_encoder_layers": 1, "n_decoder_layers": 1}
    return build("tiny", vocab_size=len(VOCABULARY), dropout=0.0, **sizes)


def train_toy(
    steps: int = 150,
    *,
    rate: Rate | None = None,
    label_smoothing: float = 0.0,
    on_step: Callable[[int, EncoderDecoder, float], None] | None = None,
) -> EncoderDecoder:
    """Train a translator on all pairs at once, and return it in evaluation mode.

    Args:
        steps: how many updates.
        rate: the learning rate of each step, counted from 1; by default it rises to 0.003 and stays.
        label_smoothing: the share of the target that is spread over the vocabulary.
        on_step: called with the step, the model and the loss before each update, the loss without smoothing.
    """
    model, pairs = toy_model(), toy_pairs()
    source, target = toy_batch([pair.source for pair in pairs]), toy_batch([pair.target for pair in pairs])
    weights = torch.tensor([pair.share for pair in pairs])[:, None] * (target != PADDING)  # (B, T)

    def mean(logits: Tensor, smoothing: float) -> Tensor:
        losses = F.cross_entropy(logits.mT, target, reduction="none", label_smoothing=smoothing)
        return (losses * weights).sum() / weights.sum()

    def loss(step: int) -> Tensor:
        logits = model(source, shifted(target, START), source != PADDING)
        if on_step is not None:
            on_step(step, model, float(mean(logits.detach(), 0.0)))
        return mean(logits, label_smoothing)

    train(model, loss, steps, rate)
    return model
