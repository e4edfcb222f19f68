"""Models without a name: what is read off their parts builds them again to the bit, or a part is named and refused."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful import build, core
from heedful.errors import ConfigError
from heedful.families import ComposedConfig, DescriptionError, GenerationDefaults, config_of, describe
from heedful.families.composed import AttentionPart, FeedForwardPart, NormPart, PositionsPart, StackPart
from heedful.families.ctranslate2 import Model, Vocabularies, from_ctranslate2, write_folder
from heedful.families.ctranslate2.loader import read_module
from heedful.families.ctranslate2.model_bin import Variables
from heedful.families.weights import read_weights, write_weights

V, V_TARGET, D, LIMIT = 37, 29, 24, 64
SIZES = {"vocab_size": V, "d_model": D, "n_heads": 4, "d_ff": 40, "n_encoder_layers": 2, "n_decoder_layers": 3}
ORIGINAL = {"family": "original", **SIZES, "max_length": LIMIT}
T5 = {"family": "t5", **SIZES, "d_head": 7, "n_buckets": 8, "max_distance": 20}
GPT2 = {"family": "gpt2", "vocab_size": V, "d_model": D, "n_heads": 4, "d_ff": 40, "n_layers": 3, "max_length": LIMIT}
LLAMA = GPT2 | {"family": "llama", "n_kv_heads": 2}
LLAMA3 = {"kind": "llama3", "factor": 8.0, "low": 1.5, "high": 4.5, "original_length": 32}
DROPPING = {"dropout": 0.1, "attention_dropout": 0.2}


def over(config: dict[str, Any], **parts: Any) -> Any:
    """A decoder alone with other parts than its family has."""
    module = build(config)
    for name, part in parts.items():
        setattr(module.decoder, name, part)
    return module


WRITABLE: dict[str, Callable[[], Any]] = {  # by CTranslate2
    "original": partial(build, ORIGINAL),
    "original pre-norm": partial(build, ORIGINAL, norm="pre", activation="gelu"),
    "original gated": partial(
        build, ORIGINAL, norm="pre", norm_kind="rms", feed_forward="gated", activation="silu", activation_dropout=0.3
    ),
    "original without biases": partial(build, ORIGINAL, norm_kind="rms", bias=False),
    "original learned": partial(build, ORIGINAL, positions="learned"),
    "original relative": partial(build, ORIGINAL, positions="relative"),
    "original rotary": partial(build, ORIGINAL, positions="rotary"),
    "original grouped": partial(build, ORIGINAL, positions="rotary", n_kv_heads=2),
    "original narrow": partial(build, ORIGINAL, d_head=5, n_kv_heads=2, **DROPPING),
    "original apart": partial(build, ORIGINAL, target_vocab_size=V_TARGET, tied="none", activation="gelu_tanh"),
    "original output": partial(build, ORIGINAL, target_vocab_size=V_TARGET, tied="output"),
    "marian": partial(build, {**ORIGINAL, "family": "marian", "activation": "silu", "scale_embedding": True}),
    "bart": partial(build, {**ORIGINAL, "family": "bart"}),
    "t5": partial(build, T5),
    "t5 v1.1": partial(build, T5, feed_forward="gated-gelu", tied=False),
    "gpt2": partial(build, GPT2, norm_eps=1e-3, embedding_dropout=0.05, **DROPPING),
    "llama": partial(build, LLAMA),
    "llama tied": partial(build, LLAMA, n_kv_heads=None, tied=True, bias=True, feed_forward_bias=True),
    "llama linear": partial(build, LLAMA, d_head=10, scaling={"kind": "linear", "factor": 2.0}),
    "llama 3": partial(build, LLAMA, scaling=LLAMA3, rotary_base=500000.0),
    "neighbours": partial(over, LLAMA, positions=core.Rotary(6, width=4, interleaved=True)),
    "alibi alone": partial(over, GPT2, positions=core.ALiBi(4)),
}
MODELS = WRITABLE | {
    "original without positions": partial(build, ORIGINAL, positions="none"),
    "original alibi": partial(build, ORIGINAL, positions="alibi"),
    "mistral": partial(build, LLAMA | {"family": "mistral", "window": 3}),
    "a window in an encoder": lambda: _changed(build(ORIGINAL), "encoder.mask", core.window(4)),
    "norms without biases": lambda: over(GPT2, entry=core.LayerNorm(D, bias=False), norm=core.RMSNorm(D, eps=1e-4)),
}


def random(module: Any) -> Any:
    """Norms and biases too: as they start, one and zero, they would hide a mistake."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, mean=0.0 if parameter.dim() > 1 else 0.5, std=0.3)
    return module.eval()


