"""The cases of the exercises: calls of their functions whose right answers come from the real parts.

Shapes: B batch, H heads, Tq queries, Tk keys, T target tokens, S source tokens, K head width, D d_model, N samples.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ... import core
from ...families import build
from ...generation import EncoderMemory, generate
from ...lab.models import START, reversing_loss, symbols, teacher_forced_accuracy, transformer
from ..figures.models import torch_transformer
from ..figures.quiz import CLAIMS
from .answers import AnswerError, Case, variant

Cases = Callable[[], Iterator[Case]]
CASES: dict[int, Cases] = {}


def exercise(number: int) -> Callable[[Cases], Cases]:
    """Register a function that yields the cases of an exercise, from the simplest on."""

    def register(cases: Cases) -> Cases:
        CASES[number] = cases
        return cases

    return register


def call(function: str, expected: Any, *arguments: Any) -> Case:
    """Return the case of a function with these arguments."""
    return Case(function, lambda module: getattr(module, function)(*arguments), expected)


def entries(function: str, expected: Mapping[str, Any], measured: Mapping[str, Any] | None = None) -> Iterator[Case]:
    """Yield a case for each entry of the dictionary that a function without arguments returns."""

    def entry(module: ModuleType, name: str) -> Any:
        answers = getattr(module, function)()
        if not isinstance(answers, dict):
            raise AnswerError("type", function=function, type=type(answers).__name__, expected="dict")
        if name not in answers:
            raise AnswerError("missing-key", function=function, name=name)
        return answers[name]

    for name, value in expected.items():
        yield Case(function, partial(entry, name=name), value, {"name": name, "measured": (measured or {}).get(name)})


@exercise(0)
def order_the_blocks() -> Iterator[Case]:
    """Yield the order of the blocks in the paper's figure 1."""
    yield call("encoder_layer", variant(0).encoder_layer())
    yield call("decoder", variant(0).decoder())


@exercise(1)
def additive_scores() -> Iterator[Case]:
    """Yield scores of AdditiveAttention with equal widths, so that matrices in the wrong place do not crash."""
    part = core.AdditiveAttention(4, 4, 4)
    weights = (part.q_proj.weight.detach(), part.k_proj.weight.detach(), part.score.weight.detach()[0])
    s, h = torch.randn(2, 4), torch.randn(2, 3, 4)
    scores = part.score(torch.tanh(part.q_proj(s)[:, None] + part.k_proj(h))).squeeze(-1).detach()
    yield call("additive_scores", scores, s, h, *weights)


@exercise(2)
def predict_shapes() -> Iterator[Case]:
    """Yield the shapes of a sentence in the parts of the base model."""
    yield from entries("predict_shapes", variant(2).predict_shapes())


@exercise(3)
def position_table() -> Iterator[Case]:
    """Yield tables of even and odd width, and lists of tables in which the exponent of one is applied twice."""
    for length, d_model in ((6, 8), (6, 7), (20, 64)):
        yield call("position_table", core.Sinusoidal(d_model).table(length), length, d_model)
    for wrong in range(3):
        tables = [core.Sinusoidal(8).table(length) for length in (6, 12, 9)]
        angle = torch.arange(len(tables[wrong]))[:, None] / 10000 ** (torch.arange(0, 8, 2) / 4)
        tables[wrong] = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
        yield call("find_wrong_table", wrong, tables)


@exercise(4)
def attention_weights() -> Iterator[Case]:
    """Yield weights without a mask, with one, and with a query that may attend to no key."""
    query, key = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 3, 4)
    yield call("attention_weights", core.attention_weights(query, key), query, key)
    keep = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0]], dtype=torch.bool)[None, None]  # no row is all true or false
    blind = keep & torch.tensor([[1, 1, 1], [0, 1, 0]], dtype=torch.bool)[:, None, None]
    for mask in (keep, blind):
        yield call("attention_weights", core.attention_weights(query, key, keep=mask), query, key, mask)


def normal_sample(width: int) -> tuple[Tensor, Tensor]:
    """Return 400 queries (N, K), and 10 keys for each, (N, T, K), of normally distributed numbers."""
    generator = torch.Generator().manual_seed(width)
    return torch.randn(400, width, generator=generator), torch.randn(400, 10, width, generator=generator)


