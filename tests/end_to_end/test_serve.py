"""`heedful serve`: a process that answers, and ends well; and one line for every mistake."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import heedful
from heedful.data.text_tokenizers import of_pieces
from heedful.families import GenerationDefaults, config_of
from heedful.generation import GenerationConfig
from heedful.tasks.language_model import CausalLanguageModel
from heedful.tasks.language_model.predictor import LanguageModelSettings
from shell import heedful as shell

ENOUGH = 60  # seconds; more means that it hangs


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model that never comes to an end, so that an answer can be made long."""
    folder = tmp_path_factory.mktemp("models") / "writer"
    tokenizer = of_pieces(["The cat reads a book by the sea."] * 3, vocab_size=300, min_frequency=2)
    config = config_of({"preset": "gpt2", "d_model": 32, "n_heads": 4, "n_layers": 2, "max_length": 256})
    config = config.changed(vocab_size=tokenizer.vocab_size)
    settings = LanguageModelSettings(tokens=GenerationDefaults(), generation=GenerationConfig(max_new_tokens=200))
    CausalLanguageModel(config, heedful.build(config), tokenizer, settings).save(folder)
    return folder


def ask(port: int, path: str, body: Any = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ENOUGH)
    payload = None if body is None else json.dumps(body)
    connection.request("POST" if payload else "GET", path, payload, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    response = answer.status, answer.read()
    connection.close()
    return response


def test_a_request_in_flight_is_answered_before_the_end(model: Path) -> None:
    command = [sys.executable, "-m", "heedful", "serve", f"mine={model}", "--port", "0", "--log-json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "mine: language-model\n"
            listening = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+); .*\n", process.stdout.readline())
            assert listening
            port = int(listening[1])
            assert ask(port, "/health") == (200, b'{"status":"ok"}')
            answers: list[tuple[int, bytes]] = []
            asking = Thread(
                target=lambda: answers.append(ask(port, "/v1/predict/mine", {"inputs": ["The cat"] * 16})), daemon=True
            )
            asking.start()
            while not answers and b"heedful_running_requests 1" not in ask(port, "/metrics")[1]:
                pass
            process.send_signal(signal.SIGTERM)
            assert process.wait(ENOUGH) == 0
            asking.join(ENOUGH)
            status, body = answers[0]
            assert status == 200, body
            assert len(json.loads(body)["outputs"]) == 16
            assert process.stderr is not None
            entries = [json.loads(line) for line in process.stderr.read().splitlines()]
            assert (entries[-1]["path"], entries[-1]["status"], entries[-1]["model"]) == (
                "/v1/predict/mine",
                200,
                "mine",
            )
        finally:
            process.kill()


def test_every_mistake_is_one_line(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").write_text("\n# none\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        mistakes: list[tuple[tuple[object, ...], str]] = [
            ((model, "--port", port), f"cannot listen on 127.0.0.1, port {port}: the port is in use"),
            ((model, "--port", 0, "--host", "192.0.2.1"), "this machine does not have this address"),
            ((model, "--port", 99999), "port must be from 0"),
            ((tmp_path / "nothing", "--port", 0), "is not a folder"),
            ((tmp_path, "--port", 0), str(tmp_path)),
            ((model, model, "--port", 0), "two models have the name 'writer'"),
            ((f"a b={model}", "--port", 0), "is not a valid model name"),
            ((model, "--api-key-file", tmp_path / "empty"), "contains no API key"),
            ((model, "--api-key-file", tmp_path / "binary"), "not a text file"),
            ((model, "--api-key-file", tmp_path / "none"), "No such file"),
            ((model, "--trusted-proxy", "somewhere"), "a trusted proxy must be an address"),
            ((model, "--max-body", 0), "max_body must be at least 1"),
        ]
        for arguments, reason in mistakes:
            done = shell("serve", *arguments)
            assert (done.code > 0, done.out, done.err.count("\n")) == (True, "", 1), done
            assert done.err.startswith("error: ")
            assert reason in done.err
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = shell("serve", model)
    assert done.err == "error: serving needs uvicorn, which is not installed: pip install 'heedful[serve]'\n"


def test_keys_that_others_can_read_are_worth_a_warning(model: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("s3cret\n")
    for mode, warned in ((0o644, True), (0o600, False)):
        keys.chmod(mode)
        done = shell("serve", model, "--port", 99999, "--api-key-file", keys)
        assert (f"chmod 600 {keys}" in done.err) is warned
        assert "s3cret" not in done.err
