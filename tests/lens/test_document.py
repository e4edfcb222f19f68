"""The document's arrays, attentions, layers and positions, against formulas; and that it stays small."""

from __future__ import annotations

import base64
import json
import math
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import heedful
from every_model import LIMIT, MODELS, SCHEMES, D, H, V, build
from heedful import core
from heedful.errors import RecordingError
from heedful.families.original import OriginalConfig
from heedful.lens.document import Arrays, attentions, facts, kind_of_weights, layers, positions_of, unpacked
from heedful.lens.recorder import Look, Recording
from heedful.lens.trace import Trace, trace

TYPES = {"float32": "<f4", "float16": "<f2", "uint8": "u1"}
DECIMALS = {"decimal4": 1e-4, "decimal3": 1e-3}
Entry = dict[str, Any]


def read(arrays: Arrays, name: str) -> NDArray[Any]:
    """As a page or a script reads it: from JSON."""
    entry = json.loads(json.dumps(arrays.to_dict(with_data=True)))[name]
    data = zlib.decompress(base64.b64decode(entry["data"]))
    if (unit := DECIMALS.get(entry["type"])) is None:
        return np.frombuffer(data, TYPES[entry["type"]]).reshape(entry["shape"])
    low, high = data[: len(data) // 2], data[len(data) // 2 :]
    return np.array([(a + 256 * b) * unit for a, b in zip(low, high, strict=True)]).reshape(entry["shape"])


def traced(model: Any, n_source: int = 6, n_target: int = 5) -> Trace:
    source, target = torch.randint(1, V, (1, n_source)), torch.randint(1, V, (1, n_target))
    with torch.no_grad(), trace(model) as seen:
        model(source, target) if isinstance(model, core.EncoderDecoder) else model(source)
    return seen


def written(seen: Trace, room: int = 1_200_000) -> tuple[list[Entry], Arrays]:
    arrays = Arrays()
    return attentions(seen, arrays, room), arrays


@pytest.mark.parametrize("kind", TYPES)
def test_an_array_comes_back_from_its_text(kind: Any) -> None:
    arrays = Arrays()
    values = torch.arange(24, dtype=torch.float64).view(2, 3, 4)
    names = [arrays.put(values, kind), arrays.put(values.transpose(0, 2).bfloat16(), kind), arrays.put([[1, 2]], kind)]
    assert names == ["a0", "a1", "a2"]
    for name, wanted in zip(names, (values, values.transpose(0, 2), torch.tensor([[1, 2]])), strict=True):
        np.testing.assert_array_equal(read(arrays, name), wanted.numpy())
    assert arrays.to_dict(with_data=False)["a0"] == {"shape": [2, 3, 4], "type": kind}


def test_what_a_type_cannot_hold_is_kept_wider_or_refused() -> None:
    arrays = Arrays()
    large = arrays.put(torch.tensor([1.0, 70_000.0, math.inf]), "float16")
    assert arrays.to_dict(with_data=False)[large]["type"] == "float32"
    assert read(arrays, large).tolist() == [1.0, 70_000.0, math.inf]
    assert arrays.put([-math.inf, 1.0], "float16") == "a1"
    assert arrays.to_dict(with_data=False)["a1"]["type"] == "float16"
    for wrong in ([-1, 4], [256], [math.nan]):
        with pytest.raises(ValueError, match="0 to 255"):
            arrays.put(wrong, "uint8")


@pytest.mark.parametrize(("kind", "unit"), DECIMALS.items())
def test_rounded_shares_are_the_nearest_and_python_reads_what_a_page_reads(kind: Any, unit: float) -> None:
    shares = torch.rand(7, 90).pow(4)
    arrays = Arrays()
    arrays.put(shares, kind)
    again = read(arrays, "a0")
    np.testing.assert_allclose(again / unit, np.rint(again / unit), atol=1e-6)
    np.testing.assert_allclose(again, shares.numpy(), rtol=0, atol=unit / 2 + 1e-8)
    np.testing.assert_allclose(unpacked(arrays.to_dict(with_data=True)["a0"]), again, rtol=1e-6)
    with pytest.raises(ValueError, match=f"{kind} holds 0 to"):
        arrays.put([-unit], kind)


def test_an_array_is_a_copy() -> None:
    values, arrays = torch.ones(3), Arrays()
    arrays.put(values)
    values.zero_()
    assert read(arrays, "a0").tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "one vector"])