def answers(module: Any) -> list[Tensor]:
    """Of a padded batch, of a prefix and two cached steps after it, and with dropout."""
    torch.manual_seed(1)
    source, target = torch.randint(0, V_TARGET, (3, 9)), torch.randint(0, V_TARGET, (3, 12))
    source_keep, target_keep = (torch.arange(n) < torch.tensor([[n], [2], [5]]) for n in (9, 12))
    cache = module.new_cache()
    steps = target[:, :10], target[:, 10:11], target[:, 11:]
    with torch.no_grad():
        if isinstance(module, core.DecoderOnly):
            whole = module(target, target_keep)
            result = [module(step, cache=cache) for step in steps]
            dropped = module.train()(target)
        else:
            whole = module(source, target, source_keep, target_keep)
            memory = module.encode(source, source_keep)
            result = [module.decode(step, memory, source_keep, cache) for step in steps]
            dropped = module.train()(source, target)
    module.eval()
    return [whole, *result, dropped]


def layout(module: nn.Module) -> tuple[dict[str, tuple[int, ...]], set[frozenset[str]]]:
    """Every weight's shape, and which names stand for one weight."""
    names = defaultdict(set)
    state = module.state_dict(keep_vars=True)
    for name, weight in state.items():
        names[id(weight)].add(name)
    return {name: tuple(weight.shape) for name, weight in state.items()}, set(map(frozenset, names.values()))


def rebuilt(module: Any, folder: Path) -> Any:
    """By way of two files, as a bundle does it."""
    write_weights(module, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(describe(module).to_dict()))
    config = config_of(json.loads((folder / "config.json").read_text()))
    assert config == describe(module)
    again = build(config).eval()
    assert layout(again) == layout(module)
    read_weights(again, folder / "model.safetensors")
    return again


@pytest.mark.parametrize("name", MODELS)
def test_described_models_rebuild_exactly(name: str, tmp_path: Path) -> None:
    module = random(MODELS[name]())
    again = rebuilt(module, tmp_path)
    for actual, expected in zip(answers(module), answers(again), strict=True):
        assert torch.equal(actual, expected)
    assert describe(again) == describe(module)


