"""How long the look page of `heedful serve` takes to follow a text that is changed.

    python benchmarks/live_look.py                   the preset `tiny`, of random weights
    python benchmarks/live_look.py --model runs/en-ko --texts input.txt

Two times for each text, in milliseconds: the request for the document alone, and the whole way in a browser, from the
change of the field to the new text on the page, with the pause that waits for further keys.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from shutil import which
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import sync_playwright

from _measure import machine, machine_in_words, table
from _serving_model import sentences, write_model
from _serving_processes import serving

ROUNDS = 30
DRAWN = """(root, text) => new Promise((done) => {
  const look = () => (root.querySelector(".question")?.textContent === text ? done() : requestAnimationFrame(look));
  look();
})"""


def requests(url: str, texts: list[str]) -> list[float]:
    """The seconds of each request for a document."""
    seconds = []
    for text in texts:
        body = json.dumps({"input": text, "format": "json"}).encode()
        start = time.perf_counter()
        with urlopen(Request(url, body, {"Content-Type": "application/json"})) as answer:
            answer.read()
        seconds.append(time.perf_counter() - start)
    return seconds


def redraws(url: str, texts: list[str], executable: str) -> list[float]:
    """The seconds from each change of the text until the page shows it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US")
        page.goto(url)
        page.locator("form.card textarea").fill(texts[0])
        page.locator("form.card button.go").click()
        page.locator("form.inside button.go").click()
        frame: Any = page.frame_locator("iframe").locator("html")
        frame.evaluate(DRAWN, texts[0])
        seconds = []
        for text in texts[1:]:
            start = time.perf_counter()
            page.locator(".live textarea").fill(text)
            frame.evaluate(DRAWN, text)
            seconds.append(time.perf_counter() - start)
        browser.close()
    return seconds


def milliseconds(seconds: list[float]) -> list[str]:
    """The median and the slowest but one in twenty."""
    return [f"{1000 * value:.0f}" for value in (statistics.median(seconds), sorted(seconds)[int(0.95 * len(seconds))])]


def main() -> None:
    """Measure both and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a translator")
    parser.add_argument("--texts", type=Path, help="a file with sentences, one in a line")
    parser.add_argument("--browser", default="chromium", help="the browser's executable")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.model is None:
            write_model(Path(scratch) / "tiny", {"preset": "tiny", "vocab_size": 2_000})
            texts = sentences(2_000, ROUNDS + 1)
        else:
            texts = options.texts.read_text(encoding="utf-8").splitlines()[: ROUNDS + 1]
        model = options.model or Path(scratch) / "tiny"
        command = ["-m", "heedful", "serve", f"translator={model}", "--port", "PORT"]
        with serving("heedful", command, threads=2) as server:
            url = f"http://127.0.0.1:{server.port}"
            requests(f"{url}/look/translator", texts[:3])  # the first builds the page's script
            rows = [
                ["the request", *milliseconds(requests(f"{url}/look/translator", texts))],
                ["from the field to the page", *milliseconds(redraws(url, texts, which(options.browser) or ""))],
            ]
    print(machine_in_words(machine()))
    print(table(["ms", "median", "95 %"], rows))


if __name__ == "__main__":
    main()
