"""The layers in C: the numbers of the modules, the same bits alone and in company, and none where they cannot be."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from every_model import DECODERS, D, build, sentences
from heedful.backends import prepare, runtime, supports
from heedful.backends.native import library as building
from heedful.backends.native.model import NativeModel, Packer
from heedful.backends.native.runner import NativeRunner
from heedful.core import MultiHeadAttention, PostNorm, PreNorm, Relative, causal, window
from heedful.errors import NonFiniteOutputError
from heedful.generation import GenerationConfig, generate
from published_pairs import GENERATORS, pair
from slow_search import same

pytestmark = pytest.mark.skipif(building.library() is None, reason=f"no layers in C: {building.unavailable_reason()}")


def is_native(model: Any) -> bool:
    return not supports(model, "native")


LENGTHS = (5, 1, 9, 3, 9, 2, 7, 4)
KNOWN = [name for name in DECODERS if is_native(build(name).float())]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a function as if there were no compiler."""

    def run(call: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(runtime, "library", lambda: None)
            patch.setattr(runtime, "_prepared", {})
            return call()

    return run


def logits(model: Any, inputs: list[list[int]], tokens: torch.Tensor, bits: int = 32) -> list[torch.Tensor]:
    """(B, V) after the start and after each of (B, T) tokens."""
    library = building.library()
    assert library is not None
    with torch.inference_mode():
        rows = NativeRunner(NativeModel(model, library, bits), inputs, 1)
        return [rows.prefill().clone(), *(rows.step(column).clone() for column in tokens.unbind(1))]


def expected(model: Any, inputs: list[list[int]], tokens: torch.Tensor) -> list[torch.Tensor]:
    """The same by the whole forward pass of each row alone."""
    found = []
    with torch.no_grad():
        for ids, row in zip(inputs, tokens.tolist(), strict=True):
            if hasattr(model, "encode"):
                whole = model(torch.tensor([ids]), torch.tensor([[1, *row]]))[0]
            else:
                whole = model(torch.tensor([[*ids, *row]]))[0, len(ids) - 1 :]
            found.append(whole)
    return list(torch.stack(found, dim=1))


def close(got: list[torch.Tensor], wanted: list[torch.Tensor], share: float) -> None:
    for one, other in zip(got, wanted, strict=True):
        assert (one - other).abs().max() <= share * other.abs().max()


def test_most_decoders_are_known() -> None:
    assert len(KNOWN) >= 6, KNOWN
    assert not is_native(build("additive").float())
    assert not is_native(build("sinusoidal"))  # float64
    assert not is_native(build("sinusoidal").bfloat16())


@pytest.mark.parametrize("name", KNOWN)
def test_logits_are_those_of_the_forward_pass(name: str) -> None:
    model, inputs = build(name).float().eval(), sentences(*LENGTHS)
    tokens = torch.randint(3, 9, (len(inputs), 6), generator=torch.Generator().manual_seed(0))
    wanted = expected(model, inputs, tokens)
    close(logits(model, inputs, tokens), wanted, 1e-5)
    close(logits(model, inputs, tokens, bits=8), wanted, 0.15)


@pytest.mark.parametrize("name", GENERATORS)
def test_published_families_run_in_c(name: str) -> None:
    _, model, *_ = pair(name, torch.float32)
    plain = len(model.decoder.mask.parts) == 1
    assert is_native(model) == plain  # a window is not among what it knows
    if not plain:
        return
    inputs = sentences(*LENGTHS)
    tokens = torch.randint(3, 9, (len(inputs), 6), generator=torch.Generator().manual_seed(0))
    close(logits(model, inputs, tokens), expected(model, inputs, tokens), 1e-5)


@pytest.mark.parametrize("width", [8, 20, 64, 88, 144])  # of fewer lanes than a vector has, of one and a part, of many
@pytest.mark.parametrize("shape", [{"family": "llama", "n_kv_heads": 2}, {"family": "t5"}])
def test_heads_of_any_width(shape: dict[str, Any], width: int) -> None:
    layers = ("n_encoder_layers", "n_decoder_layers") if shape["family"] == "t5" else ("n_layers",)
    config = {"vocab_size": 40, "d_model": 24, "n_heads": 4, "d_ff": 40, "d_head": width, **dict.fromkeys(layers, 2)}
    torch.manual_seed(width)
    model, inputs = heedful.build({**config, **shape}).float().eval(), sentences(*LENGTHS)
    tokens = torch.randint(3, 9, (len(inputs), 40), generator=torch.Generator().manual_seed(0))
    together = logits(model, inputs, tokens)
    close(together, expected(model, inputs, tokens), 1e-5)
    for row, ids in enumerate(inputs):
        alone = logits(model, [ids], tokens[row : row + 1])
        assert all(torch.equal(one[0], other[row]) for one, other in zip(alone, together, strict=True))


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "gated-gelu", "gated-silu"])
@pytest.mark.parametrize("width", [37, 700])  # whose rows end within a vector
def test_activations_are_the_same_to_the_last_bit_alone_and_in_company(kind: str, width: int) -> None:
    torch.manual_seed(0)
    config = {"family": "t5", "vocab_size": 40, "d_model": 24, "n_heads": 4, "d_head": 6, "feed_forward": kind}
    model = heedful.build({**config, "d_ff": width, "n_encoder_layers": 2, "n_decoder_layers": 2}).float().eval()
    inputs = sentences(*LENGTHS)
    tokens = torch.randint(3, 9, (len(inputs), 6), generator=torch.Generator().manual_seed(0))
    together = logits(model, inputs, tokens)
    close(together, expected(model, inputs, tokens), 1e-5)
    for row, ids in enumerate(inputs):
        alone = logits(model, [ids], tokens[row : row + 1])
        assert all(torch.equal(one[0], other[row]) for one, other in zip(alone, together, strict=True))


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("name", KNOWN)
def test_an_answer_is_the_same_to_the_last_bit_alone_and_in_company(name: str, precision: Any, beam: int) -> None:
    model, inputs = build(name).float(), sentences(*LENGTHS)
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=11, precision=precision)
    assert prepare(model, precision).native is not None
    alone = [generate(model, [ids], config)[0] for ids in inputs]
    for budget, order in ((10_000, [0, 1, 2, 3, 4, 5, 6, 7]), (16 * 3 * beam, [7, 4, 2, 1, 0, 3, 6, 5])):
        answers = generate(model, [inputs[index] for index in order], config, batch_tokens=budget)
        assert answers == [alone[index] for index in order]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", KNOWN)
