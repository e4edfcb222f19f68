"""Exercises: solutions pass, typical mistakes are explained, and a file that crashes or hangs is reported."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import heedful
from heedful import core
from heedful.learn import exercises
from heedful.learn.chapters import LANGUAGES
from heedful.learn.exercises.cases import CASES, QUIZ
from heedful.learn.exercises.checking import ExerciseResult, examine
from heedful.learn.exercises.layout import NAMES, SOLUTIONS, messages, solution, starter
from heedful.learn.figures import figure_data
from shell import heedful as command

MISTAKES: dict[str, list[tuple[str, dict[str, str]]]] = json.loads(
    (SOLUTIONS.parent / "mistakes.json").read_text(encoding="utf-8")
)
EVERY_MISTAKE = [(int(number), index) for number, entries in MISTAKES.items() for index in range(len(entries))]


def checked(folder: Path, number: int, source: str) -> ExerciseResult:
    path = folder / f"{NAMES[number]}.py"
    path.write_text(source, encoding="utf-8")
    return examine(number, path)


@pytest.mark.parametrize("number", NAMES)
def test_the_solution_is_right(number: int) -> None:
    assert examine(number, SOLUTIONS / f"{NAMES[number]}.py") == ExerciseResult(number, "right")


@pytest.mark.parametrize(("number", "index"), EVERY_MISTAKE)
def test_a_typical_mistake_is_explained(number: int, index: int, tmp_path: Path) -> None:
    key, replacements = MISTAKES[str(number)][index]
    source = solution(number)
    for old, new in replacements.items():
        assert old in source
        source = source.replace(old, new)
    result = checked(tmp_path, number, source)
    assert (result.key, result.state) == (key, "wrong")
    for language in LANGUAGES:
        assert not re.search(r"[{}–]", result.text(language))


@pytest.mark.parametrize("number", NAMES)
def test_each_exercise_knows_five_mistakes(number: int) -> None:
    assert len({key for key, _ in MISTAKES[str(number)]}) >= 5


TORCH = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\nfrom heedful import core\n"
WRONG = {  # written without a look at the solution
    "blind rows": (
        4,
        "blind-even",
        "def attention_weights(query, key, keep=None):\n"
        "    scores = torch.einsum('bhik,bhjk->bhij', query, key) * query.size(-1) ** -0.5\n"
        "    return F.softmax(scores if keep is None else torch.where(keep, scores, -1e9), -1)\n",
    ),
    "the wrong axis": (
        4,
        "axis",
        "def attention_weights(query, key, keep=None):\n"
        "    scores = torch.exp(torch.einsum('bhik,bhjk->bhij', query, key) / 2)\n"
        "    return scores / scores.sum(dim=2, keepdim=True)\n",
    ),
    "merging by view": (
        6,
        "merged",
        "def multi_head(x, w_q, w_k, w_v, w_o, n_heads):\n"
        "    b, t, d = x.shape\n"
        "    q, k, v = [(x @ w).view(b, t, n_heads, d // n_heads).transpose(1, 2) for w in (w_q, w_k, w_v)]\n"
        "    return F.scaled_dot_product_attention(q, k, v).contiguous().view(b, t, d) @ w_o\n",
    ),
    "a loop for the table": (
        3,
        "exponent-twice",
        "import math\n"
        "def position_table(length, d_model):\n"
        "    table = torch.zeros(length, d_model)\n"
        "    for pos in range(length):\n"
        "        for i in range(0, d_model, 2):\n"
        "            table[pos, i] = math.sin(pos / 10000 ** (2 * i / d_model))\n"
        "            table[pos, i + 1] = math.cos(pos / 10000 ** (2 * i / d_model))\n"
        "    return table\n",
    ),
    "the top left": (
        8,
        "top-left",
        "def causal_mask(n_queries, n_keys):\n    return torch.arange(n_queries)[:, None] >= torch.arange(n_keys)\n",
    ),
    "additive without tanh": (
        1,
        "no-tanh",
        "def additive_scores(s, h, w1, w2, v):\n"
        "    return F.linear(F.linear(s, w1).unsqueeze(1) + F.linear(h, w2), v[None]).squeeze(-1)\n",
    ),
    "post-norm": (7, "post-for-pre", "def pre_norm(x, sublayer, norm):\n    return norm(sublayer(x) + x)\n"),
    "no end": (
        9,
        "no-end",
        "def greedy(model, memory, start, end, max_new_tokens):\n"
        "    ids, cache = [start], model.new_cache()\n"
        "    for _ in range(max_new_tokens):\n"
        "        ids.append(model.decode(torch.tensor([ids[-1:]]), memory, None, cache)[:, -1].argmax(-1).item())\n"
        "    return ids[1:]\n",
    ),
    "torch's polarity": (10, "polarity", "def key_padding_mask(keep):\n    return keep.clone()\n"),
    "labels as inputs": (11, "no-shift", "def shift(target, start):\n    return target.clone(), target\n"),
    "no type": (4, "type", "def attention_weights(query, key, keep=None):\n    pass\n"),
    "a shape": (4, "shape", "def attention_weights(query, key, keep=None):\n    return query\n"),
    "infinity": (4, "not-finite", "def attention_weights(query, key, keep=None):\n    return query @ key.mT / 0\n"),
    "numbers as a mask": (8, "dtype", "def causal_mask(n, m):\n    return torch.ones(n, m).tril()\n"),
    "no typical mistake": (5, "value", "def largest_weight(query, key, scale):\n    return 0.123\n"),
    "no typical weights": (
        4,
        "element",
        "def attention_weights(query, key, keep=None):\n    return query @ key.mT / 7\n",
    ),
    "a missing name": (4, "missing", "def weights(query, key):\n    return query\n"),
    "another signature": (4, "call", "def attention_weights(query):\n    return query\n"),
    "an exception": (4, "exception", "def attention_weights(query, key, keep=None):\n    return query @ key\n"),
    "no Python": (4, "syntax", "def attention_weights(query, key, keep=None)\n    return query @ key\n"),
    "an exit": (4, "exception", "raise SystemExit(0)\n"),
    "no entry": (12, "missing-key", "def choose_wiring():\n    return {'translate a sentence': 'encoder-decoder'}\n"),
    "half done": (
        8,
        "unfinished",
        solution(8).replace("return (torch.arange", "raise NotImplementedError\n    (0 * n_keys"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_explained(name: str, tmp_path: Path) -> None:
    number, key, source = WRONG[name]
    result = checked(tmp_path, number, source if source.startswith('"""') else TORCH + source)
    assert result.key == key
    if key in ("exception", "syntax"):
        assert result.values["line"] == 5 + (name == "an exception")


