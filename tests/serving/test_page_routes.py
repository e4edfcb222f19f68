"""The page's routes: what they give out, what a look shows, and what is refused."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
import torch
from running import Running

import heedful
from every_task import TINY
from heedful.lens.inputs import teacher_forced
from heedful.serving.page.routes import FILES, FOLDER
from heedful.tasks.inspection import inspect, inspect_patched

TEXT = "The cat reads a book."
SERIES = [float(step % 7) for step in range(48)]
GREY = [[(row * 16 + column) % 256 for column in range(16)] for row in range(16)]


def document(page: str) -> dict[str, Any]:
    """What a look was made from."""
    page_data = re.search(r'<script type="application/json" id="document">(.*?)</script>', page, re.DOTALL)
    assert page_data
    parsed: dict[str, Any] = json.loads(page_data[1])
    return parsed


def error_of(answer: requests.Response) -> str:
    return str(answer.json()["error"])


def test_the_page_needs_no_file_but_those_it_gives_out(server: Running) -> None:
    page = requests.get(server.url + "/", timeout=30)
    wanted = set(re.findall(r'(?:src|href)="page/([^"]+)"', page.text))
    waiting = sorted(wanted)
    while waiting:
        name = waiting.pop()
        answer = requests.get(f"{server.url}/page/{name}", timeout=30)
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].startswith(("text/javascript", "text/css"))
        for path in re.findall(r'from "(\.[^"]+)"', answer.text):
            full = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            if full not in wanted:
                wanted.add(full)
                waiting.append(full)
    assert wanted == set(FILES)


@pytest.mark.parametrize("name", ["routes.py", "../routes.py", "..%2froutes.py", "index.html", "look/main.js", "%00"])
def test_no_other_name_leads_to_a_file(server: Running, name: str) -> None:
    answer = requests.get(f"{server.url}/page/{name}", timeout=30)
    assert answer.status_code in (400, 404)
    assert "import" not in answer.text


def test_pages_run_no_script_but_ours(server: Running) -> None:
    page = requests.get(server.url + "/", timeout=30)
    look = requests.get(f"{server.url}/look/en-ko", params={"text": TEXT}, timeout=30)
    for answer in (page, look):
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert re.fullmatch(r"('self' )?'sha256-[\w+/]+='", policy["script-src"])
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert answer.headers["x-content-type-options"] == "nosniff"
    for path in (*FOLDER.glob("*.js"), FOLDER / "index.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|\son\w+=\"|style=\"", text
        )
        assert "://" not in text.replace("http://www.w3.org", "")
        assert len(text.splitlines()) <= 300, path


def test_every_sentence_is_in_both_languages() -> None:
    english, korean = (
        json.loads((FOLDER / "locales" / f"{code}.json").read_text(encoding="utf-8")) for code in ("en", "ko")
    )
    assert english.keys() == korean.keys()
    assert len(english) > 100
    assert all(re.search("[가-힣]", text) for text in korean.values())


def test_the_page_is_told_what_each_model_takes(server: Running) -> None:
    offer = requests.get(server.url + "/page/models", timeout=30).json()
    models = {entry["name"]: entry for entry in offer["models"]}
    assert list(models) == list(TINY)
    assert (models["en-ko"]["source"], models["en-ko"]["target"]) == ("en", "ko")
    assert models["feelings"]["labels"] == ["glad", "sad", "neither"]
    assert models["gaps"]["mask"] == "[MASK]"
    assert models["pictures"]["image"] == {"height": 16, "width": 16, "channels": 1, "bright": False}
    assert models["sales"]["series"] == {"context": 48, "horizon": 7, "columns": ["sold"]}
    assert models["writer"]["parameters"] == sum(
        parameter.numel() for parameter in server.state.models["writer"].predictor.module.parameters()
    )
    assert models["ko-en"]["examples"]


@pytest.mark.parametrize(
    ("name", "sent", "kind"),
    [
        ("en-ko", TEXT, "translation"),
        ("writer", TEXT, "writing"),
        ("feelings", TEXT, "reading"),
        ("vectors", TEXT, "reading"),
        ("answers", ["Who reads?", "The cat reads a book."], "reading"),
        ("entities", TEXT, "reading"),
        ("gaps", "The [MASK] reads a book.", "reading"),
        ("pictures", GREY, "image"),
        ("sales", SERIES, "series"),
    ],
)
def test_a_look_is_the_page_of_the_answer(server: Running, bundles: Path, name: str, sent: Any, kind: str) -> None:
    answer = requests.post(f"{server.url}/look/{name}", json={"input": sent, "language": "ko"}, timeout=30)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page_data = document(answer.text)
    assert (page_data["kind"], page_data["language"], page_data["model"]["name"]) == (kind, "ko", name)
    item = tuple(sent) if name == "answers" else sent
    (predicted,) = heedful.load(bundles / name).predict([item])
    if kind in ("translation", "writing"):
        assert (page_data["question"], page_data["answer"]) == (TEXT, predicted)
    if name == "answers":
        assert page_data["answer"] == (predicted["answer"] or "–")
        assert page_data["classes"][0]["probability"] >= predicted["probability"] - 1e-5
    elif name == "entities":
        shares = {f"{span['text']}: {span['label']}": span["probability"] for span in predicted}
        assert {entry["label"]: entry["probability"] for entry in page_data["classes"] or ()} == pytest.approx(
            shares, abs=1e-5
        )
    elif page_data["classes"] and name != "gaps":
        shares = {entry["label"]: entry["probability"] for entry in page_data["classes"]}
        assert shares == pytest.approx(predicted, abs=1e-5)
    if kind == "series":
        assert page_data["series"]["forecast"] == pytest.approx(predicted, rel=1e-5)


def test_a_look_draws_the_words_that_its_seed_draws(server: Running, bundles: Path) -> None:
    options: Any = {"temperature": 1.5, "seed": 11, "max_new_tokens": 12}
    answer = requests.post(f"{server.url}/look/writer", json={"input": TEXT, **options}, timeout=30)
    (predicted,) = heedful.load(bundles / "writer", "language-model").predict([TEXT], sample=True, **options)
    assert document(answer.text)["answer"] == predicted
    (surest,) = heedful.load(bundles / "writer", "language-model").predict([TEXT], sample=False, max_new_tokens=12)
    assert predicted != surest


def test_the_document_of_a_look_is_given_as_json(server: Running) -> None:
    asked = {"input": TEXT, "language": "ko"}
    page = requests.post(f"{server.url}/look/en-ko", json=asked, timeout=30)
    answer = requests.post(f"{server.url}/look/en-ko", json={**asked, "format": "json"}, timeout=30)
    assert answer.headers["content-type"] == "application/json"
    as_json, as_page = answer.json(), document(page.text)
    assert as_json["served"] is as_page["served"] is True
    for arrays in (as_json["arrays"], as_page["arrays"]):
        for array in arrays.values():
            array.pop("data", None)  # a page has it elsewhere
    assert as_json == as_page


@pytest.mark.parametrize(("name", "sent"), [("en-ko", TEXT), ("writer", TEXT), ("feelings", TEXT), ("pictures", GREY)])
def test_a_look_without_heads_says_what_became_of_the_answer(
    server: Running, bundles: Path, name: str, sent: Any
) -> None:
    """Against a model whose output projection ignores the heads."""
    predictor = server.state.models[name].predictor
    stack = "decoder" if name == "writer" else "encoder"
    heads = {"ablate": [f"{stack}.0.0", f"{stack}.0.1"], "format": "json", "input": sent}
    whole, without, after = (
        requests.post(f"{server.url}/look/{name}", json=body, timeout=30).json()
        for body in ({**heads, "ablate": []}, heads, {**heads, "ablate": []})
    )
    assert whole == after  # the model itself is as it was
    assert "ablation" not in whole
    assert without["ablation"]["heads"] == heads["ablate"]
    other = heedful.load(bundles / name, predictor.task)
    layer = getattr(other.module, stack).layers[0].self_attention.sublayer
    with torch.no_grad():
        layer.out_proj.weight[:, : 2 * layer.d_head] = 0
    item = sent
    first, *_ = without["ablation"]["changes"]
    if name in ("en-ko", "writer"):
        assert without["answer"] == other.predict([item])[0]
        assert first["label"] == whole["answer"]
        forced = teacher_forced(other, item, whole["answer"])
        logits = other.module(*forced.inputs).detach()[0, -len(forced.answer) :].log_softmax(dim=-1)
        expected = sum(float(row[token]) for row, token in zip(logits, forced.answer, strict=True))
        assert first["after"] == pytest.approx(expected, abs=1e-3)
    else:
        shares = {entry["label"]: entry["probability"] for entry in without["classes"]}
        assert shares == pytest.approx(other.predict([item])[0], abs=1e-5)
        assert len(without["ablation"]["changes"]) == 3
        for change in without["ablation"]["changes"]:
            assert math.exp(change["after"]) == pytest.approx(shares[change["label"]], abs=1e-5)
            before = next(entry["probability"] for entry in whole["classes"] if entry["label"] == change["label"])
            assert math.exp(change["before"]) == pytest.approx(before, abs=1e-5)
    assert first["before"] != pytest.approx(first["after"], abs=1e-6)


@pytest.mark.parametrize(("name", "stack"), [("en-ko", "encoder"), ("en-ko", "decoder"), ("writer", "decoder")])
def test_a_look_with_a_second_text_says_what_activations_bring_back(
    server: Running, bundles: Path, name: str, stack: str
) -> None:
    other = "The book reads a cat."
    sent: dict[str, Any] = {
        "input": TEXT,
        "format": "json",
        "patch": {"input": other, "stack": stack, "token": 20, "against": 21},
    }
    answer = requests.post(f"{server.url}/look/{name}", json=sent, timeout=30).json()
    predictor = server.state.models[name].predictor
    assert answer["answer"] == predictor.predict([TEXT])[0]
    assert (answer["patching"]["token"], answer["patching"]["against"]) == (20, 21)
    loaded = heedful.load(bundles / name, predictor.task)
    expected = inspect_patched(loaded, inspect(loaded, TEXT), other, stack=stack, token=20, against=21)
    assert answer["patching"]["effects"] == [pytest.approx(row, abs=1e-4) for row in expected["effects"]]
    whole = requests.post(f"{server.url}/look/{name}", json={"input": TEXT, "format": "json"}, timeout=30).json()
    assert "patching" not in whole
    assert whole["lens"]["tokens"] == answer["lens"]["tokens"]


def test_patching_counts_as_work(serving: Callable[..., Running]) -> None:
    small = serving("en-ko", max_work=100)
    sent: dict[str, Any] = {"input": TEXT, "format": "json", "patch": {"input": TEXT}}
    answer = requests.post(f"{small.url}/look/en-ko", json=sent, timeout=30)
    assert answer.status_code == 400
    assert "tokens of work" in error_of(answer)
    assert requests.post(f"{small.url}/look/en-ko", json={"input": TEXT}, timeout=30).status_code == 200


@pytest.mark.parametrize(
    ("name", "sent", "reason"),
    [
        ("en-ko", {"input": "cat " * 500}, "at most 400 tokens"),
        ("en-ko", {"input": "a" * 20_001}, "20,000"),
        ("en-ko", {"input": " "}, "empty"),
        ("en-ko", {"input": [TEXT, TEXT]}, "text"),
        ("writer", {"input": TEXT, "max_new_tokens": 399}, "lower max_new_tokens"),
        ("writer", {"input": TEXT, "max_new_tokens": 5000}, "1,024"),
        ("feelings", {"input": TEXT, "beam": 2}, "beam"),
        ("pictures", {"input": "/etc/passwd"}, "base64"),
        ("sales", {"input": "/etc/passwd"}, "list of numbers"),
        ("en-ko", {"input": TEXT, "language": "xx"}, "language"),
        ("en-ko", {"input": TEXT, "format": "pickle"}, "format"),
        ("en-ko", {"input": TEXT, "ablate": ["encoder.0.99"]}, "has heads 0 to"),
        ("en-ko", {"input": TEXT, "ablate": ["all"]}, "ablate"),
        ("en-ko", {"input": TEXT, "ablate": ["encoder.0.0"] * 1025}, "ablate"),
        ("feelings", {"input": TEXT, "ablate": ["cross.0.0"]}, "unknown head 'cross.0.0'"),
        ("en-ko", {"input": TEXT, "patch": {"input": "The cat reads a book and a book."}}, "same number of tokens"),
        ("en-ko", {"input": TEXT, "patch": {"input": " "}}, "empty"),
        ("en-ko", {"input": TEXT, "patch": {"input": "cat " * 500}}, "at most 400 tokens"),
        ("en-ko", {"input": TEXT, "patch": {"input": "a" * 20_001}}, "20,000"),
        ("en-ko", {"input": TEXT, "patch": {"input": TEXT, "step": 99}}, "no step 99"),
        ("en-ko", {"input": TEXT, "patch": {"input": TEXT, "token": 10**6}}, "no token 1000000"),
        ("en-ko", {"input": TEXT, "patch": {"input": TEXT, "token": -1}}, "token"),
        ("en-ko", {"input": TEXT, "patch": {"input": TEXT, "part": "self"}}, "part"),
        ("en-ko", {"input": TEXT, "patch": {"input": TEXT, "head": 1}}, "head"),
        ("en-ko", {"input": TEXT, "patch": {}}, "input"),
        ("en-ko", {"input": TEXT, "patch": {"input": TEXT}, "ablate": ["cross.0.0"]}, "leave out ablate"),
        ("writer", {"input": TEXT, "patch": {"input": TEXT, "stack": "encoder"}}, "unknown stack 'encoder'"),
        ("feelings", {"input": TEXT, "patch": {"input": TEXT}}, "patching needs a model that writes text"),
        ("gaps", {"input": "The [MASK] reads.", "patch": {"input": TEXT}}, "patching needs a model that writes text"),
        ("sales", {"input": SERIES, "patch": {"input": TEXT}}, "patching needs a model that writes text"),
    ],
)
def test_an_invalid_look_request_is_refused_with_the_reason(server: Running, name: str, sent: Any, reason: str) -> None:
    answer = requests.post(f"{server.url}/look/{name}", json=sent, timeout=30)
    assert answer.status_code == 400
    assert reason in error_of(answer)


def test_looks_are_given_only_where_they_may_be(server: Running, serving: Callable[..., Running]) -> None:
    assert requests.get(f"{server.url}/look/other", params={"text": TEXT}, timeout=30).status_code == 404
    closed = serving("en-ko", look=False, api_keys=("secret",))
    assert requests.get(closed.url + "/page/models", timeout=30).json()["look"] is False
    address, key = f"{closed.url}/look/en-ko", {"Authorization": "Bearer secret"}
    refused = [requests.post(address, json={"input": TEXT}, headers=headers, timeout=30) for headers in ({}, key)]
    assert [answer.status_code for answer in refused] == [403, 403]
    assert "key" in error_of(refused[0])
    assert "look inside" in error_of(refused[1])
