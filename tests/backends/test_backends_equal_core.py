"""Every backend beside the core: on every part and composition that it claims, and the core itself where it refuses.

The reference is the core in float64: for generation each row alone, without a cache and without padding. What needs a
GPU is compared on one in test_kernels_on_gpu.py; elsewhere its modules must be the core's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from every_model import ORIGINAL, SMALL, H, V, batch, randomised, sentences
from heedful import core
from heedful.backends import BACKENDS, IMPLEMENTATIONS, Reason, prepare, refusals, supports, use_backend
from heedful.backends.native.library import library
from heedful.backends.native.model import NativeModel
from heedful.backends.native.runner import NativeRunner
from heedful.backends.registry import ModuleImplementation
from heedful.backends.single_step import CudaGraphRunner, GraphProgram, GraphShape, SingleStepDecoder
from heedful.core.mask_preparation import prepare_mask
from heedful.core.masks import Grid
from heedful.generation import generate

POSITIONS = ("none", "sinusoidal", "learned", "relative", "rotary", "alibi")
COMPOSITIONS = [
    (*each, *pair)
    for index, each in enumerate(product(POSITIONS, ("pre", "post"), ("layer", "rms")))
    for pair in ([("plain", H), ("gated", H // 2)], [("plain", H // 2), ("gated", H)])[index % 3 % 2]
]
WIRINGS = ("encoder-decoder", "decoder")
START, WIDTH, STEPS = 1, 2, 4
LENGTHS = (5, 1, 8)


def composed(wiring: str, positions: str, norm: str, norm_kind: str, feed_forward: str, n_kv_heads: int) -> Any:
    settings = {"positions": positions, "norm": norm, "norm_kind": norm_kind, "feed_forward": feed_forward}
    parts: Any = heedful.build(ORIGINAL | SMALL | settings | {"n_kv_heads": n_kv_heads})
    if wiring == "encoder-decoder":
        return randomised(parts)
    decoder = core.Decoder(parts.encoder.layers, positions=parts.encoder.positions, norm=parts.encoder.norm)
    return randomised(core.DecoderOnly(embedding=parts.source_embedding, decoder=decoder, head=parts.head))


# ---- generation: rows of a batch that go on from each other ----


class Prefilled:
    """A cache after the first pass, which the core runs, with WIDTH rows for each sentence."""

    def __init__(self, model: Any, inputs: list[list[int]]) -> None:
        self.cache, self.memory_bias = model.new_cache(), None
        rows = torch.arange(len(inputs)).repeat_interleave(WIDTH)
        if hasattr(model, "encode"):
            tokens, keep = batch(inputs, "right")
            memory = model.encode(tokens, keep)
            model.decode(torch.full((len(inputs), 1), START), memory, keep, self.cache)
            self.memory_bias = torch.zeros(keep.shape).masked_fill(~keep, -torch.inf)[:, None, None]
            self.cache.reorder(rows)
            self.starts = [0] * len(rows)
        else:
            tokens, keep = batch(inputs, "left")
            model(tokens, keep, cache=self.cache)
            self.cache.select(rows)
            self.starts = [tokens.shape[1] - len(inputs[row]) for row in rows]


class SingleStep:
    """The step taken apart, over a cache that grows."""

    def __init__(self, model: Any, inputs: list[list[int]]) -> None:
        self.at, self.step_decoder = Prefilled(model, inputs), prepare(model).single_step

    def step(self, tokens: Tensor) -> Tensor:
        cache, starts = self.at.cache, torch.tensor(self.at.starts)
        real = torch.arange(cache.length + 1) >= starts[:, None] if any(self.at.starts) else None
        assert self.step_decoder is not None
        return self.step_decoder.step(tokens, cache, real, self.at.memory_bias)

    def reorder(self, rows: list[int], sentences: None) -> None:
        self.at.cache.reorder(torch.tensor(rows))
        self.at.starts = [self.at.starts[row] for row in rows]


def in_slots(model: Any, inputs: list[list[int]]) -> CudaGraphRunner:
    """The step of a CUDA graph as it is written: what would be captured."""
    at, step_decoder = Prefilled(model, inputs), prepare(model).single_step
    assert step_decoder is not None
    n_source = 0 if at.memory_bias is None else at.memory_bias.shape[-1]
    shape = GraphShape.of(len(inputs), WIDTH, at.cache.length + STEPS + 1, n_source)
    runner = CudaGraphRunner(GraphProgram(step_decoder, shape, at.cache))
    runner.extend(at)
    return runner


def in_c(model: Any, inputs: list[list[int]], bits: int = 32) -> NativeRunner:
    compiled = library()
    if compiled is None:
        pytest.skip("there are no layers in C here")
    runner = NativeRunner(NativeModel(deepcopy(model).float(), compiled, bits), inputs, START)
    runner.prefill()
    runner.reorder([row for row in range(len(inputs)) for _ in range(WIDTH)], None)
    return runner


RUNNERS: dict[str, tuple[Callable[..., Any], float]] = {
    "single_step": (SingleStep, 1e-9),
    "cuda_graph": (in_slots, 1e-9),
    "native": (in_c, 1e-5),
    "int8": (lambda model, inputs: in_c(model, inputs, 8), 0.3),
}


def alone(model: Any, ids: list[int], written: list[int]) -> Tensor:
    """Logits (V,) for the token after what was written, by the whole forward pass of this row."""
    if hasattr(model, "encode"):
        whole: Tensor = model(torch.tensor([ids]), torch.tensor([[START, *written]]))
    else:
        whole = model(torch.tensor([[*ids, *written]]))
    return whole[0, -1]


@torch.no_grad()
@pytest.mark.parametrize("backend", RUNNERS)
@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("composition", COMPOSITIONS, ids=str)
def test_steps_equal_the_forward_pass_of_each_row_alone(composition: Any, wiring: str, backend: str) -> None:
    model, inputs = composed(wiring, *composition), sentences(*LENGTHS)
    assert not refusals(deepcopy(model).float(), "native" if backend == "int8" else backend)
    make, share = RUNNERS[backend]
    runner = make(model, inputs)
    written: list[list[int]] = [[] for _ in range(len(inputs) * WIDTH)]
    for step in range(STEPS):
        if step == 2:  # the two rows of the first sentence change places, the last sentence goes on from one row
            order = [1, 0, 2, 3, 5, 5]
            runner.reorder(order, None)
            written = [list(written[row]) for row in order]
        tokens = torch.randint(3, V, (len(written),))
        logits = runner.step(tokens).double()
        written = [[*past, token] for past, token in zip(written, tokens.tolist(), strict=True)]
        wanted = torch.stack([alone(model, inputs[row // WIDTH], past) for row, past in enumerate(written)])
        assert (logits - wanted).abs().max() <= share * wanted.abs().max()


# ---- training: outputs and gradients ----


def example(model: Any, side: str) -> Iterator[Tensor]:
    tokens, keep = batch([[3, 4, 5, 6, 7], [8, 9], [10, 11, 12]], side)
    given = (tokens, tokens.flip(1), keep, keep.flip(1)) if hasattr(model, "encode") else (tokens, keep)
    out, real = model(*given), keep.flip(1) if hasattr(model, "encode") else keep
    loss = (out.softmax(dim=-1) * torch.linspace(-1, 1, V, dtype=out.dtype, device=out.device))[real].sum()
    yield out[real]
    yield from torch.autograd.grad(loss, list(model.parameters()))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("composition", COMPOSITIONS, ids=str)
def test_a_training_step_equals_the_core(composition: Any, backend: str, wiring: str, side: str) -> None:
    model = composed(wiring, *composition)
    for parameter in model.parameters():
        parameter.data.mul_(0.5)
    single = deepcopy(model).float()
    fused = use_backend(single, backend, None)
    torch.manual_seed(3)
    wanted = list(example(model, side))
    torch.manual_seed(3)
    for mine, exact in zip(example(fused, side), wanted, strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=1e-3, atol=1e-4)


# ---- parts ----


def bound(n: int = 6) -> Any:
    real = torch.arange(n) < torch.tensor([n, 4, 1])[:, None]
    return prepare_mask(core.causal() & core.padding(real), Grid(3, n, n, 0, torch.device("cpu")), dtype=torch.float32)


def attention() -> core.MultiHeadAttention:
    return core.MultiHeadAttention(8, 2)


def residual(kind: Any, part: nn.Module) -> Any:
    return kind(part, core.LayerNorm(8))


def encoder_layer() -> core.EncoderLayer:
    return core.EncoderLayer(residual(core.PreNorm, attention()), residual(core.PreNorm, core.FeedForward(8, 12)))


def decoder_layer() -> core.DecoderLayer:
    wraps = [residual(core.PostNorm, part) for part in (attention(), attention(), core.FeedForward(8, 12))]
    return core.DecoderLayer(*wraps)


SAMPLES: dict[type[nn.Module], Callable[[], nn.Module]] = {
    nn.Linear: lambda: nn.Linear(8, 12),
    nn.Dropout: lambda: nn.Dropout(0.0),
    core.LayerNorm: lambda: core.LayerNorm(8),
    core.TokenEmbedding: lambda: core.TokenEmbedding(20, 8),
    core.VocabularyHead: lambda: core.VocabularyHead(8, 20, bias=True),
    core.DotProduct: core.DotProduct,
    core.FeedForward: lambda: core.FeedForward(8, 12, activation="gelu_tanh"),
    core.MultiHeadAttention: attention,
    core.PreNorm: lambda: residual(core.PreNorm, core.FeedForward(8, 12)),
    core.PostNorm: lambda: residual(core.PostNorm, attention()),
    core.EncoderLayer: encoder_layer,
    core.DecoderLayer: decoder_layer,
    core.Encoder: lambda: core.Encoder([encoder_layer()], positions=core.Sinusoidal(8)),
    core.Decoder: lambda: core.Decoder([encoder_layer()]),
}
REPLACED = [
    (kind, backend) for (kind, backend), made in IMPLEMENTATIONS.items() if issubclass(made, ModuleImplementation)
]


def run(part: Any, kind: type[nn.Module], x: Tensor, dtype: torch.dtype) -> Tensor:
    """A part over three rows of six tokens, of which some are padding."""
    keep: Any = bound()
    if kind is core.TokenEmbedding:
        return part(torch.arange(18).view(3, 6))[0]
    if kind is core.DotProduct:
        heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
        return part(heads, heads.flip(-1), heads * 0.5, keep)
    if kind in (core.MultiHeadAttention, core.EncoderLayer, core.PostNorm):
        return part(x, keep=keep)
    if kind is core.DecoderLayer:
        return part(x, x.flip(-1), keep=keep, memory_keep=keep)
    return part(x)


@pytest.mark.parametrize(("kind", "backend"), REPLACED, ids=lambda value: getattr(value, "__name__", value))
def test_a_replaced_part_equals_the_core(kind: Any, backend: str) -> None:
    torch.manual_seed(0)
    part = SAMPLES[kind]()
    for parameter in part.parameters():
        nn.init.normal_(parameter, std=0.5)
    assert not refusals(part, backend)
    made = use_backend(part, backend, None)
    assert type(made) is IMPLEMENTATIONS[kind, backend]
    x = torch.randn(3, 6, 8, requires_grad=True)
    exact = x.detach().double().requires_grad_()
    found, wanted = run(made, kind, x, torch.float32), run(deepcopy(part).double(), kind, exact, torch.float64)
    real = torch.arange(6) < torch.tensor([6, 4, 1])[:, None]
    real = torch.ones_like(real) if found.dim() == 4 else real
    if backend == "int8":
        assert (found - wanted)[real].abs().max() < 0.1 * wanted.abs().max()
        return
    if found.dim() == 3:
        found, wanted = found[real], wanted[real]
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-5)
    if kind is not core.TokenEmbedding:
        (mine,), (theirs,) = torch.autograd.grad(found.sum(), x), torch.autograd.grad(wanted.sum(), exact)
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-5)


# ---- the copy ----


@pytest.mark.parametrize("backend", ["cpu", "triton"])
def test_a_copy_shares_tensors_names_and_ties_and_no_module(backend: str) -> None:
    model = heedful.build("tiny", vocab_size=V, d_model=16, n_heads=4, d_ff=24, dropout=0.0, tied="all")
    before = [type(part) for part in model.modules()]
    made = use_backend(model, backend, None)
    assert list(made.state_dict()) == list(model.state_dict())
    mine, theirs = ({**dict(m.named_parameters()), **dict(m.named_buffers())} for m in (made, model))
    assert list(mine) == list(theirs)
    assert all(mine[name] is theirs[name] for name in theirs)
    assert made.head.embedding is made.target_embedding
    assert [type(part) for part in model.modules()] == before
    assert not {id(part) for part in model.modules()} & {id(part) for part in made.modules()}
    assert deepcopy(made).state_dict().keys() == model.state_dict().keys()
    ids = torch.randint(3, V, (2, 5))
    model(ids, ids).logsumexp(-1).sum().backward()
    wanted = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    made(ids, ids).logsumexp(-1).sum().backward()  # into the same tensors
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_matrices_that_are_laid_together_once_stay_where_they_are() -> None:
    """A recorded step reads their memory, and another engine may be made for the same weights."""
    part = attention()
    before = {name: parameter.detach().clone() for name, parameter in part.named_parameters()}
    first = use_backend(part, "triton", None)
    places = [parameter.data_ptr() for parameter in part.parameters()]
    assert torch.equal(first.joined.weight, torch.cat([part.q_proj.weight, part.kv_proj.weight]))
    second = use_backend(part, "triton", None)
    assert [parameter.data_ptr() for parameter in part.parameters()] == places
    assert second.joined.weight.data_ptr() == first.joined.weight.data_ptr()
    assert torch.equal(second.joined.bias, first.joined.bias)
    assert all(torch.equal(parameter, before[name]) for name, parameter in part.named_parameters())


# ---- refusals ----


class Louder(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Parallel(core.EncoderLayer):
    """Attention and feed-forward read the same input."""

    def forward(self, x: Tensor, **context: Any) -> Tensor:
        return self.self_attention(x, **context) + self.feed_forward(x) - x


class NormedAttention(core.MultiHeadAttention):
    def _heads(self, x: Tensor, n: int) -> Tensor:
        return nn.functional.normalize(super()._heads(x, n), dim=-1)


def _louder(model: Any) -> None:
    old = model.decoder.layers[1].feed_forward.sublayer.down_proj
    model.decoder.layers[1].feed_forward.sublayer.down_proj = new = Louder(old.in_features, old.out_features)
    new.load_state_dict(old.state_dict())


def _parallel(model: Any) -> None:
    old = model.decoder.layers[1]
    model.decoder.layers[1] = Parallel(old.self_attention, old.feed_forward)


def _normed_heads(model: Any) -> None:
    part = model.decoder.layers[0].self_attention.sublayer
    model.decoder.layers[0].self_attention.sublayer = new = NormedAttention(16, H)
    new.load_state_dict(part.state_dict())


def _window(model: Any) -> None:
    model.decoder.mask = core.causal() & core.window(2)


REFUSED: list[tuple[Any, str]] = [
    (_louder, "decoder.layers.1.feed_forward.sublayer"),
    (_parallel, "decoder.layers.1"),
    (_normed_heads, "decoder.layers.0.self_attention.sublayer"),
    (_window, "decoder"),
]


@pytest.mark.parametrize(("change", "path"), REFUSED)
def test_what_is_refused_is_named_and_runs_through_the_core(change: Any, path: str) -> None:
    model = composed("decoder", "sinusoidal", "pre", "layer", "plain", H)
    assert not refusals(deepcopy(model).float(), "native")
    plain = generate(model, [[3, 4, 5]], max_new_tokens=6, suppress_tokens=[2])
    change(model.requires_grad_(True).eval())
    model = model.double().eval()
    for backend in ("native", "single_step", "cuda_graph"):
        found = refusals(deepcopy(model).float(), backend)
        if not (change is _louder and backend != "native"):  # the step runs a feed-forward part as it is
            assert any(reason.part.startswith(path) for reason in found), found
    exact = generate(model, [[3, 4, 5]], max_new_tokens=6, suppress_tokens=[2])
    single = generate(deepcopy(model).float(), [[3, 4, 5]], max_new_tokens=6, suppress_tokens=[2])
    assert [answer.tokens for answer in single[0]] == [answer.tokens for answer in exact[0]]
    assert exact[0][0].logprob != plain[0][0].logprob  # the change can be seen
    ids = torch.tensor([[3, 4, 5, 6]])
    for backend in ("cpu", "triton"):
        found_logits = use_backend(deepcopy(model).float(), backend)(ids).double()
        torch.testing.assert_close(found_logits, model(ids), rtol=1e-4, atol=1e-5)
    if change is not _window:
        assert any(reason.part.startswith(path) for reason in refusals(model, "cpu"))


@pytest.mark.parametrize("path", ["decoder", "decoder.layers.0", "decoder.layers.0.self_attention.sublayer", "head"])
def test_an_attribute_that_nobody_knows_is_refused(path: str) -> None:
    """The core may learn something that a backend does not do."""
    model = composed("decoder", "rotary", "post", "rms", "gated", H).float()
    part = model.get_submodule(path)
    part.later = None
    assert not refusals(model, "native")
    part.later = nn.Identity()
    assert not refusals(model, "native")
    part.later = core.RMSNorm(4)
    expected = Reason(path, f"{type(part).__name__} has `later`, which is not supported")
    assert expected in refusals(model, "native")
    if path != "decoder":
        assert expected in refusals(model, "cpu") or expected in refusals(model, "triton")
        assert type(use_backend(model, "cpu").get_submodule(path)) is type(part)


def test_reasons_of_the_machine_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.backends.native import library as building

    model = composed("decoder", "sinusoidal", "pre", "layer", "plain", H).float()
    monkeypatch.setattr(building, "_results", {})
    monkeypatch.setenv("HEEDFUL_NATIVE", "0")
    assert str(supports(model, "native")[0]) == "HEEDFUL_NATIVE=0 disables it"
    if not torch.cuda.is_available():
        assert "CUDA" in str(supports(model, "cuda_graph")[0])
        assert any("CUDA" in str(reason) for reason in supports(model, "triton"))
    assert supports(model, "cpu") == supports(model, "single_step") == []
    assert [str(reason) for reason in supports(core.Encoder([]), "native")][1:] == [
        "native runs models that are exactly DecoderOnly and EncoderDecoder, not Encoder"
    ]
    with pytest.raises(ValueError, match="unknown backend 'quick'; allowed: cpu"):
        supports(model, "quick")
    with pytest.raises(ValueError, match="native runs whole models"):
        use_backend(model, "native")
    assert set(BACKENDS) == {backend for _, backend in IMPLEMENTATIONS}


def test_no_single_step_without_a_decoder_that_is_known() -> None:
    model = composed("decoder", "sinusoidal", "pre", "layer", "plain", H)
    assert isinstance(prepare(model).single_step, SingleStepDecoder)
    _window(model)
    assert prepare(model).single_step is None
