"""`heedful learn` in a shell: it serves, opens the browser, ends quietly, and writes the site and the notebooks."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
import webbrowser
from pathlib import Path
from threading import Event

import pytest

from heedful.learn.server import CourseServer
from shell import heedful


def test_it_serves_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "heedful", "learn", "0", "--language", "ko", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = re.match(r"http://127\.0\.0\.1:\d+/ko/00\.html", process.stdout.readline())
        assert url is not None
        with urllib.request.urlopen(url[0], timeout=60) as response:
            assert "<h1>지도</h1>" in response.read().decode()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip(), err) == (0, "", "")


def test_it_opens_the_browser_at_the_list_of_chapters(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    is_open = Event()

    def visit(url: str) -> None:
        opened.append(url)
        is_open.set()

    def serve(server: CourseServer) -> None:
        assert is_open.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", visit)
    monkeypatch.setattr(CourseServer, "serve_forever", serve)
    done = heedful("learn")
    assert done.code == 0
    assert opened == [done.out.split()[0]]
    assert opened[0].endswith("/en/index.html")


def test_a_wrong_chapter_and_a_taken_port_are_one_line() -> None:
    done = heedful("learn", 99, "--no-browser")
    assert done.code == 2
    assert re.fullmatch(r"error: there is no chapter 99; there are: 0(, \d+)*\n", done.err)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = heedful("learn", "--port", port, "--no-browser")
    message = f"error: --port {port}: Address already in use; choose another, or 0 for a free one\n"
    assert (done.code, done.err) == (2, message)


def test_it_writes_notebooks(tmp_path: Path) -> None:
    done = heedful("learn", "notebooks", tmp_path / "new")
    assert done.code == 0, done.err
    assert len(list((tmp_path / "new").rglob("*.ipynb"))) == int(re.findall(r"wrote (\d+) notebooks", done.out)[0])


def test_the_help_lists_the_commands() -> None:
    done = heedful("learn", "--help")
    assert done.code == 0
    assert all(re.search(rf"│ {name} ", done.out) for name in ("open", "site", "notebooks"))