@exercise(5)
def saturation() -> Iterator[Case]:
    """Yield the mean of the largest weights, and the first width where it passes 0.9."""

    def largest(width: int, scale: float) -> float:
        query, key = normal_sample(width)
        weights = core.attention_weights(query[:, None, None], key[:, None], scale=scale)  # (N, 1, 1, T)
        return float(weights.max(dim=-1).values.mean())

    yield call("largest_weight", largest(16, 0.5), *normal_sample(16), 0.5)
    widths = [2**i for i in range(11)]
    first = next(width for width in widths if largest(width, 1.0) > 0.9)
    yield call("width_past", first, 0.9, widths, normal_sample)


@exercise(6)
def multi_head() -> Iterator[Case]:
    """Yield the output of MultiHeadAttention: 2 heads of width 4 over 3 tokens."""
    part = core.MultiHeadAttention(8, 2, bias=False).requires_grad_(False)
    x = torch.randn(2, 3, 8)
    matrices = (part.q_proj.weight, *part.kv_proj.weight.chunk(2), part.out_proj.weight)
    yield call("multi_head", part(x), x, *(weight.T for weight in matrices), 2)


@exercise(7)
def residual() -> Iterator[Case]:
    """Yield the outputs of PreNorm and PostNorm, and of a pre-norm Encoder with its final norm."""
    x, final = 3 * torch.randn(2, 3, 8) + 1, core.RMSNorm(8)
    parts, norms = [nn.Linear(8, 8) for _ in range(3)], [core.LayerNorm(8) for _ in range(3)]
    yield call("pre_norm", core.PreNorm(parts[0], norms[0])(x), x, parts[0], norms[0])
    yield call("post_norm", core.PostNorm(parts[0], norms[0])(x), x, parts[0], norms[0])
    stack = nn.Sequential(*map(core.PreNorm, parts, norms), final)
    yield call("pre_norm_stack", stack(x), x, parts, norms, final)


@exercise(8)
def masks() -> Iterator[Case]:
    """Yield masks of causal() and padding(): for 4 queries, for 2 after 3 cached keys, and for cross-attention."""
    lengths, padding = torch.tensor([3, 1, 4]), core.padding([3, 1, 4])
    yield call("causal_mask", core.causal().tensor(4), 4, 4)
    yield call("causal_mask", core.causal().tensor(2, 5), 2, 5)
    yield call("padding_mask", padding.tensor(1, 4), lengths, 4)
    yield call("decoder_mask", (core.causal() & padding).tensor(4), lengths, 4, 4)

    def cross_mask(module: ModuleType) -> Any:
        mask = module.cross_mask(lengths, torch.tensor([2, 4, 4]), 4, 4)
        return mask.expand(3, 1, 4, 4) if isinstance(mask, Tensor) and mask.shape == (3, 1, 1, 4) else mask

    yield Case("cross_mask", cross_mask, padding.tensor(4))


@exercise(9)
@torch.no_grad()
def greedy() -> Iterator[Case]:
    """Yield the answers of heedful.generate: of a model that ends its answer, and of one that does not.

    First come the tokens, then with how many tokens and how many caches the model was called.
    """
    start, end, limit = 1, 2, 12
    for seed in (35, 3):  # the first model writes </s> after six tokens, the second never
        torch.manual_seed(seed)
        sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 1}
        model = build("tiny", vocab_size=12, tied="none", dropout=0.0, **sizes).eval()
        for weight in model.parameters():
            weight.mul_(2)
        memory = torch.randn(1, 5, 16)
        (best, *_), *_ = generate(model, [EncoderMemory(memory[0])], beam=1, max_new_tokens=limit, start=start, end=end)
        tokens = [token for token in best.tokens if token != end]

        def run(module: ModuleType, model: Any = model, memory: Tensor = memory) -> Any:
            calls: list[tuple[int, Any]] = []  # the number of tokens, and the cache

            def record(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Any]) -> None:
                calls.append((args[0].shape[1], kwargs["cache"]))

            hook = model.decoder.register_forward_pre_hook(record, with_kwargs=True)
            try:
                written = [int(token) for token in module.greedy(model, memory, start, end, limit)]
            finally:
                hook.remove()
            caches = {id(cache) for _, cache in calls if cache is not None}
            return {"tokens": written, "calls": [n for n, _ in calls], "caches": len(caches)}

        expected = {"tokens": tokens, "calls": [1] * min(len(tokens) + 1, limit), "caches": 1}
        yield Case("greedy", run, expected, {"limit": limit, "end": end, "start": start})


