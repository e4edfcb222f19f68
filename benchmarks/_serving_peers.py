"""Two servers of a translator to measure against, each with the two routes that the clients use.

python benchmarks/_serving_peers.py one FOLDER --port 8001            one request at a time
python benchmarks/_serving_peers.py ctranslate2 FOLDER --port 8002 --exported FOLDER --translators 1 --threads 2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

import heedful
from heedful.tasks.translation import Translator

Translate = Callable[[str], Any]  # a text → an awaitable text


class Question(BaseModel):
    """What the load asks."""

    q: str
    source: str
    target: str


class Translation(BaseModel):
    """As LibreTranslate answers."""

    translatedText: str  # noqa: N815


def one_at_a_time(translator: Translator, precision: Any) -> Translate:
    """A lock around the model: what a few lines around `predict` give."""
    lock = threading.Lock()

    def predict(text: str) -> str:
        with lock:
            return translator.predict([text], precision=precision)[0]

    async def translate(text: str) -> str:
        return await asyncio.to_thread(predict, text)

    return translate


@dataclass(frozen=True)
class Waiting:
    """A request on its way through the batcher."""

    parts: list[list[str]]
    limit: int
    answer: asyncio.Future[list[list[str]]]


class Batcher:
    """Requests that wait go to CTranslate2 together; as many batches at once as it has translators.

    A batch is whoever waits; the first waits `gather` seconds for others, so that a crowd does not come one by one.
    """

    def __init__(self, engine: Any, translator: Translator, batch: int, gather: float) -> None:
        self._engine, self._words = engine, translator.generation
        self._batch, self._gather = batch, gather
        self._queue: queue.SimpleQueue[Waiting] = queue.SimpleQueue()
        for _ in range(engine.num_translators):
            threading.Thread(target=self._work, daemon=True).start()

    async def translate(self, parts: list[list[str]], limit: int) -> list[list[str]]:
        waiting = Waiting(parts, limit, asyncio.get_running_loop().create_future())
        self._queue.put(waiting)
        return await waiting.answer

    def _work(self) -> None:
        while True:
            waiting = self._next()
            found = self._engine.translate_batch(
                [part for one in waiting for part in one.parts],
                beam_size=self._words.beam,
                length_penalty=self._words.length_penalty,
                max_batch_size=self._batch,
                min_decoding_length=self._words.min_new_tokens or 1,
                max_decoding_length=max(one.limit for one in waiting),
            )
            answers = iter(answer.hypotheses[0] for answer in found)
            for one in waiting:
                mine = [next(answers) for _ in one.parts]
                one.answer.get_loop().call_soon_threadsafe(one.answer.set_result, mine)

    def _next(self) -> list[Waiting]:
        waiting = [self._queue.get()]
        try:
            while len(waiting) < self._batch:
                waiting.append(self._queue.get(timeout=self._gather))
        except queue.Empty:
            pass
        return waiting


def ctranslate2(translator: Translator, exported: Path, batcher: Callable[[], Batcher]) -> Translate:
    """The same tokeniser before and after; between them, the batcher."""
    names = {index: name for name, index in _vocabulary(exported / "tokenizer.json").items()}
    places = {name: index for index, name in names.items()}
    engine = batcher()

    async def translate(text: str) -> str:
        inputs = translator.inputs(text)
        limit = max(translator.generation.limit(len(ids), None) for ids in inputs)
        found = await engine.translate([[names[token] for token in ids[:-1]] for ids in inputs], limit)
        return " ".join(translator.target_tokenizer.decode(places[name] for name in part) for part in found)

    return translate


def app_of(translate: Translate) -> FastAPI:
    """The two routes."""
    app = FastAPI()

    @app.post("/translate")
    async def answer(question: Question) -> Translation:
        return Translation(translatedText=await translate(question.q))

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    return app


def _vocabulary(path: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    return found


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("one", "ctranslate2"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--exported", type=Path, help="what heedful export wrote")
    parser.add_argument("--translators", type=int, default=1, help="batches at once")
    parser.add_argument("--threads", type=int, default=2, help="of each batch")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--gather", type=float, default=0.003, help="seconds a batch waits for more")
    options = parser.parse_args()
    translator = heedful.load(options.folder, "translation")
    if options.kind == "one":
        torch.set_num_threads(options.threads)
        translate = one_at_a_time(translator, options.precision)
    else:
        import ctranslate2 as library

        engine = library.Translator(
            str(options.exported),
            compute_type=options.precision,
            inter_threads=options.translators,
            intra_threads=options.threads,
        )
        translate = ctranslate2(
            translator, options.exported, lambda: Batcher(engine, translator, options.batch, options.gather)
        )
    uvicorn.run(app_of(translate), host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
