"""The cases of exercises 7, 9, 10 and 11: residual wrappers, the greedy loop, the whole Transformer and its training.

Shapes: B batch, T target tokens, S source tokens, D d_model, V vocabulary.
"""

import copy
import warnings
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ... import core
from ...families import build
from ...generation import EncoderMemory, generate
from .cases import AnswerError, Case, call, exercise

START, END, PADDING, LIMIT = 1, 2, 0, 12
SYMBOLS, STEPS, WARMUP = 8, 200, 60
LAYERS = {"n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0.0}


@exercise(7)
def residual() -> Iterator[Case]:
    """Yield the outputs of PreNorm and PostNorm, and of a pre-norm Encoder with its final norm."""
    x, final = 3 * torch.randn(2, 3, 8) + 1, core.RMSNorm(8)
    parts, norms = [nn.Linear(8, 8) for _ in range(3)], [core.LayerNorm(8) for _ in range(3)]
    yield call("pre_norm", core.PreNorm(parts[0], norms[0])(x), x, parts[0], norms[0])
    yield call("post_norm", core.PostNorm(parts[0], norms[0])(x), x, parts[0], norms[0])
    stack = nn.Sequential(*map(core.PreNorm, parts, norms), final)
    yield call("pre_norm_stack", stack(x), x, parts, norms, final)


class DecodeRecorder:
    """A model that records, for each call of `decode`, the number of tokens, and which of the caches it got."""

    def __init__(self, model: core.EncoderDecoder) -> None:
        self.model = model
        self.calls: list[int] = []
        self.caches: list[Any] = []

    def decode(self, target: Tensor, memory: Tensor, *arguments: Any, **options: Any) -> Tensor:
        """Record a call and return the logits."""
        self.calls.append(target.shape[1])
        self.caches.append(options.get("cache", arguments[1] if len(arguments) > 1 else None))
        return self.model.decode(target, memory, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


@exercise(9)
@torch.no_grad()
def greedy() -> Iterator[Case]:
    """Yield the answers of heedful.generate: one that ends early, and one that reaches the limit.

    First come the tokens, then with how many tokens and how many caches the model was called.
    """
    for ends in (True, False):
        model, memory, tokens = _chatty_model(ends=ends)

        def run(module: ModuleType, model: Any = model, memory: Tensor = memory) -> Any:
            recorder = DecodeRecorder(model)
            tokens = [int(token) for token in module.greedy(recorder, memory, START, END, LIMIT)]
            caches = {id(cache) for cache in recorder.caches if cache is not None}
            return {"tokens": tokens, "calls": recorder.calls, "caches": len(caches)}

        record = {"tokens": tokens, "calls": [1] * min(len(tokens) + 1, LIMIT), "caches": 1}
        yield Case("greedy", run, record, {"limit": LIMIT, "end": END, "start": START})


@cache
def _chatty_model(*, ends: bool) -> tuple[core.EncoderDecoder, Tensor, list[int]]:
    """Return a random model, a memory, and its greedy answer: one that ends after some tokens, or one that does not."""
    for seed in range(1000):
        torch.manual_seed(seed)
        model = build("tiny", vocab_size=12, d_model=16, n_heads=2, d_ff=32, tied="none", **LAYERS).eval()
        for weight in model.parameters():
            weight.mul_(2)
        memory = torch.randn(1, 5, 16)
        (best, *_), *_ = generate(model, [EncoderMemory(memory[0])], beam=1, max_new_tokens=LIMIT, start=START, end=END)
        tokens = [token for token in best.tokens if token != END]
        if len(set(tokens)) > 3 and START not in tokens and (4 <= len(tokens) < 9 if ends else len(tokens) == LIMIT):
            return model, memory, tokens
    raise AssertionError("no seed gives such an answer")


@exercise(10)
@torch.no_grad()
def transformer() -> Iterator[Case]:
    """Yield the outputs of nn.Transformer and its parts in float64, with two layers a side and a padded source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nested tensors
        model = nn.Transformer(16, 2, 2, 2, 32, dropout=0.0, batch_first=True, dtype=torch.float64)
    for weight in model.parameters():
        weight.add_(0.2 * torch.randn_like(weight))
    source, target = torch.randn(2, 5, 16, dtype=torch.float64), torch.randn(2, 4, 16, dtype=torch.float64)
    real, causal = torch.arange(5) < torch.tensor([[5], [3]]), torch.ones(4, 4, dtype=torch.bool).tril()
    keep = real[:, None, None]  # (B, 1, 1, S)
    yield call("key_padding_mask", ~real, real)
    encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
    part: Any = decoder.multihead_attn
    yield call("attention", part(target, source, source, ~real)[0], part, target, source, keep)
    yield call("encoder_layer", encoder(source, src_key_padding_mask=~real), encoder, source, keep)
    output = decoder(target, source, tgt_mask=~causal, memory_key_padding_mask=~real)
    yield call("decoder_layer", output, decoder, target, source, causal, keep)
    padding = {"src_key_padding_mask": ~real, "memory_key_padding_mask": ~real}
    output = model(source, target, tgt_mask=~causal, **padding)
    yield call("transformer", output, model, source, target, real)


@exercise(11)
def training() -> Iterator[Case]:
    """Yield the parts of a training step, the weights after two steps, and a model that must learn to reverse."""
    target, logits = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]]), torch.randn(2, 4, 10)
    inputs = torch.tensor([[START, 5, 6, 7], [START, 9, 4, 0]])
    yield Case("shift", lambda module: module.shift(target, START)[0], inputs)
    yield Case("shift", lambda module: module.shift(target, START)[1], target)
    real = target != PADDING
    yield call("loss", F.cross_entropy(logits[real], target[real]), logits, target, PADDING)
    rates = torch.tensor([10 / 40**1.5 / 4, 160**-0.5 / 4])  # in the warm-up, and after it
    yield Case(
        "learning_rate", lambda module: torch.tensor([module.learning_rate(t, 16, 40) for t in (10, 160)]), rates
    )
    model, batches = _model(), [_batch(4), _batch(4)]

    def weights(module: ModuleType | None) -> Tensor:
        trained = copy.deepcopy(model)
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
        for source, target in batches:
            if module is not None:
                module.train_step(trained, optimizer, source, target, START, PADDING)
                continue
            logits = trained(source, F.pad(target[:, :-1], (1, 0), value=START))
            gradients = torch.autograd.grad(F.cross_entropy(logits.mT, target), list(trained.parameters()))
            for weight, gradient in zip(trained.parameters(), gradients, strict=True):
                weight.data -= 0.1 * gradient
        return nn.utils.parameters_to_vector(trained.parameters()).detach()

    yield Case("train_step", weights, weights(None))
    yield Case("train_step", _learns, True)


def _model() -> core.EncoderDecoder:
    torch.manual_seed(0)
    return build("tiny", vocab_size=SYMBOLS + 2, d_model=32, n_heads=4, d_ff=64, **LAYERS)


def _batch(size: int) -> tuple[Tensor, Tensor]:
    """Return four symbols in a random order, and reversed: (B, 4) each."""
    source = torch.randint(2, SYMBOLS + 2, (size, 4))
    return source, source.flip(1)


def _learns(module: ModuleType) -> bool:
    """Train a model; raise AnswerError if it predicts too few symbols, each from the right ones before it."""
    model = _model()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = module.learning_rate(step, 32, WARMUP)
        module.train_step(model, optimizer, *_batch(64), START, PADDING)
    source, target = _batch(200)
    logits = model.eval()(source, F.pad(target[:, :-1], (1, 0), value=START))
    accuracy = float((logits.argmax(dim=-1) == target).float().mean())
    if accuracy < 0.8:
        raise AnswerError("not-learned", accuracy=f"{100 * accuracy:.0f}", steps=STEPS)
    return True