RIGHT = {
    4: "def attention_weights(query, key, keep=None):\n    return core.attention_weights(query, key, keep=keep)\n",
    6: "def multi_head(x, w_q, w_k, w_v, w_o, n_heads):\n"
    "    part = nn.MultiheadAttention(x.size(-1), n_heads, bias=False, batch_first=True)\n"
    "    part.in_proj_weight.data = torch.cat([w_q.T, w_k.T, w_v.T])\n"
    "    part.out_proj.weight.data = w_o.T\n"
    "    return part(x, x, x)[0]\n",
    8: "def causal_mask(q, k):\n    return core.causal().tensor(q, k)\n"
    "def padding_mask(lengths, n):\n    return core.padding(lengths.tolist()).tensor(1, n)\n"
    "def decoder_mask(lengths, q, k):\n    return (core.causal() & core.padding(lengths.tolist())).tensor(q, k)\n"
    "def cross_mask(lengths, targets, q, k):\n    return core.padding(lengths.tolist()).tensor(q, k)\n",
    10: "def key_padding_mask(keep):\n    return keep.logical_not()\n"
    "def attention(part, x, memory, keep):\n    return part(x, memory, memory, ~keep[:, 0, 0])[0]\n"
    "def encoder_layer(part, x, keep):\n    return part(x, src_key_padding_mask=~keep[:, 0, 0])\n"
    "def decoder_layer(part, x, memory, keep, memory_keep):\n"
    "    return part(x, memory, tgt_mask=~keep, memory_key_padding_mask=~memory_keep[:, 0, 0])\n"
    "def transformer(part, source, target, real):\n"
    "    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)\n"
    "    return part(source, target, None, causal, None, ~real, None, ~real)\n",
}