@exercise(10)
@torch.no_grad()
def whole_transformer() -> Iterator[Case]:
    """Yield the outputs of nn.Transformer and its parts in float64, with two layers a side and a padded source."""
    model = torch_transformer()
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
    padding, logits = 0, torch.randn(2, 4, 10)
    inputs, target = torch.tensor([[1, 5, 6, 7], [1, 9, 4, 0]]), torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])
    yield Case("shift", lambda module: module.shift(target, 1)[0], inputs)
    yield Case("shift", lambda module: module.shift(target, 1)[1], target)
    real = target != padding
    yield call("loss", F.cross_entropy(logits[real], target[real]), logits, target, padding)
    rates = torch.tensor([10 / 40**1.5 / 4, 160**-0.5 / 4])  # in the warm-up, and after it
    yield Case(
        "learning_rate", lambda module: torch.tensor([module.learning_rate(t, 16, 40) for t in (10, 160)]), rates
    )
    draws = torch.Generator().manual_seed(0)
    model, sources = transformer(n_layers=1), [symbols(4, 4, draws) for _ in range(2)]

    def weights(module: ModuleType | None) -> Tensor:
        trained = copy.deepcopy(model)
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
        for source in sources:
            if module is not None:
                module.train_step(trained, optimizer, source, source.flip(1), START, -1)
                continue
            gradients = torch.autograd.grad(reversing_loss(trained, source), list(trained.parameters()))
            for weight, gradient in zip(trained.parameters(), gradients, strict=True):
                weight.data -= 0.1 * gradient
        return nn.utils.parameters_to_vector(trained.parameters()).detach()

    yield Case("train_step", weights, weights(None))
    yield Case("train_step", _learns, True)


def _learns(module: ModuleType, steps: int = 200) -> bool:
    """Train a model; raise AnswerError if it predicts too few symbols, each from the right ones before it."""
    model, draws = transformer(n_layers=1), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = module.learning_rate(step, 32, 60)
        source = symbols(64, 4, draws)
        module.train_step(model, optimizer, source, source.flip(1), START, -1)
    accuracy = teacher_forced_accuracy(model.eval(), symbols(200, 4, draws))
    if accuracy < 0.8:
        raise AnswerError("not-learned", accuracy=f"{100 * accuracy:.0f}", steps=steps)
    return True


@exercise(12)
def choose_wiring() -> Iterator[Case]:
    """Yield the wiring of the families that are built for each task, and numbers of patches."""
    yield from entries("choose_wiring", variant(12).choose_wiring())
    for length, patch, stride in ((30, 6, 3), (64, 16, 8), (31, 6, 4)):
        yield call("n_patches", torch.zeros(length).unfold(0, patch, stride).shape[0], length, patch, stride)


QUIZ = {  # the claims that chapter 13 measures: name, and which of its numbers is shown
    "a": ("feed-forward-share", "model"),
    "b": ("shift-is-linear", "error"),
    "c": ("big-negative-number", "common"),
    "e": ("memory-mask-is-causal", "change"),
    "f": ("scaled-variance", "scaled"),
    "h": ("neighbors-in-a-batch", "change"),
}


@exercise(13)
@torch.no_grad()
def true_or_false() -> Iterator[Case]:
    """Yield whether each claim holds, with the number that says so."""
    x, order, norm = torch.randn(1, 6, 16), torch.tensor([3, 1, 4, 0, 2, 5]), core.LayerNorm(16)
    layer = core.EncoderLayer(core.MultiHeadAttention(16, 2), core.FeedForward(16, 32))
    other = torch.cat([x[:, :1], 7 * x[:, 1:]], dim=1)  # differs in all tokens but the first
    changes = {"d": layer(x[:, order]) - layer(x)[:, order], "g": (norm(other) - norm(x))[:, 0]}
    measured = {claim: f"{change.abs().max():.2g}" for claim, change in changes.items()}
    measured |= {claim: CLAIMS[name][1]()[1][number] for claim, (name, number) in QUIZ.items()}
    yield from entries("answers", variant(13).answers(), measured)