def test_every_model_is_plain_json_with_the_recorder_s_weights(name: str) -> None:
    seen = traced(build(name))
    result, arrays = written(seen)
    json.dumps([result, layers(seen, arrays)], allow_nan=False)
    assert len({attention["id"] for attention in result}) == len(result) == len(seen.looks)
    for attention, look in zip(result, seen.looks, strict=True):
        assert attention["id"] == f"{look.stack}.{look.kind}.{look.layer}"
        assert attention["queries"] == ("source" if look.stack == "encoder" else "target")
        assert attention["keys"] == ("target" if (look.stack, look.kind) == ("decoder", "self") else "source")
        assert attention["causal"] == ((look.stack, look.kind) == ("decoder", "self"))
        assert len(attention["heads"]) == look.weights.shape[1]
        for head, weights in zip(attention["heads"], look.weights[0], strict=True):
            values = read(arrays, head["weights"])
            assert values.dtype == np.float32
            np.testing.assert_array_equal(values, weights.float().numpy())
            np.testing.assert_allclose(values.sum(axis=-1), 1, rtol=0, atol=1e-6)
            assert head["distance"] == (None if look.kind == "cross" else pytest.approx(distance(values), abs=1e-6))
            assert head["entropy"] == pytest.approx(entropy(values), abs=1e-6)


def distance(weights: NDArray[Any]) -> float:
    n_queries, n_keys = weights.shape
    return sum(weights[q, k] * abs(k - q) for q in range(n_queries) for k in range(n_keys)) / n_queries


def entropy(weights: NDArray[Any]) -> float:
    return -sum(w * math.log2(w) for w in weights.flatten().tolist() if w) / len(weights)


def of_ones(n_layers: int, weights: Tensor) -> Trace:
    looks = [Look("", "encoder", "self", layer, (0,), weights) for layer in range(n_layers)]
    return Trace(Recording(looks))


def test_long_inputs_have_rounded_weights_and_stay_small() -> None:
    """12 layers of 12 heads: exact for 100 tokens, four digits for 230, three for 300, four if half of them are 0."""
    for length, kind in ((100, "float32"), (103, "decimal4"), (230, "decimal4"), (300, "decimal3")):
        assert kind_of_weights(of_ones(12, torch.ones(1).expand(1, 12, length, length))) == kind
    assert kind_of_weights(of_ones(12, torch.ones(300, 300).tril().expand(1, 12, 300, 300))) == "decimal4"
    peaked = torch.randn(300, 300).mul(2).softmax(dim=-1)
    arrays = Arrays()
    for name in (arrays.put(peaked, "decimal3"), arrays.put(peaked.tril(), "decimal4")):
        assert 144 * len(arrays.to_dict(with_data=True)[name]["data"]) < 11_000_000


def test_rounded_weights_say_so_and_what_follows_from_them_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = traced(build("sinusoidal"))
    exact, _ = written(seen)
    monkeypatch.setattr("heedful.lens.document.EXACT", 10)
    result, arrays = written(seen)
    for attention, as_it_was, look in zip(result, exact, seen.looks, strict=True):
        for head, other, weights in zip(attention["heads"], as_it_was["heads"], look.weights[0], strict=True):
            assert arrays.to_dict(with_data=False)[head["weights"]]["type"] == "decimal4"
            np.testing.assert_allclose(read(arrays, head["weights"]), weights.numpy(), rtol=0, atol=5.1e-5)
            assert (head["distance"], head["entropy"]) == (other["distance"], other["entropy"])


def test_the_recurrent_model_has_one_attention_with_one_head() -> None:
    seen = traced(build("additive"))
    (attention,), arrays = written(seen)
    assert (attention["id"], len(attention["heads"]), attention["numbers"]) == ("decoder.cross.0", 1, None)
    assert layers(seen, arrays) == []