@pytest.mark.parametrize("number", RIGHT)
def test_the_parts_of_torch_and_of_the_core_are_right(number: int, tmp_path: Path) -> None:
    assert checked(tmp_path, number, TORCH + RIGHT[number]).key == "right"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", NAMES)
def test_a_starter_is_not_done_yet(number: int, language: str, tmp_path: Path) -> None:
    source = starter(number, language)
    assert source.count("raise NotImplementedError") == solution(number).count("\ndef ")
    assert "return " not in source.partition('"""\n\n')[2]
    assert checked(tmp_path, number, source).state == "unfinished"


def fields(template: str) -> set[str | None]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_both_languages_have_every_message() -> None:
    english, korean = (messages(language) for language in LANGUAGES)
    assert english.keys() == korean.keys() == {"common", *map(str, NAMES)}
    for section, entries in english.items():
        assert entries.keys() == korean[section].keys()
        explanations = entries.keys() - {"title", "task"}
        assert all(fields(entries[key]) == fields(korean[section][key]) for key in explanations)
        texts = [catalog[section][key] for catalog in (english, korean) for key in explanations]
        assert [text for text in texts if len(re.findall(r"[.?!](?: |$)", text)) > 2] == []
        if section != "common":
            assert explanations - {"value", "not-learned"} == {key for key, _ in MISTAKES[section]}


def test_start_changes_no_file(tmp_path: Path) -> None:
    (tmp_path / "04_attention_weights.py").write_text("mine = 1\n")
    written, existing = exercises.start(tmp_path, "ko")
    assert (len(written), [path.name for path in existing]) == (13, ["04_attention_weights.py"])
    assert (tmp_path / "04_attention_weights.py").read_text() == "mine = 1\n"
    assert "위치 표" in (tmp_path / "03_position_table.py").read_text(encoding="utf-8")


def test_an_endless_loop_ends_no_other_check(tmp_path: Path) -> None:
    exercises.start(tmp_path)
    (tmp_path / f"{NAMES[1]}.py").write_text("def additive_scores(*matrices):\n    while True:\n        pass\n")
    (tmp_path / f"{NAMES[2]}.py").unlink()
    (tmp_path / f"{NAMES[12]}.py").write_text(solution(12))
    random_state = torch.get_rng_state()
    results = list(exercises.check(tmp_path, [2, 1, 12], seconds=1.0))
    assert [(result.number, result.key) for result in results] == [(2, "no-file"), (1, "timeout"), (12, "right")]
    assert results[1].values["line"] in (2, 3)
    assert "line 2 of" in results[1].text("en") or "line 3 of" in results[1].text("en")
    assert torch.equal(torch.get_rng_state(), random_state)


def test_ctrl_c_ends_the_check(tmp_path: Path) -> None:
    (tmp_path / f"{NAMES[1]}.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        list(exercises.check(tmp_path, [1]))


def test_the_shell_explains_in_both_languages(tmp_path: Path) -> None:
    assert command("learn", "start", tmp_path).out == f"wrote 14 files to {tmp_path}\n"
    path = tmp_path / "04_attention_weights.py"
    path.write_text(solution(4).replace("softmax(dim=-1)", "softmax(dim=-2)"), encoding="utf-8")
    done = command("learn", "check", 4, tmp_path, "--language", "ko")
    assert (done.code, "softmax를 키가 놓인 마지막 축(dim=-1)에 적용하세요." in done.out) == (1, True)
    path.write_text(solution(4), encoding="utf-8")
    done = command("learn", "check", "4", tmp_path)
    assert (done.code, done.out) == (0, "✓ 4. Attention weights: right\n")
    started = command("learn", "start", tmp_path / "new", "--language", "ko").out
    assert started == f"파일 14개를 {tmp_path / 'new'}에 저장했습니다\n"


def test_a_message_that_quotes_an_error_ends_with_one_full_stop(tmp_path: Path) -> None:
    path = tmp_path / f"{NAMES[4]}.py"
    path.write_text("def attention_weights(query, key, keep=None):\n    raise ValueError('too wide.')\n")
    (result,) = exercises.check(tmp_path, [4])
    assert result.text("ko").endswith("ValueError 발생: too wide.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["99"], "there is no exercise 99; the numbers go from 0 to 13"),
        (["four", "."], "an exercise is a number from 0 to 13, not 'four'"),
        (["nowhere"], "there is no folder nowhere; `heedful learn start nowhere` writes the exercises into it"),
    ],
)
def test_wrong_use_of_check_names_the_remedy(arguments: list[str], message: str) -> None:
    done = command("learn", "check", *arguments)
    assert (done.code, done.err) == (2, f"error: {message}\n")


