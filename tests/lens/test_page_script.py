"""The page's own modules, run by node where there is one: numbers, colors, and what the reader has chosen."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import zlib
from typing import Any

import numpy as np
import pytest

from heedful.lens.page import bundle
from heedful.lens.page.rendering import HERE, Page, catalog, modules, script

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node to run the page's script")
BROWSER = """
globalThis.frames = [];
globalThis.requestAnimationFrame = (callback) => frames.push(callback);
globalThis.document = {
  hidden: false, readyState: "complete", documentElement: { dataset: { theme: "light" } },
  createElement: () => ({ getContext: () => ({}) }),
};
"""


def run(code: str, given: object = None) -> Any:
    """What `code`, a module beside the page's, prints as JSON; `given` is there by this name."""
    sources = {**modules("look"), "tried.js": code}
    whole = f"{BROWSER}const given = {json.dumps(given)};\n{bundle(sources, 'tried.js')}"
    done = subprocess.run([str(NODE), "-"], input=whole, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def packed(array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(zlib.compress(array.tobytes())).decode()
    return {"shape": list(array.shape), "type": str(array.dtype), "data": data}


@pytest.mark.parametrize("page", ["look", "report"])
def test_the_whole_script_is_one_that_an_engine_can_read(page: Page) -> None:
    done = subprocess.run(
        [str(NODE), "--check", "-"], input=script(page), capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr


def test_arrays_come_back_bit_for_bit() -> None:
    halves = np.arange(65536, dtype="<u2").view("<f2")
    numbers = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("<f4")
    small = np.arange(6, dtype="u1").reshape(2, 3)
    given = {"half": packed(halves), "full": packed(numbers), "small": packed(small)}
    code = """import { createArrays } from "./arrays.js";
const arrays = createArrays(given);
Promise.all(["half", "full", "small"].map((id) => arrays.get(id))).then(([half, full, small]) => {
  const bits = Buffer.from(half.data.buffer).toString("base64");
  const same = arrays.get("half") === arrays.get("half");
  console.log(JSON.stringify({ bits, at: full.at(1, 2, 3), shape: full.shape, small: [...small.data], same }));
});"""
    got = run(code, given)
    read = np.frombuffer(base64.b64decode(got["bits"]), "<f4")
    np.testing.assert_array_equal(read, halves.astype("<f4"))
    assert np.float32(got["at"]) == numbers[1, 2, 3]
    assert (got["shape"], got["small"], got["same"]) == ([2, 3, 4], [0, 1, 2, 3, 4, 5], True)


def test_least_recently_used_arrays_are_evicted() -> None:
    given = {name: packed(np.zeros((5, 5), dtype="<f4")) for name in "abc"}
    code = """import { createArrays } from "./arrays.js";
const arrays = createArrays(given, 250);
const [a, b] = [arrays.get("a"), arrays.get("b")];
const again = arrays.get("a") === a;
arrays.get("c");
const lately = arrays.get("a") === a, long = arrays.get("b") === b;
const alone = createArrays(given, 1);
const kept = alone.get("a") === alone.get("a");
Promise.all([arrays.get("b"), alone.get("c")]).then((read) =>
  console.log(JSON.stringify({ again, lately, long, kept, shapes: read.map((array) => array.shape) })));"""
    shapes = [[5, 5], [5, 5]]
    assert run(code, given) == {"again": True, "lately": True, "long": False, "kept": True, "shapes": shapes}


def luminance(color: list[int]) -> float:
    parts = np.array(color) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_color_ramps_are_monotonic_and_text_on_them_is_legible(theme: str) -> None:
    code = """import { divergingBytes, ink, shade, shadeBytes } from "./color.js";
document.documentElement.dataset.theme = given;
const steps = [...Array(101).keys()].map((step) => step / 100);
const ramp = steps.map(shadeBytes);
const opposed = [steps.map(divergingBytes), steps.map((step) => divergingBytes(-step))];
console.log(JSON.stringify({ ramp, opposed, inks: steps.map((step) => ink(shade(step))) }));"""
    got = run(code, theme)
    away = -1 if theme == "light" else 1
    for ramp in (got["ramp"], *got["opposed"]):
        assert (away * np.diff([luminance(color) for color in ramp]) >= 0).all()
    for color, ink in zip(got["ramp"], got["inks"], strict=True):
        ground, text = luminance(color) + 0.05, luminance([int(ink[at : at + 2], 16) for at in (1, 3, 5)]) + 0.05
        assert max(ground, text) / min(ground, text) >= 4.5


def test_listeners_are_called_once_a_frame_and_only_for_their_keys() -> None:
    code = """import { createState } from "./state.js";
const state = createState({ step: 0, head: 0, pair: { query: 0, key: 0 } });
const heard = [];
state.on(["step", "pair"], () => heard.push(state.get("step")));
state.set({ step: 1 });
state.set({ step: 2, head: 1 });
const early = heard.length;
frames.splice(0).forEach((frame) => frame());
state.set({ head: 2 });
state.set({ pair: { query: 0, key: 0 } });
const idle = frames.length;
console.log(JSON.stringify({ heard, early, idle }));"""
    assert run(code) == {"heard": [2], "early": 0, "idle": 0}


def chosen(changes: dict[str, Any]) -> dict[str, Any]:
    """The state of a two-layer translator of 5 and 4 tokens after one change."""
    kinds = [("encoder", "self", 4, "source"), ("decoder", "self", 2, "target"), ("decoder", "cross", 2, "source")]
    attentions: list[dict[str, Any]] = [
        {
            "id": f"{stack}.{kind}.{layer}",
            "stack": stack,
            "kind": kind,
            "layer": layer,
            "queries": "source" if stack == "encoder" else "target",
            "keys": keys,
            "heads": [{}] * heads,
        }
        for layer in range(2)
        for stack, kind, heads, keys in kinds
    ]
    doc = {
        "kind": "translation",
        "sequences": {"source": [{}] * 5, "target": [{}] * 4},
        "attentions": attentions,
        "layers": [],
    }
    code = """import { firstChoice, reconciler } from "./choice.js";
import { createState } from "./state.js";
const first = firstChoice(given.doc);
const state = createState(first, reconciler(given.doc));
for (const change of given.changes) state.set(change);
console.log(JSON.stringify(Object.fromEntries(Object.keys(first).map((key) => [key, state.get(key)]))));"""
    return run(code, {"doc": doc, "changes": [changes]})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"attention": "decoder.cross.1", "head": "mean", "step": 2}),
        ({"attention": "encoder.self.0"}, {"head": "mean"}),
        ({"head": 3}, {"head": 1}),
        ({"attention": "encoder.self.1", "head": 3}, {"head": 3}),
        ({"step": -1}, {"step": 0}),
        ({"step": 9}, {"step": 3}),
        ({"pair": {"query": 9, "key": 9}}, {"pair": {"query": 3, "key": 4}}),
    ],
)
def test_choices_are_reconciled_with_the_document(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    state = chosen(changes)
    assert {key: state[key] for key in expected} == expected


def test_a_partial_character_is_described_in_words() -> None:
    code = """import { section, translator } from "./i18n.js";
import { messages } from "./messages.js";
import { textBefore } from "./generation/answer.js";
const read = { en: { read: "“{a}” came before “{b}”." }, ko: {} };
const t = translator([read, section(messages, "common")], { get: () => "en" });
const target = [["", true], ["◌", true], ["뷁", false], ["고◌", true], ["양", false]];
const tokens = target.map(([text, part], place) => ({ text, part, word: place < 3 ? 0 : 1, special: place === 0 }));
const doc = { answer: "", question: "", sequences: { target: tokens } };
console.log(JSON.stringify([t("read", { a: "◌", b: "◌" }), [1, 2, 3, 4].map((row) => textBefore(doc, row))]));"""
    assert run(code) == ["A part of a character came before a part of a character.", ["", "뷁", "뷁 고", "뷁 고양"]]


def test_omitted_numbers_are_announced_and_recurrent_models_have_none() -> None:
    code = """import { fits } from "./views/numbers.js";
const attentions = [{ numbers: null }];
console.log(JSON.stringify([fits({ attentions, layers: [{}] }), fits({ attentions, layers: [] })]));"""
    assert run(code) == [True, False]


def test_every_view_of_a_look_has_its_messages() -> None:
    folder = HERE / "script" / "views"
    declared = re.compile(r'^(?:export const (?:\w+ = \{ )?|  )name(?: =|:) "(\w+)"', re.M)
    views = {name for path in folder.glob("*.js") for name in declared.findall(path.read_text("utf-8"))}
    sections = catalog("en")["look"]
    assert views == set(sections)
    for name, messages in sections.items():
        assert {"title", "simple", "deep"} <= set(messages), f"the messages of {name}"


def test_a_message_is_in_the_language_of_the_moment_or_in_english() -> None:
    code = """import { translator } from "./i18n.js";
const view = { en: { only: "English", both: "two {n}" }, ko: { both: "둘 {n}" } };
const common = { en: { shared: "all" }, ko: { shared: "모두" } };
const t = translator([view, common], { get: () => "ko" });
console.log(JSON.stringify([t("both", { n: 2 }), t("shared"), t("only"), t("none"), t.has("only"), t.has("none")]));"""
    assert run(code) == ["둘 2", "모두", "English", "none", True, False]


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [1e-14, 2e-14], [1e9, 1e9 + 1e-7], [-3.0, 1e30], [0.97, 0.99]])
def test_axes_hold_all_their_values_between_round_marks(values: list[float]) -> None:
    code = """import { roundRange, scale } from "./drawing/chart.js";
const [low, high, marks] = roundRange(given);
const at = scale([low, high], [10, 110]);
console.log(JSON.stringify({ low, high, marks, places: given.map(at) }));"""
    axis = run(code, values)
    assert axis["marks"] == sorted(set(axis["marks"]))
    assert [axis["low"], axis["high"]] == [axis["marks"][0], axis["marks"][-1]]
    assert 2 <= len(axis["marks"]) <= 7
    assert all(10 - 1e-6 <= place <= 110 + 1e-6 for place in axis["places"])
