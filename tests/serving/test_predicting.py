"""POST /v1/predict/{model}: every task says over HTTP what it says in Python; and what it refuses, by its place."""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from running import Running

import heedful
from every_task import TINY
from heedful.serving.inputs import MAX_PIXELS

TEXTS = ["The cat reads.", "나는 물을 마셔요, and she plays in the garden.", "x"]
PIXELS_8 = np.random.default_rng(0).integers(0, 256, (20, 12)).tolist()
SERIES: list[Any] = [50 + math.sin(step / 3) for step in range(60)]


def predict(server: Running, model: str, inputs: Any, **options: Any) -> Any:
    answer = server.ask(f"/v1/predict/{model}", {"inputs": inputs, **options})
    assert answer.status == 200, answer.body
    output = json.loads(answer.body, parse_constant=pytest.fail)
    assert (output["model"], output["task"]) == (model, server.state.models[model].task)
    return output["outputs"]


def png(pixels: Any, kind: str = "PNG") -> str:
    file = BytesIO()
    Image.fromarray(np.array(pixels, dtype=np.uint8)).save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize("name", ["en-ko", "writer"])
def test_writers_write_what_they_write_in_python(name: str, server: Running, bundles: Path) -> None:
    model: Any = heedful.load(bundles / name)
    for options in ({}, {"beam": 3, "max_new_tokens": 7}, {"sample": True, "top_k": 9, "seed": 3}):
        wanted = model.answers(TEXTS, **options)
        output = predict(server, name, TEXTS, **options)
        assert [entry["text"] for entry in output] == [entry.text for entry in wanted]
        assert [entry["finished"] for entry in output] == [entry.finished for entry in wanted]
        assert [entry["logprob"] for entry in output] == pytest.approx([entry.logprob for entry in wanted], abs=1e-3)
    (output,) = predict(server, name, TEXTS[:1], n_best=3)
    ((best, *others),) = model.candidates(TEXTS[:1], n_best=3)
    assert (output["text"], [entry["text"] for entry in output["alternatives"]]) == (
        best.text,
        [entry.text for entry in others],
    )


def test_spans_are_those_of_python(server: Running, bundles: Path) -> None:
    pairs = [["Who reads?", "The cat reads a book by the sea."], ["무엇을?", "나는 정원에서 물을 마시고 그는 놀아요."]]
    answers = heedful.load(bundles / "answers", "question-answering").predict([(entry, two) for entry, two in pairs])
    for output, wanted in zip(predict(server, "answers", pairs), answers, strict=True):
        assert output | {"probability": 0.0} == wanted | {"probability": 0.0}
        assert output["probability"] == pytest.approx(wanted["probability"], abs=1e-5)
    refused = server.ask("/v1/predict/answers", {"inputs": ["no context"]})
    assert (refused.status, b"needs its context" in refused.body) == (400, True)
    tagged = heedful.load(bundles / "entities", "tagging").predict(TEXTS)
    for output, spans in zip(predict(server, "entities", TEXTS), tagged, strict=True):
        assert [(entry["text"], entry["label"], entry["start"]) for entry in output["spans"]] == [
            (entry["text"], entry["label"], entry["start"]) for entry in spans
        ]


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("feelings", [*TEXTS, ["The cat", "나는"]]),
        ("vectors", TEXTS),
        ("pictures", [PIXELS_8, [[0.5] * 16] * 16]),
        ("sales", [SERIES, [[entry] for entry in SERIES], [*SERIES[:50], None, *SERIES[51:]]]),
    ],
)
def test_readers_say_what_they_say_in_python(name: str, inputs: list[Any], server: Running, bundles: Path) -> None:
    value = [tuple(entry) if isinstance(entry[0], str) and isinstance(entry, list) else entry for entry in inputs]
    for output, wanted in zip(predict(server, name, inputs), heedful.load(bundles / name).predict(value), strict=True):
        if isinstance(wanted, dict):
            assert [entry["label"] for entry in output["labels"]] == list(wanted)
            assert [entry["probability"] for entry in output["labels"]] == pytest.approx(
                list(wanted.values()), abs=1e-5
            )
        else:
            (values,) = output.values()
            np.testing.assert_allclose(values, wanted, atol=1e-4)