@pytest.mark.parametrize("name", WRITABLE)
def test_models_read_from_ctranslate2_rebuild_exactly(name: str, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install heedful[ctranslate2]")
    module = random(WRITABLE[name]())
    tokens = tuple(f"t{index}" for index in range(V))
    vocabularies = Vocabularies(tokens, tokens[: len(module.head.weight)])
    write_folder(Model(module, vocabularies, GenerationDefaults(start=1, end=(2,), pad=0)), tmp_path)
    read = from_ctranslate2(tmp_path).module
    for actual, expected in zip(answers(read), answers(rebuilt(read, tmp_path)), strict=True):
        assert torch.equal(actual, expected)


def variables(stack: str, d_model: int, *, d_memory: int | None = None, bias: bool = True) -> dict[str, Tensor]:
    """Of two layers, as CTranslate2 names them; four heads, of which keys and values are two in the self-attention."""
    d_head, d_ff = 6, 20

    def linear(name: str, d_in: int, d_out: int, bias: bool = bias) -> dict[str, Tensor]:
        weights = {f"{name}/weight": torch.randn(d_out, d_in) * 0.2}
        return weights | ({f"{name}/bias": torch.randn(d_out)} if bias else {})

    def norm(name: str) -> dict[str, Tensor]:
        return {f"{name}/gamma": torch.rand(d_model)} | ({f"{name}/beta": torch.randn(d_model)} if bias else {})

    stored = norm(f"{stack}/layernorm_embedding") | norm(f"{stack}/layer_norm")
    for index in range(2):
        layer = f"{stack}/layer_{index}"
        options, cross, wide = f"{layer}/self_attention", f"{layer}/attention", f"{layer}/ffn"
        stored |= linear(f"{options}/linear_0", d_model, 8 * d_head) | linear(
            f"{options}/linear_1", 4 * d_head, d_model, True
        )
        stored |= norm(f"{options}/layer_norm") | norm(f"{wide}/layer_norm")
        stored |= {f"{options}/queries_scale": torch.tensor(0.3)}
        stored |= linear(f"{wide}/linear_0", d_model, d_ff) | linear(f"{wide}/linear_1", d_ff, d_model)
        if d_memory is not None:
            stored |= linear(f"{cross}/linear_0", d_model, 4 * d_head) | linear(
                f"{cross}/linear_1", d_memory, 8 * d_head
            )
            stored |= linear(f"{cross}/linear_2", 4 * d_head, d_model) | norm(f"{cross}/layer_norm")
    return stored | {f"{stack}/num_heads": torch.tensor(4), f"{stack}/activation": torch.tensor(5)}


@pytest.mark.parametrize("bias", [True, False])
def test_ctranslate2_only_settings_are_described(bias: bool, tmp_path: Path) -> None:
    """Widths that differ, scales that are numbers, a bias of the output, norms at both ends, its own positions."""
    torch.manual_seed(0)
    stored = variables("encoder", 16, bias=bias) | variables("decoder", 12, d_memory=16, bias=bias)
    stored |= {
        "encoder/embeddings_0/weight": torch.randn(V, 16),
        "decoder/embeddings/weight": torch.randn(V_TARGET, 12),
    }
    stored |= {
        "encoder/scale_embeddings": torch.tensor(2.5),
        "decoder/scale_embeddings": torch.tensor(0, dtype=torch.int8),
    }
    stored |= {"decoder/projection/weight": torch.randn(V_TARGET, 12), "decoder/projection/bias": torch.randn(V_TARGET)}
    stored |= {"decoder/scale_outputs": torch.tensor(0.5), "decoder/pre_norm": torch.tensor(0)}
    module: Any = read_module(Variables(stored), has_encoder=True, epsilon=1e-3)
    for actual, expected in zip(answers(module), answers(rebuilt(module, tmp_path)), strict=True):
        assert torch.equal(actual, expected)
    config = describe(module)
    assert config.encoder is not None
    assert config.decoder.cross_attention is not None
    assert (config.encoder.d_model, config.decoder.d_model) == (16, 12)
    assert (config.encoder.embedding_scale, config.decoder.embedding_scale) == (2.5, 1.0)
    assert (config.encoder.order, config.decoder.order) == ("pre", "post")
    assert (config.head_bias, config.head_scale, config.tied) == (True, 0.5, "none")
    norm = NormPart(kind="layer", eps=1e-3, bias=True) if bias else NormPart(kind="rms", eps=1e-3)
    assert {config.decoder.norm, config.decoder.entry_norm, config.decoder.final_norm} == {norm}
    assert (config.decoder.attention.n_kv_heads, config.decoder.cross_attention.n_kv_heads) == (2, 4)
    assert (config.decoder.attention.bias, config.decoder.attention.out_bias) == (bias, True)
    assert config.decoder.attention.scale == pytest.approx(0.3)
    assert config.decoder.positions == PositionsPart(kind="learned", max_length=1024, offset=0)


def test_a_language_model_of_ctranslate2_is_described(tmp_path: Path) -> None:
    torch.manual_seed(0)
    table = torch.randn(V, 16)
    stored = variables("decoder", 16) | {"decoder/embeddings/weight": table, "decoder/projection/weight": table}
    module = read_module(Variables(stored), has_encoder=False)
    for actual, expected in zip(answers(module), answers(rebuilt(module, tmp_path)), strict=True):
        assert torch.equal(actual, expected)
    assert describe(module).tied == "output"


def test_equal_weights_stored_once_are_not_tied(tmp_path: Path) -> None:
    """One matrix under two scales, and a norm that happens to be another's: neither is tied."""
    torch.manual_seed(0)
    table = torch.randn(V, 16)
    stored = variables("encoder", 16) | variables("decoder", 16, d_memory=16)
    stored |= dict.fromkeys((f"{name}/weight" for name in ("encoder/embeddings_0", "decoder/embeddings")), table)
    stored |= {"decoder/projection/weight": table, "encoder/scale_embeddings": torch.tensor(2.5)}
    stored["decoder/layer_1/ffn/layer_norm/gamma"] = stored["decoder/layer_0/ffn/layer_norm/gamma"]
    module: Any = read_module(Variables(stored), has_encoder=True)
    assert describe(module).tied == "output"
    again = rebuilt(module, tmp_path)
    for actual, expected in zip(answers(module), answers(again), strict=True):
        assert torch.equal(actual, expected)
    with torch.no_grad():
        module.target_embedding.weight.zero_()
        module.decoder.layers[0].feed_forward.norm.weight.zero_()
    assert module.source_embedding.weight.equal(table)
    assert module.decoder.layers[1].feed_forward.norm.weight.equal(again.decoder.layers[1].feed_forward.norm.weight)


ATTENTION = AttentionPart(n_heads=4, n_kv_heads=4, d_head=6, bias=True, out_bias=True, dropout=0.2)
STACK = StackPart(
    d_model=D,
    n_layers=2,
    attention=ATTENTION,
    feed_forward=FeedForwardPart(kind="plain", d_ff=40, activation="relu", bias=True, dropout=0.3),
    norm=NormPart(kind="layer", eps=1e-5, bias=True),
    order="post",
    positions=PositionsPart(kind="sinusoidal", max_length=LIMIT, layout="interleaved"),
    embedding_scale=D**0.5,
    dropout=0.1,
    entry_dropout=0.1,
)


def test_the_described_config_matches_the_family() -> None:
    model = build(ORIGINAL, dropout=0.1, attention_dropout=0.2, activation_dropout=0.3)
    decoder = STACK.changed(n_layers=3, cross_attention=ATTENTION)
    assert describe(model) == ComposedConfig(vocab_size=V, encoder=STACK, decoder=decoder, tied="all")


@pytest.mark.parametrize("name", ["original apart", "t5 v1.1", "mistral"])
def test_a_deepcopy_has_the_same_description(name: str) -> None:
    module = MODELS[name]()
    assert describe(copy.deepcopy(module)) == describe(module)


def _changed(module: Any, path: str, part: object) -> Any:
    """Replace the part at a place of a module."""
    parent, _, name = path.rpartition(".")
    setattr(module.get_submodule(parent), name, part)
    return module


def changed(name: str, path: str, part: object) -> Callable[[], Any]:
    return lambda: _changed(MODELS[name](), path, part)


class Louder(core.RMSNorm):
    """Made from a known part, it may do anything."""


class Past(type(core.causal().parts[0])):  # type: ignore[misc]
    """A rule made from a known one."""


def sharing_layers() -> Any:
    module = MODELS["llama"]()
    module.decoder.layers[2] = module.decoder.layers[0]
    return module


def sharing_a_weight() -> Any:
    module = MODELS["original apart"]()
    module.head.embedding.weight = module.target_embedding.weight
    return module


RECURRENT = {"family": "recurrent", "vocab_size": V, "d_model": D}
BERT = {"family": "bert", "vocab_size": V, "d_model": D, "n_heads": 4}
LAYER = "decoder.layers.0"
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "another wiring": (partial(build, BERT), "the model is EncoderOnly"),
    "recurrent": (partial(build, RECURRENT), "encoder is RecurrentEncoder"),
    "no layers": (changed("llama", "decoder.layers", nn.ModuleList()), "decoder.layers is empty"),
    "a part made from a known one": (
        changed("llama", "decoder.layers.2.feed_forward.norm", Louder(D)),
        r"decoder\.layers\.2\.feed_forward\.norm is Louder.* RMSNorm there",
    ),
    "the same in the first layer": (
        changed("llama", f"{LAYER}.self_attention.norm", Louder(D)),
        "attention.norm is Louder",
    ),
    "at the end": (changed("llama", "decoder.norm", Louder(D)), r"^decoder\.norm is Louder"),
    "another map": (
        changed("gpt2", f"{LAYER}.self_attention.sublayer.out_proj", nn.Bilinear(2, 2, 2)),
        "sublayer.out_proj is Bilinear",
    ),
    "another map in another layer": (
        changed("gpt2", "decoder.layers.1.self_attention.sublayer.kv_proj", nn.Identity()),
        r"layers\.1\.self_attention\.sublayer\.kv_proj is Identity.*Linear",
    ),
    "no dropout": (changed("gpt2", f"{LAYER}.feed_forward.dropout", None), "feed_forward.dropout is left out"),
    "a layer in another order": (
        lambda: _changed(MODELS["gpt2"](), "decoder.layers.1", build(ORIGINAL).get_submodule("encoder.layers.0")),
        r"decoder\.layers\.1\.self_attention is PostNorm.*PreNorm",
    ),
    "a layer with another epsilon": (
        changed("gpt2", "decoder.layers.1.feed_forward.norm.eps", 1e-6),
        r"decoder\.layers\.1\.feed_forward\.norm\.eps is 1e-06.*0\.001",
    ),
    "a layer with another width": (
        changed("original", "encoder.layers.1.feed_forward.sublayer", core.FeedForward(D, 41)),
        r"encoder\.layers\.1\.feed_forward\.sublayer\.up_proj\.out_features is 41.*40",
    ),
    "a layer without a bias": (
        changed("original", "encoder.layers.1.self_attention.sublayer.q_proj.bias", None),
        r"encoder\.layers\.1\.self_attention\.sublayer\.q_proj\.bias is left out.*\(24,\)",
    ),
    "a bias of one map alone": (
        changed("original", f"{LAYER}.self_attention.sublayer.q_proj.bias", None),
        "kv_proj.bias is",
    ),
    "another activation": (
        changed("original", f"{LAYER}.feed_forward.sublayer.activation", torch.sigmoid),
        r"decoder\.layers\.0\.feed_forward\.sublayer\.activation is .*sigmoid.*relu or gelu",
    ),
    "another activation later": (
        changed("original", "decoder.layers.2.feed_forward.sublayer.activation", torch.tanh),
        r"decoder\.layers\.2\.feed_forward\.sublayer\.activation is .*tanh",
    ),
    "a mask": (changed("gpt2", "decoder.mask", core.everything()), r"decoder\.mask is everything\(\)"),
    "a rule made from a known one": (changed("gpt2", "decoder.mask", core.Mask((Past(),))), r"decoder\.mask is causal"),
    "positions both ways": (
        changed("t5", "decoder.positions", core.Relative(4)),
        r"decoder\.positions\.causal is False",
    ),
    "another scaling": (changed("llama", "decoder.positions.scaling", torch.sqrt), r"decoder\.positions\.scaling is"),
    "a method on top": (changed("llama", "decoder.forward", lambda x: x), r"decoder\.forward is <function"),
    "a part too many": (changed("llama", f"{LAYER}.adapter", nn.Linear(2, 2)), f"{LAYER}.adapter is Linear.*left out"),
    "a transform": (changed("original", "head.transform", nn.Linear(D, D)), "head.transform is Linear"),
    "segments": (
        lambda: _changed(MODELS["original apart"](), "source_embedding", core.TokenEmbedding(V, D, n_segments=2)),
        r"source_embedding\.segments is \(2, 24\).*left out",
    ),
    "an output of another embedding": (
        lambda: _changed(m := build(ORIGINAL, tied="none"), "head.embedding", m.source_embedding),
        r"head\.embedding is TokenEmbedding.*OutputEmbedding",
    ),
    "layers that are one": (sharing_layers, r"decoder\.layers\.2\..* one with decoder\.layers\.0"),
    "weights that are one": (sharing_a_weight, r"head\.embedding\.weight is .* one with target_embedding\.weight"),
}


