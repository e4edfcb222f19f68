"""Models to CTranslate2 and back: it computes what they do, and what comes back computes the same to the bit."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful import build, core
from heedful.errors import MissingDependencyError
from heedful.families import GenerationDefaults
from heedful.families.ctranslate2 import (
    CTranslate2Error,
    ExportError,
    Model,
    Vocabularies,
    from_ctranslate2,
    read_binary,
    spec_of,
    write_folder,
)
from heedful.families.weights import WeightsError

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install heedful[ctranslate2]")

V, V_TARGET, D, LIMIT = 37, 29, 24, 64
SIZES = {"vocab_size": V, "d_model": D, "n_heads": 4, "d_ff": 40, "n_encoder_layers": 2, "n_decoder_layers": 3}
ORIGINAL = {"family": "original", **SIZES, "max_length": LIMIT}
T5 = {"family": "t5", **SIZES, "d_head": 7, "n_buckets": 8, "max_distance": 20}
GPT2 = {"family": "gpt2", "vocab_size": V, "d_model": D, "n_heads": 4, "d_ff": 40, "n_layers": 3, "max_length": LIMIT}
LLAMA = GPT2 | {"family": "llama", "n_kv_heads": 2}
LLAMA3 = {"kind": "llama3", "factor": 8.0, "original_length": 32}


def over(config: dict[str, Any], positions: Callable[[], core.Positions]) -> Any:
    """A decoder alone over other positions than its family has."""
    module: Any = build(config)
    module.decoder.positions = positions()
    return module


MODELS: dict[str, Callable[[], Any]] = {
    "original": partial(build, ORIGINAL),
    "pre-norm": partial(build, ORIGINAL, norm="pre", activation="gelu"),
    "rms and gated": partial(build, ORIGINAL, norm="pre", norm_kind="rms", feed_forward="gated", activation="silu"),
    "rms without biases": partial(build, ORIGINAL, norm_kind="rms", bias=False),
    "learned": partial(build, ORIGINAL, positions="learned"),
    "relative": partial(build, ORIGINAL, positions="relative"),
    "rotary": partial(build, ORIGINAL, positions="rotary"),
    "shared heads": partial(build, ORIGINAL, positions="rotary", n_kv_heads=2),
    "one head of keys": partial(build, ORIGINAL, n_kv_heads=1),
    "narrow heads": partial(build, ORIGINAL, d_head=5, n_kv_heads=2),
    "two vocabularies": partial(build, ORIGINAL, target_vocab_size=V_TARGET, tied="none", activation="gelu_tanh"),
    "two vocabularies, tied": partial(build, ORIGINAL, target_vocab_size=V_TARGET, tied="output"),
    "marian": partial(build, {**ORIGINAL, "family": "marian", "activation": "silu", "scale_embedding": True}),
    "bart": partial(build, {**ORIGINAL, "family": "bart"}),
    "t5": partial(build, T5),
    "t5 gated": partial(build, T5, feed_forward="gated-gelu", tied=False),
    "gpt2": partial(build, GPT2),
    "llama": partial(build, LLAMA),
    "llama tied": partial(build, LLAMA, n_kv_heads=None, tied=True, bias=True, feed_forward_bias=True),
    "llama linear": partial(build, LLAMA, d_head=10, scaling={"kind": "linear", "factor": 2.0}),
    "llama 3": partial(build, LLAMA, scaling=LLAMA3, rotary_base=500000.0),
    "rotary neighbours": partial(over, LLAMA, lambda: core.Rotary(6, width=4, interleaved=True)),
    "alibi": partial(over, GPT2, lambda: core.ALiBi(4)),
}


def model_of(make: Callable[[], Any]) -> Model:
    """With random weights, norms and biases among them: as they start, one and zero, they would hide a mistake."""
    module = make().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, mean=0.0 if parameter.dim() > 1 else 0.5, std=0.3)
    names = tuple(f"t{index}" for index in range(V))
    rows = len(module.head.weight)
    suffix = () if isinstance(module, core.DecoderOnly) else (2,)
    return Model(module, Vocabularies(names, names[:rows], suffix=suffix), GenerationDefaults(start=1, end=(2,), pad=0))


def log_probs(module: nn.Module, source: list[int], target: list[int]) -> Tensor:
    """Of a target and its end after a source, or of what follows the first token of a target."""
    is_decoder_only = isinstance(module, core.DecoderOnly)
    inputs, answer = (
        (([target[:-1]],), target[1:]) if is_decoder_only else (([[*source, 2]], [[1, *target]]), [*target, 2])
    )
    with torch.no_grad():
        logits = module(*map(torch.tensor, inputs))[0]
    return logits.double().log_softmax(dim=-1)[torch.arange(len(answer)), answer]


def scored(model: Model, folder: Path, source: list[int], target: list[int], precision: str = "default") -> Tensor:
    """Return the log-probabilities that CTranslate2 computes."""
    tokens = [model.vocabularies.target[index] for index in target]
    if isinstance(model.module, core.DecoderOnly):
        (result,) = ctranslate2.Generator(str(folder), compute_type=precision).score_batch([tokens])
    else:
        texts = [model.vocabularies.source[index] for index in source]
        (result,) = ctranslate2.Translator(str(folder), compute_type=precision).score_batch([texts], [tokens])
    return torch.tensor(result.log_probs, dtype=torch.float64)


def drawn(length: int, most: int = V_TARGET) -> list[int]:
    return torch.randint(3, most, (length,)).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_ctranslate2_matches_the_model_and_round_trip_is_exact(name: str, tmp_path: Path) -> None:
    model = model_of(MODELS[name])
    write_folder(model, tmp_path)
    back = from_ctranslate2(tmp_path)
    assert back.vocabularies == model.vocabularies
    assert (back.defaults.start, back.defaults.end) == (1, (2,))
    for n_source, n_target in ((1, 2), (9, 3), (40, 50)):
        source, target = drawn(n_source, V), drawn(n_target)
        expected = log_probs(model.module, source, target)
        torch.testing.assert_close(scored(model, tmp_path, source, target), expected, rtol=0, atol=1e-5)
        assert log_probs(back.module, source, target).equal(expected)


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_keeps_ties_and_number_of_weights(name: str, tmp_path: Path) -> None:
    model = model_of(MODELS[name])
    write_folder(model, tmp_path)
    back = from_ctranslate2(tmp_path).module
    before, n_after = (sum(p.numel() for p in module.parameters()) for module in (model.module, back))
    cross = [part for path, part in model.module.named_modules() if path.endswith("cross_attention.sublayer")]
    repeated = sum((part.n_heads // part.n_kv_heads - 1) * _size(part.kv_proj) for part in cross)
    unused = sum(p.offset * D for p in model.module.modules() if isinstance(p, core.Learned))  # BART's rows 0 and 1
    assert n_after == before + repeated - unused
    assert _ties(back) == _ties(model.module)


def _ties(module: Any) -> list[bool]:
    """Whether the output, and the source, share the matrix of what is written."""
    if isinstance(module, core.DecoderOnly):
        return [module.head.embedding is module.embedding]
    return [part is module.target_embedding for part in (module.head.embedding, module.source_embedding)]


def _size(part: nn.Module) -> int:
    return sum(parameter.numel() for parameter in part.parameters())


@pytest.mark.parametrize("quantization", ["int8", "int16", "float16", "int8_bfloat16"])
@pytest.mark.parametrize("name", ["original", "t5 gated", "llama"])
def test_quantized_weights_are_read_back_dequantized(name: str, quantization: str, tmp_path: Path) -> None:
    model = model_of(MODELS[name])
    before = {key: tensor.clone() for key, tensor in model.module.state_dict().items()}
    write_folder(model, tmp_path, quantization=quantization)
    assert all(tensor.equal(before[key]) for key, tensor in model.module.state_dict().items())
    back = from_ctranslate2(tmp_path)
    source, target = drawn(9, V), drawn(12)
    there = scored(model, tmp_path, source, target, "float32")
    torch.testing.assert_close(log_probs(back.module, source, target), there, rtol=0, atol=1e-4)
    assert not there.equal(log_probs(model.module, source, target))


def test_every_token_keeps_its_place_whatever_its_text(tmp_path: Path) -> None:
    strange = (
        "<pad>",
        "<s>",
        "</s>",
        " ",
        "\n",
        "\r",
        "\t",
        "a\nb",
        " 책",
        "<0x0A>",
        '"',
        "\\",
        "\x00",
        "\u2028",
        "🙂",
        "",
    )
    model = model_of(MODELS["original"])
    names = (*strange, *(f" t{index}" for index in range(V - len(strange))))
    model = model._replace(vocabularies=Vocabularies(names, names, suffix=(2,)))
    write_folder(model, tmp_path)
    assert from_ctranslate2(tmp_path).vocabularies == model.vocabularies
    engine = ctranslate2.Translator(str(tmp_path))
    for token in (index for index in range(V) if index not in (1, 2)):
        (result,) = engine.score_batch([[names[token]]], [[names[token]]])
        expected = log_probs(model.module, [token], [token])
        torch.testing.assert_close(torch.tensor(result.log_probs, dtype=torch.float64), expected, rtol=0, atol=1e-5)


def test_a_version_2_model_matches_ctranslate2(tmp_path: Path) -> None:
    """Without settings: eight heads, pre-norm, ReLU, its own sinusoids; the vocabulary leaves out the unknown token."""
    model = model_of(partial(build, ORIGINAL, n_heads=8, norm="pre", tied="none", target_vocab_size=V_TARGET))
    write_folder(model, tmp_path)
    stored = read_binary(tmp_path / "model.bin").variables
    weights = {name: tensor for name, tensor in stored.items() if tensor.dim() and "position_encodings" not in name}
    content = struct.pack("<IH", 2, 16) + b"TransformerBase\0" + struct.pack("<II", 2, len(weights))
    for name, tensor in weights.items():
        older = name.replace("embeddings_0", "embeddings").encode() + b"\0"
        shape = struct.pack(f"<B{tensor.dim()}I", tensor.dim(), *tensor.shape)
        content += struct.pack("<H", len(older)) + older + shape
        content += struct.pack("<BI", 4, tensor.numel()) + tensor.numpy().tobytes()
    old = tmp_path / "old"
    old.mkdir()
    (old / "model.bin").write_bytes(content)
    for side, size in (("source", V), ("target", V_TARGET)):
        lines = ["<blank>", "<s>", "</s>", *(f"t{index}" for index in range(3, size - 1))]
        (old / f"{side}_vocabulary.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    back = from_ctranslate2(old)
    assert back.vocabularies.source[-1] == back.vocabularies.target[-1] == "<unk>"
    assert back.vocabularies.ids(["t5", "t7"]) == [5, 7]
    assert (back.defaults.start, back.defaults.end) == (1, (2,))
    source, target = [5, 7, 4, 30], [6, 9, 4, 8, 12]
    tokens = [[back.vocabularies.target[index] for index in target]]
    texts = [[back.vocabularies.source[index] for index in source]]
    (result,) = ctranslate2.Translator(str(old)).score_batch(texts, tokens)
    with torch.no_grad():
        logits = back.module(torch.tensor([source]), torch.tensor([[1, *target]]))[0]
    expected = logits.double().log_softmax(dim=-1)[torch.arange(6), [*target, 2]]
    torch.testing.assert_close(torch.tensor(result.log_probs, dtype=torch.float64), expected, rtol=0, atol=1e-5)


def changed(make: Callable[[], Any], change: Callable[[Any], object]) -> Callable[[], Any]:
    def build_changed() -> Any:
        module = make()
        change(module)
        return module

    return build_changed


def put(path: str, part: object) -> Callable[[Any], object]:
    """Return a function that replaces the part at a place."""
    parent, _, name = path.rpartition(".")
    return lambda module: setattr(module.get_submodule(parent), name, part)


class Louder(core.RMSNorm):
    """Made from a known part, it may do anything."""


def set_encoder_eps(module: Any) -> None:
    for part in module.encoder.modules():
        if isinstance(part, core.LayerNorm):
            part.eps = 1e-3


def set_cross_attention(module: Any) -> None:
    for layer in module.decoder.layers:
        layer.cross_attention.sublayer = core.MultiHeadAttention(D, 6)


PLAIN, RECURRENT = MODELS["original"], {"family": "recurrent", "vocab_size": V, "d_model": D}
REFUSED = {
    "recurrent": (partial(build, RECURRENT), "encoder is RecurrentEncoder"),
    "window": (changed(PLAIN, put("decoder.mask", core.causal() & core.window(4))), r"decoder\.mask, a window of 4"),
    "no positions": (partial(build, ORIGINAL, positions="none"), "encoder.positions, none"),
    "alibi in an encoder": (partial(build, ORIGINAL, positions="alibi"), "encoder.positions, alibi"),
    "one layer post-norm": (
        changed(MODELS["pre-norm"], lambda m: setattr(m.decoder.layers, "1", PLAIN().decoder.layers[1])),
        "decoder.layers.1.self_attention is PostNorm; .* only have PreNorm",
    ),
    "another epsilon": (
        changed(PLAIN, put("encoder.layers.1.feed_forward.norm.eps", 1e-3)),
        "encoder.layers.1.feed_forward.norm.eps is 0.001; .* only have 1e-05",
    ),
    "another epsilon in every norm of a stack": (
        changed(PLAIN, set_encoder_eps),
        r"one eps for all norms, but this model has \[1e-05, 0.001\]",
    ),
    "norms of two kinds": (
        changed(MODELS["pre-norm"], put("decoder.norm", core.RMSNorm(D))),
        "the norms of the decoder, layer and rms",
    ),
    "cross-attention with other heads": (
        changed(PLAIN, set_cross_attention),
        r"cross_attention\.n_heads, 6: self-attention has 4",
    ),
    "a part made from a known one": (
        changed(MODELS["llama"], put("decoder.layers.2.feed_forward.norm", Louder(D))),
        "decoder.layers.2.feed_forward.norm is Louder",
    ),
    "another activation": (
        changed(PLAIN, put("decoder.layers.0.feed_forward.sublayer.activation", torch.sigmoid)),
        "decoder.layers.0.feed_forward.sublayer.activation",
    ),
    "a transform": (changed(PLAIN, put("head.transform", nn.Linear(D, D))), "head.transform is Linear"),
    "segments": (
        changed(PLAIN, put("source_embedding", core.TokenEmbedding(V, D, n_segments=2))),
        "source_embedding.segments",
    ),
    "a final norm after post-norm layers": (changed(PLAIN, put("decoder.norm", core.LayerNorm(D))), "decoder.norm"),
    "another wiring": (partial(build, {"family": "bert", "vocab_size": V, "d_model": D, "n_heads": 4}), "EncoderOnly"),
}


@pytest.mark.parametrize(("make", "word"), REFUSED.values(), ids=REFUSED)
def test_an_unsupported_part_is_named_with_its_place(make: Callable[[], Any], word: str) -> None:
    with pytest.raises(ExportError, match=word):
        spec_of(make())


def test_a_vocabulary_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    model = model_of(PLAIN)
    names = model.vocabularies.source
    for tokens, word in (
        (names[:-1], "36 tokens, but the model has weights for 37"),
        ((*names[:-1], "t3"), "'t3' twice"),
    ):
        with pytest.raises(ExportError, match=word):
            write_folder(model._replace(vocabularies=Vocabularies(tokens, names)), tmp_path)
    with pytest.raises(ExportError, match="one start and one end"):
        write_folder(model._replace(defaults=GenerationDefaults(start=1, end=(2, 3))), tmp_path)
    assert not list(tmp_path.iterdir())


def rewritten(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def test_an_extra_or_missing_variable_is_named(tmp_path: Path) -> None:
    write_folder(model_of(PLAIN), tmp_path)
    rewritten(tmp_path / "model.bin", b"layer_0/self_attention/linear_1/bias", b"layer_0/self_attention/linear_1/soul")
    with pytest.raises(WeightsError, match="no place here: decoder/layer_0/self_attention/linear_1/soul, encoder"):
        from_ctranslate2(tmp_path)
    write_folder(model_of(PLAIN), tmp_path)
    rewritten(tmp_path / "model.bin", b"decoder/layer_2/ffn/layer_norm/gamma", b"decoder/layer_2/ffn/layer_norm/gammb")
    with pytest.raises(WeightsError, match="lacks decoder/layer_2/ffn/layer_norm"):
        from_ctranslate2(tmp_path)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"unk_token": 3}, "unk_token=3"),
        ({"layer_norm_epsilon": -1.0}, "layer_norm_epsilon"),
        ({"eos_token": "nowhere"}, "'nowhere' is not in the vocabulary"),
    ],
)
def test_an_invalid_config_is_refused(change: dict[str, Any], word: str, tmp_path: Path) -> None:
    write_folder(model_of(PLAIN), tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    with pytest.raises(CTranslate2Error, match=word) as caught:
        from_ctranslate2(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [("1" * 5000, "is not JSON"), ("1" * 4000, "layer_norm_epsilon=1{60}… is not"), ("[" * 5000, "is not JSON")],
)
def test_a_number_or_a_depth_beyond_all_bounds_is_refused(content: str, message: str, tmp_path: Path) -> None:
    write_folder(model_of(PLAIN), tmp_path)
    (tmp_path / "config.json").write_text(f'{{"layer_norm_epsilon": {content}}}')
    with pytest.raises(CTranslate2Error, match=message):
        from_ctranslate2(tmp_path)


def test_a_missing_or_wrongly_sized_vocabulary_is_refused(tmp_path: Path) -> None:
    write_folder(model_of(PLAIN), tmp_path)
    (tmp_path / "shared_vocabulary.json").write_text('["t0", "t1", "t2"]')
    with pytest.raises(CTranslate2Error, match="has 3 tokens, but the model has weights for 37"):
        from_ctranslate2(tmp_path)
    (tmp_path / "shared_vocabulary.json").unlink()
    with pytest.raises(CTranslate2Error, match=r"lacks a vocabulary: shared_vocabulary\.json"):
        from_ctranslate2(tmp_path)


def test_missing_ctranslate2_error_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'heedful\[ctranslate2\]'"):
        spec_of(PLAIN())