def test_gaps_are_filled_and_guessed(server: Running, bundles: Path) -> None:
    text = "The [MASK] reads a [MASK]."
    model = heedful.load(bundles / "gaps", "masked-lm")
    (output,) = predict(server, "gaps", [text])
    assert output["text"] == model.predict([text])[0]
    (wanted,) = model.guesses([text])
    assert [[entry["text"] for entry in gap] for gap in output["gaps"]] == [
        [entry.text for entry in gap] for gap in wanted
    ]


def test_an_image_may_be_a_file_in_base64(server: Running) -> None:
    wanted = predict(server, "pictures", [PIXELS_8])
    assert predict(server, "pictures", [png(PIXELS_8)]) == wanted
    assert predict(server, "pictures", [f"data:image/png;base64,{png(PIXELS_8)}"]) == wanted
    assert predict(server, "pictures", [png(PIXELS_8, "JPEG")])[0]["labels"]


def bomb(side: int) -> str:
    """A small file that says it is a large image."""
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(bytes(side * (side // 8 + 1)))), (b"IEND", b"")]
    raw = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(raw)).decode()


REFUSED: list[tuple[str, Any, str]] = [
    ("en-ko", {"inputs": ["a", 7]}, "inputs.1"),
    ("en-ko", {"inputs": ["a", ["b", "c"]]}, "inputs[1]: this model takes text"),
    ("en-ko", {"inputs": ["a", "\ud800"]}, "inputs[1]: "),
    ("en-ko", {"inputs": ["a", "x" * 20_001]}, "inputs[1]: it has 20,001 characters"),
    ("en-ko", {"inputs": ["a"] * 129}, "at most 128"),
    ("en-ko", {}, "inputs: Field required"),
    ("en-ko", {"inputs": "a"}, "inputs: "),
    ("en-ko", {"inputs": ["a"], "beams": 3}, "beams: "),
    ("en-ko", {"inputs": ["a"], "beam": "3"}, "beam: "),
    ("en-ko", {"inputs": ["a"], "beam": 17}, "beam: "),
    ("en-ko", {"inputs": ["a"], "n_best": 9}, "n_best: at most 8"),
    ("en-ko", {"inputs": ["a"], "max_new_tokens": 1025}, "max_new_tokens: at most 1,024"),
    ("en-ko", {"inputs": ["a"], "min_new_tokens": 1024}, "min_new_tokens: at most 1,023"),
    ("en-ko", {"inputs": ["a"], "precision": "int8"}, "precision: "),
    ("en-ko", {"inputs": ["a"], "top_k": 3}, "top_k is for sampling"),
    ("writer", {"inputs": ["a", "cat " * 200]}, "inputs[1]: it has "),
    ("feelings", {"inputs": ["a"], "beam": 2}, "beam: this model, for classification, does not generate text"),
    ("feelings", {"inputs": ["a", ["a", "b", "c"]]}, "inputs[1]: this model takes text"),
    ("gaps", {"inputs": ["a [MASK]", "b"]}, "inputs[1]: it has no gap"),
    ("pictures", {"inputs": [PIXELS_8, "/etc/passwd"]}, "inputs[1]: "),
    ("pictures", {"inputs": [PIXELS_8, base64.b64encode(b"GIF89a").decode()]}, "inputs[1]: it cannot be read"),
    (
        "pictures",
        {"inputs": [bomb(3000), bomb(3000)]},
        f"inputs[1]: the images of a request may have at most {MAX_PIXELS:,}",
    ),
    ("pictures", {"inputs": [["x" * 9000, *["y"] * 200]]}, "inputs[0]: it contains text in place of a number"),
    ("pictures", {"inputs": [[[[[1]]]]]}, "inputs[0]: it contains a list"),
    ("pictures", {"inputs": [[[1, 2], [3]]]}, "inputs[0]: "),
    ("pictures", {"inputs": [[]]}, "inputs[0]: "),
    ("sales", {"inputs": [SERIES, SERIES[:40]]}, "inputs[1]: this model forecasts from 48 steps"),
    ("sales", {"inputs": [SERIES, [*SERIES, True]]}, "inputs[1]: it contains true or false"),
    ("sales", {"inputs": [[1e308, -1e308] * 30]}, "inputs[0]: "),
    ("sales", {"inputs": [[10**400] * 60]}, "inputs[0]: "),
]


@pytest.mark.parametrize(
    ("name", "body", "reason"), REFUSED, ids=[f"{name}: {reason:.30}" for name, _, reason in REFUSED]
)
def test_an_invalid_input_is_refused_with_the_reason(name: str, body: Any, reason: str, server: Running) -> None:
    answer = server.ask(f"/v1/predict/{name}", body)
    if reason.startswith("inputs[1]: "):  # the first one is answered
        assert answer.status == 200, answer.body
        first, second = answer.json["outputs"]
        assert first.keys() == predict(server, name, body["inputs"][:1])[0].keys() != second.keys()
        assert second["error"].startswith(reason.removeprefix("inputs[1]: "))
        answer = server.ask(f"/v1/predict/{name}", {"inputs": body["inputs"][1:] * 2})
        reason = "inputs[0]: " if name == "pictures" and "may have at most" in reason else reason.replace("[1]", "[0]")
        if answer.status == 200:  # an image that is too large beside another one is none alone
            return
    assert answer.status == 400, answer.body
    assert reason in answer.json["error"]["message"]
    assert answer.json["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b'{"inputs": [1' + b"0" * 5000 + b"]}", b"\xff", b"", b"null"])
def test_what_is_no_json_is_refused(body: bytes, server: Running) -> None:
    answer = server.ask("/v1/predict/sales", body, Content_Type="application/json")
    assert answer.status == 400
    assert answer.json["error"]["message"]


def test_numbers_that_are_none_go_in_as_gaps_and_never_come_out(server: Running) -> None:
    series = json.dumps([*SERIES[:50], math.nan, *SERIES[51:]])
    answer = server.ask("/v1/predict/sales", f'{{"inputs": [{series}]}}'.encode(), Content_Type="application/json")
    assert (answer.status, b"NaN" in answer.body) == (200, False)


@pytest.mark.parametrize("name", ["feelings", "vectors", "writer"])
def test_an_output_with_nan_or_inf_is_the_fault_of_the_server(name: str, serving: Callable[..., Running]) -> None:
    running = serving(name)
    with torch.no_grad():
        for parameter in running.state.models[name].predictor.module.parameters():
            parameter.fill_(1e30)
    answer = running.ask(f"/v1/predict/{name}", {"inputs": ["The cat reads."]})
    assert (answer.status, answer.json["error"]["type"]) == (500, "server_error")
    assert "NaN or inf" in answer.json["error"]["message"]


def test_a_body_that_does_not_say_it_is_json_is_told_how(server: Running) -> None:
    answer = server.ask("/v1/predict/feelings", b'{"inputs": ["a"]}', Content_Type="text/plain")
    assert (answer.status, answer.json["error"]["code"]) == (415, "invalid_content_type")
    assert "Content-Type: application/json" in answer.json["error"]["message"]


def test_a_model_is_found_by_its_name_alone(server: Running) -> None:
    for name in ("nobody", "..%2Fen-ko", "en-ko%00", "EN-KO", "%EA%B0%80" * 50):
        answer = server.ask(f"/v1/predict/{name}", {"inputs": []})
        assert answer.status == 404, name
    assert answer.json["error"]["code"] == "model_not_found"
    assert "en-ko" in answer.json["error"]["message"]
    for name in TINY:
        assert predict(server, name, []) == []