@pytest.mark.parametrize(("make", "word"), REFUSED.values(), ids=REFUSED)
def test_a_part_that_cannot_be_described_is_named_with_its_place(make: Callable[[], Any], word: str) -> None:
    with pytest.raises(DescriptionError, match=word):
        describe(make())


def test_hooks_notes_and_training_mode_do_not_change_the_description() -> None:
    module = MODELS["llama"]()
    before = describe(module)
    module.note = "read on a Sunday"
    module.register_forward_hook(lambda *_: None)
    answers(module)
    assert describe(module.train()) == before


DECODER_ONLY = ComposedConfig(vocab_size=V, decoder=STACK)
IMPOSSIBLE: dict[str, tuple[Callable[[], object], str]] = {
    "a field of another kind": (lambda: PositionsPart(kind="alibi", offset=2), "offset does not apply to the kind 'al"),
    "a field left out": (lambda: PositionsPart(kind="learned", max_length=3), "the kind 'learned' needs offset"),
    "a bias of an rms norm": (lambda: NormPart(kind="rms", eps=1e-6, bias=True), "bias does not apply"),
    "an odd width": (lambda: PositionsPart(kind="rotary", base=1e4, width=5, interleaved=True), "width=5 must be even"),
    "no near distances": (lambda: PositionsPart(kind="relative", n_buckets=8, max_distance=4), "n_buckets=8"),
    "heads that do not divide": (lambda: AttentionPart(n_heads=4, n_kv_heads=3), "not divisible by n_kv_heads=3"),
    "a width that does not divide": (lambda: STACK.changed(cross_attention=AttentionPart(n_heads=5)), "n_heads=5"),
    "turning more than there is": (
        lambda: STACK.changed(positions=PositionsPart(kind="rotary", base=1e4, width=8, interleaved=True)),
        "width=8 features, but heads have 6",
    ),
    "nothing to read": (
        lambda: DECODER_ONLY.changed(decoder=STACK.changed(cross_attention=ATTENTION)),
        "cross_attention needs an encoder",
    ),
    "nobody reads": (lambda: DECODER_ONLY.changed(encoder=STACK), "needs cross_attention"),
    "an encoder that reads": (
        lambda: DECODER_ONLY.changed(
            encoder=STACK.changed(cross_attention=ATTENTION), decoder=STACK.changed(cross_attention=ATTENTION)
        ),
        "an encoder has no cross_attention",
    ),
    "tied to nothing": (lambda: DECODER_ONLY.changed(tied="all"), 'tied="output" or "none", not \'all\''),
    "tied across widths": (
        lambda: DECODER_ONLY.changed(
            encoder=STACK.changed(embedding_scale=2.0),
            decoder=STACK.changed(cross_attention=ATTENTION),
            tied="embeddings",
        ),
        r"the source has \(37, 24, 2\.0\)",
    ),
}


@pytest.mark.parametrize(("make", "word"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_config_that_cannot_be_built_is_refused(make: Callable[[], object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        make()