def modules_in_order(layer: nn.Module, *inputs: torch.Tensor) -> list[str]:
    """The names of the parts of a layer, in the order in which they run."""
    names: list[str] = []
    for name, module in layer.named_modules():
        if name.count(".") == 1:
            module.register_forward_hook(lambda *_, name=name: names.append(name))
    layer.eval()(*inputs)
    return [name for name in names if not name.endswith("dropout")]


def test_the_blocks_have_the_order_in_which_the_model_runs_them() -> None:
    model: Any = heedful.build(
        "base", n_encoder_layers=1, n_decoder_layers=1, d_model=16, n_heads=2, d_ff=32, vocab_size=9
    )
    answers: dict[str, Any] = {}
    exec(solution(0), answers)
    x = torch.randn(1, 3, 16)
    encoder = modules_in_order(model.encoder.layers[0], x)
    decoder = modules_in_order(model.decoder.layers[0], x, x)

    def blocks(names: list[str]) -> Iterator[str]:
        for name in names:
            part, _, kind = name.partition(".")
            yield "add & norm" if kind == "norm" else part.replace("_", "-")

    assert list(blocks(encoder)) == answers["encoder_layer"]()
    assert list(blocks(decoder)) == [block.removeprefix("masked ") for block in answers["decoder"]()[2:-2]]
    assert answers["decoder"]()[2] == "masked self-attention"
    assert not any(first == second for first, second in pairwise(decoder))


def test_the_wirings_are_those_of_the_families() -> None:
    answers: dict[str, Any] = {}
    exec(solution(12), answers)
    presets = {
        "translate a sentence": "tiny",
        "summarize a document": "bart-tiny",
        "continue a text": "gpt2-tiny",
        "label a review": "bert-tiny",
        "fill in a masked word": "bert-tiny",
        "label a picture": "vit-tiny",
        "forecast prices from patches": "patchtst-tiny",
    }
    wirings = answers["choose_wiring"]()
    assert wirings.keys() == presets.keys()
    for task, preset in presets.items():
        model = heedful.build(preset)
        stacks = [name for name, stack in (("encoder", core.Encoder), ("decoder", core.Decoder)) if has(model, stack)]
        assert wirings[task] == ("-".join(stacks) if len(stacks) == 2 else f"{stacks[0]}-only")


def has(model: nn.Module, kind: type[nn.Module]) -> bool:
    return any(type(module) is kind for module in model.modules())


def test_the_shapes_are_those_of_the_base_model() -> None:
    answers: dict[str, Any] = {}
    exec(solution(2), answers)
    embedding, ids = core.TokenEmbedding(10000, 512), torch.arange(4)[None]
    part, feed_forward = core.MultiHeadAttention(512, 8), core.FeedForward(512, 2048)
    x, _ = embedding(ids)
    keys, _ = part.keys_values(x)
    tensors = {
        "ids": ids,
        "embedded": x,
        "keys": keys,
        "scores": core.attention_weights(keys, keys),
        "merged": part.mixed(x),
        "hidden": feed_forward.up_proj(x),
        "logits": x @ embedding.weight.T,
    }
    assert answers["predict_shapes"]() == {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def test_the_claims_hold_as_measured() -> None:
    answers: dict[str, Any] = {}
    exec(solution(13), answers)
    holds = {claim["name"]: claim["holds"] for claim in figure_data("quiz", "en")["claims"]}
    holds["neighbors-in-a-batch"] ^= True  # the exercise claims that they do change the outputs
    right = answers["answers"]()
    assert {claim: right[claim] for claim in QUIZ} == {claim: holds[name] for claim, (name, _) in QUIZ.items()}
    measured = {case.values["name"]: case.values["measured"] for case in CASES[13]()}
    assert right["d"] == (float(measured["d"]) < 1e-4)
    assert right["g"] == (float(measured["g"]) > 1e-4)