def test_answers_are_those_of_the_modules(name: str, beam: int, without: Any) -> None:
    model, inputs = build(name).float(), sentences(*LENGTHS)
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=11, batch_tokens=16 * 3 * beam)
    in_c = generate(model, inputs, config)
    for answers, wanted in zip(in_c, without(lambda: generate(model, inputs, config)), strict=True):
        same(answers, wanted, tolerance=1e-4)


@pytest.mark.parametrize("beam", [1, 3])
def test_what_sways_the_choice_is_told_the_logits_though_logprobs_take_their_place(beam: int) -> None:
    model, inputs = build("sinusoidal"), sentences(*LENGTHS)
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=11, repetition_penalty=1.7)
    in_doubles = generate(model, inputs, config)
    in_c = generate(model.float(), inputs, config)
    for answers, wanted in zip(in_c, in_doubles, strict=True):
        same(answers, wanted, tolerance=1e-4)


def test_the_logits_of_one_thread_are_not_those_of_another() -> None:
    library = building.library()
    assert library is not None
    model, x = NativeModel(build("sinusoidal").float(), library, 32), torch.randn(3, D)
    mine = model.logits(x)
    before = mine.clone()
    with ThreadPoolExecutor(1) as other:
        theirs = other.submit(model.logits, -x).result()
    assert torch.equal(mine, before)
    assert not torch.equal(mine, theirs)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", ["sinusoidal", "relative", "rotary language model", "additive"])
def test_8_bits_by_torch_are_the_same_alone_and_in_company(name: str, beam: int, without: Any) -> None:
    model, inputs = build(name).float(), sentences(*LENGTHS)
    config = GenerationConfig(beam=beam, n_best=beam, max_new_tokens=11, precision="int8")
    alone = without(lambda: [generate(model, [ids], config)[0] for ids in inputs])
    together = without(lambda: generate(model, inputs, config, batch_tokens=16 * 3 * beam))
    for answers, wanted in zip(together, alone, strict=True):
        same(answers, wanted, tolerance=1e-6)


@pytest.mark.parametrize("bits", [8, 32])
@pytest.mark.parametrize(("n_in", "n_out", "n_rows"), [(3, 5, 1), (16, 64, 2), (37, 129, 7), (512, 70, 13)])
def test_a_product_is_a_product(bits: int, n_in: int, n_out: int, n_rows: int) -> None:
    library = building.library()
    assert library is not None
    random = torch.Generator().manual_seed(n_in)
    weight, bias = torch.randn(n_out, n_in, generator=random), torch.randn(n_out, generator=random)
    x = torch.randn(n_rows, n_in, generator=random)
    x[0] = 0.0
    packer = Packer(library, bits)
    matrix, y = packer.matrix(weight, bias), torch.full((n_rows, n_out), torch.nan)
    assert library.run_product(ctypes.byref(matrix), x.data_ptr(), n_rows, y.data_ptr(), 2) == 0
    if bits == 8:  # the same rounding by hand
        scale, step = weight.abs().amax(1, keepdim=True) / 127, x.abs().amax(1, keepdim=True) / 127
        weight = (weight / scale).round() * scale
        x = torch.where(step > 0, (x / step).round() * step, 0.0)
    wanted = x.double() @ weight.double().T + bias
    assert (y - wanted).abs().max() < 1e-5 * wanted.abs().max()