@pytest.mark.parametrize("name", ["relative", "alibi", "rotary"])
def test_numbers_give_the_weights_again_as_the_page_computes_them(name: str) -> None:
    """By the contract's own words: head h uses key h·G//H, scores are scaled and moved, later keys hidden."""
    result, arrays = written(traced(build(name)))
    for attention in result:
        numbers = attention["numbers"]
        query, key, value, mixed = (read(arrays, numbers[part]) for part in ("query", "key", "value", "mixed"))
        n_heads, n_shared = len(query), len(key)
        assert (n_heads, n_shared) == (H, 2)
        assert read(arrays, numbers["x"]).shape == (query.shape[1], D)
        assert (numbers["bias"] is None) == (name == "rotary" or attention["kind"] == "cross")
        for h, head in enumerate(attention["heads"]):
            shared = h * n_shared // n_heads
            scores = query[h].astype(np.float64) @ key[shared].T.astype(np.float64) * numbers["scale"]
            if numbers["bias"] is not None:
                scores += read(arrays, numbers["bias"])[h]
            if attention["causal"]:
                scores = np.where(np.tril(np.ones(scores.shape, dtype=bool)), scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            np.testing.assert_allclose(weights, read(arrays, head["weights"]), rtol=0, atol=1e-2)
            by_hand = read(arrays, head["weights"]) @ value[shared].astype(np.float64)
            np.testing.assert_allclose(by_hand, mixed[h], rtol=2e-3, atol=2e-2)


def test_a_stack_s_bias_is_written_once() -> None:
    result, _ = written(traced(build("relative")))
    biases = {attention["id"]: attention["numbers"]["bias"] for attention in result}
    assert biases["encoder.self.0"] == biases["encoder.self.1"] != biases["decoder.self.0"]


def test_numbers_are_those_there_is_room_for() -> None:
    seen = traced(build("sinusoidal", n_encoder_layers=4, n_decoder_layers=3), 6, 5)
    one = {  # float16: x, queries and sums of 4 heads, keys and values of 2, each head 4 wide
        ("encoder", "self"): 2 * (6 * D + 2 * 6 * 16 + 2 * 6 * 8),
        ("decoder", "self"): 2 * (5 * D + 2 * 5 * 16 + 2 * 5 * 8),
        ("decoder", "cross"): 2 * (5 * D + 2 * 5 * 16 + 2 * 6 * 8),
    }
    every = {look_id(look): one[look.stack, look.kind] for look in seen.looks}
    ends = {name: size for name, size in every.items() if name.endswith("0") or name in LAST}
    for room, wanted in (
        (sum(every.values()), set(every)),
        (sum(every.values()) - 1, set(ends)),
        (sum(ends.values()), set(ends)),
        (sum(ends.values()) - 1, set()),
    ):
        result, _ = written(seen, room)
        assert {attention["id"] for attention in result if attention["numbers"]} == wanted
        assert {attention["id"] for attention in result if attention["causal"]} == {
            name for name in every if name.startswith("decoder.self")
        }


LAST = ("encoder.self.3", "decoder.self.2", "decoder.cross.2")


def look_id(look: Any) -> str:
    return f"{look.stack}.{look.kind}.{look.layer}"


@pytest.mark.parametrize("name", ["sinusoidal", "pre-norm", "rotary language model"])
def test_layers_say_what_was_traced(name: str) -> None:
    seen = traced(build(name))
    arrays = Arrays()
    for layer, result in zip(seen.layers, layers(seen, arrays), strict=True):
        decoder = result["stack"] == "decoder"
        assert (result["order"], result["norm"]) == (("pre", "rms") if name == "pre-norm" else ("post", "layer"))
        assert result["sequence"] == ("target" if decoder else "source")
        assert [norm["name"] for norm in result["norms"]] == list(layer.parts)
        for norm, part in zip(result["norms"], layer.parts.values(), strict=True):
            np.testing.assert_array_equal(read(arrays, norm["before"]), part.before.numpy())
            np.testing.assert_array_equal(read(arrays, norm["after"]), part.after.numpy())
        residual = read(arrays, result["residual"])
        assert residual.shape == (len(part.entry), len(layer.parts) + 1)
        np.testing.assert_array_equal(residual[:, 0], next(iter(layer.parts.values())).entry.numpy())
        np.testing.assert_array_equal(residual[:, -1], part.added.numpy())


def neurons(model: Any) -> tuple[list[list[float]], list[float]]:
    """Those of the encoder's first layer, noted by the test itself, and the share of silent ones the document says."""
    noted: list[Tensor] = []
    narrow = model.encoder.layers[0].feed_forward.sublayer.down_proj
    narrow.register_forward_pre_hook(lambda _, args: noted.append(args[0][0]))
    arrays = Arrays()
    first = layers(traced(model), arrays)[0]
    hidden, strength = read(arrays, first["hidden"]), noted[0].abs().numpy()
    assert hidden.shape == (6, 128)
    np.testing.assert_array_equal(hidden, np.ceil(255 * strength[:, :128] / strength.max()))
    return strength.tolist(), read(arrays, first["zeros"]).tolist()


def test_zeros_of_relu_are_counted_exactly() -> None:
    strengths, zeros = neurons(build("sinusoidal", d_ff=200))
    counts = [sum(value == 0 for value in token) for token in strengths]
    assert len(set(counts)) > 1
    assert zeros == pytest.approx([count / 200 for count in counts])


def test_neurons_that_are_never_zero_are_silent_when_faint() -> None:
    strengths, zeros = neurons(build("pre-norm", d_ff=200, activation="gelu"))
    largest = max(map(max, strengths))
    counts = [sum(value < largest / 100 for value in token) for token in strengths]
    assert len(set(counts)) > 1
    assert zeros == pytest.approx([count / 200 for count in counts])


def test_a_faint_neuron_is_not_shown_as_none_and_a_dead_layer_is() -> None:
    model = build("sinusoidal")
    for wide in (layer.feed_forward.sublayer.up_proj for layer in model.encoder.layers):
        torch.nn.init.zeros_(wide.weight)
        torch.nn.init.zeros_(wide.bias)
    with torch.no_grad():
        model.encoder.layers[1].feed_forward.sublayer.up_proj.bias[:2] = torch.tensor([1e-6, 1.0])
    arrays = Arrays()
    inactive, faint = (layer for layer in layers(traced(model), arrays) if layer["stack"] == "encoder")
    assert not read(arrays, inactive["hidden"]).any()
    assert read(arrays, inactive["zeros"]).tolist() == [1] * 6
    assert read(arrays, faint["hidden"])[0, :3].tolist() == [1, 255, 0]


def test_broken_weights_are_refused() -> None:
    model = build("sinusoidal")
    torch.nn.init.constant_(model.encoder.layers[1].self_attention.sublayer.q_proj.weight, math.nan)
    with pytest.raises(RecordingError, match=r"encoder\.layers\.1.* not finite"):
        written(traced(model))


@pytest.mark.parametrize("name", [*SCHEMES, "alibi language model", "additive"])
def test_positions_follow_their_formulas(name: str) -> None:
    model, arrays = build(name), Arrays()
    result = positions_of(model, arrays)
    scheme = name.removesuffix(" language model")
    if scheme in ("none", "additive"):
        assert result is None
        return
    assert result is not None
    assert result["scheme"] == scheme
    if scheme in ("relative", "alibi"):
        bias = read(arrays, result["bias"])
        assert (bias.shape, result["table"], result["similarity"], result["length"]) == ((H, 64, 64), None, None, 64)
        for h, q, k in ((0, 3, 10), (3, 50, 50), (2, 63, 1)):
            wanted = -(2.0 ** (-2 * (h + 1))) * abs(k - q)
            if scheme == "relative":
                table = model.encoder.positions
                wanted = table.weight[int(table.buckets(torch.tensor(k - q))), h].item()
            assert bias[h, q, k] == pytest.approx(wanted, rel=1e-6)
        return
    length = LIMIT if scheme == "learned" else 100
    table, similarity = read(arrays, result["table"]), read(arrays, result["similarity"])
    assert (result["bias"], result["length"], len(table), similarity.shape) == (None, length, length, (length, length))
    np.testing.assert_allclose(np.diag(similarity), 1, atol=1e-6)
    for i, j in ((0, 7), (39, 20)):
        if scheme == "rotary":
            turns = [(i - j) * 10000 ** (-pair / 2) for pair in range(2)]  # heads are 4 wide: two pairs
            assert table[i].tolist() == pytest.approx(
                [math.cos(i * 10000 ** (-pair / 2)) for pair in range(2)], abs=1e-5
            )
            wanted = sum(map(math.cos, turns)) / 2
        else:
            wanted = float(table[i] @ table[j] / np.linalg.norm(table[i]) / np.linalg.norm(table[j]))
        assert similarity[i, j] == pytest.approx(wanted, abs=1e-5)
    if scheme == "learned":
        np.testing.assert_array_equal(table, model.encoder.positions.weight.detach().float().numpy())


def test_a_wide_table_is_cut_and_its_likeness_is_not() -> None:
    arrays = Arrays()
    result = positions_of(heedful.build("tiny", vocab_size=V, d_model=256), arrays)
    assert result is not None
    assert read(arrays, result["table"]).shape == (100, 128)
    whole = core.Sinusoidal(256).table(100)
    wanted = torch.nn.functional.cosine_similarity(whole[:1], whole[90:91]).item()
    assert read(arrays, result["similarity"])[0, 90] == pytest.approx(wanted, abs=1e-5)


def test_facts_are_the_config_s_single_values() -> None:
    facts_by_name = dict(map(tuple, facts(OriginalConfig(d_model=64))))
    assert facts_by_name["d_model"] == 64
    assert facts_by_name["norm"] == "post"
    assert "family" not in facts_by_name
    assert None not in facts_by_name.values()  # n_kv_heads is the same as n_heads, unless given


@pytest.mark.parametrize(("n_source", "n_target", "n_with_numbers"), [(30, 30, 6), (300, 2, 0)])
def test_a_document_of_the_base_size_stays_small(n_source: int, n_target: int, n_with_numbers: int) -> None:
    """Numbers are shown for the first and last layers of 30 tokens, and for no layer of 300."""
    model = heedful.build("base", vocab_size=V).eval()
    seen = traced(model, n_source, n_target)
    result, arrays = written(seen)
    document = {"attentions": result, "layers": layers(seen, arrays), "positions": positions_of(model, arrays)}
    assert sum(attention["numbers"] is not None for attention in result) == n_with_numbers
    if n_source == 30:
        document["arrays"] = arrays.to_dict(with_data=True)
        assert len(json.dumps(document)) < 2_600_000