def test_a_row_without_levels_of_8_bits_is_zero_or_no_number() -> None:
    """Numbers too small for a scale count as zero; a row with inf or NaN has no answer, and spoils no other row."""
    library = building.library()
    assert library is not None
    weight, bias = torch.ones(5, 16), torch.arange(5.0)
    x = torch.stack([torch.full((16,), value) for value in (1e-45, -1e-38, torch.inf, torch.nan, 2.0)])
    packer = Packer(library, 8)
    matrix, y = packer.matrix(weight, bias), torch.empty(5, 5)
    assert library.run_product(ctypes.byref(matrix), x.data_ptr(), 5, y.data_ptr(), 1) == 0
    assert torch.equal(y[:2], bias.expand(2, 5))
    assert y[2:4].isnan().all()
    torch.testing.assert_close(y[4], bias + 32.0)


def test_not_a_number_stays_one() -> None:
    model = build("sinusoidal").float()
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.sublayer.up_proj.weight[0] = torch.nan
    for precision in ("float32", "int8"):
        with pytest.raises(NonFiniteOutputError, match="NaN"):
            generate(model, [[3, 4]], precision=precision)


def test_without_a_compiler_there_is_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable, said in (("PATH", "no C compiler"), ("HEEDFUL_NATIVE", "disables it")):
        with monkeypatch.context() as patch:
            patch.setattr(building, "_results", {})
            patch.delenv("CC", raising=False)
            patch.setenv(variable, "0" if variable == "HEEDFUL_NATIVE" else str(tmp_path))
            assert building.library() is None
            assert said in (building.unavailable_reason() or "")


def test_a_folder_that_others_can_write_to_is_not_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = building._folder()
    assert kept == tmp_path / "heedful"
    os.chmod(kept, 0o777)
    assert building._folder() != kept


class Louder(torch.nn.Linear):
    """A linear map that does something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def _other_cross_heads(model: Any) -> None:
    cross = model.decoder.layers[0].cross_attention
    d_model = cross.sublayer.q_proj.in_features
    for layer in model.decoder.layers:
        layer.cross_attention.sublayer = MultiHeadAttention(d_model, 1)


def _mixed_norms(model: Any) -> None:
    layer = model.decoder.layers[0]
    kind = PreNorm if isinstance(layer.feed_forward, PostNorm) else PostNorm
    layer.feed_forward = kind(layer.feed_forward.sublayer, layer.feed_forward.norm)


def _another_linear(model: Any) -> None:
    part = model.decoder.layers[0].feed_forward.sublayer
    part.down_proj.__class__ = Louder


def _one_bias_missing(model: Any) -> None:
    model.decoder.layers[0].self_attention.sublayer.q_proj.bias = None


def _few_biases(model: Any) -> None:
    model.decoder.positions = Relative(1, causal=True)


def _window(model: Any) -> None:
    model.decoder.mask = causal() & window(3)


def _dropping_embedding(model: Any) -> None:
    model.target_embedding = torch.nn.Sequential(model.target_embedding)


@pytest.mark.parametrize(
    "change",
    [_other_cross_heads, _mixed_norms, _another_linear, _one_bias_missing, _few_biases, _window, _dropping_embedding],
)
def test_a_model_with_any_other_part_is_left_to_the_modules(change: Any) -> None:
    model = build("sinusoidal").float()
    assert is_native(model)
    change(model)
    assert not is_native(model)


def test_a_mask_that_changed_is_noticed() -> None:
    model = build("sinusoidal").float()
    before = generate(model, [[3, 4, 5]], max_new_tokens=12, suppress_tokens=[2])
    model.decoder.mask = causal() & window(1)
    assert generate(model, [[3, 4, 5]], max_new_tokens=12, suppress_tokens=[2]) != before


def test_the_default_dtype_does_not_matter() -> None:
    model = build("sinusoidal").float()
    before = generate(model, [[3, 4, 5]], max_new_tokens=6)
    was = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if was == torch.float64 else torch.float64)
    try:
        with torch.no_grad():
            model.decoder.layers[0].self_attention.sublayer.q_proj.weight.mul_(1.0)  # so that it is made anew
        assert generate(model, [[3, 4, 5]], max_new_tokens=6) == before
    finally:
        torch.set_default_dtype(was)
