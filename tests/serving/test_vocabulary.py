"""A translator that knows its vocabulary says which words it could only guess, in the API and on the look page."""

from __future__ import annotations

from running import start

from heedful.serving.models import Models
from heedful.serving.settings import Settings

KNOWN, UNKNOWN = "저는 학생입니다.", "저는 우주선을 탔어요."


def test_words_outside_the_vocabulary_are_named() -> None:
    settings = Settings(port=0)
    running = start(Models.load(["ko-en"], settings), settings)
    try:
        fields = {"source": "ko", "target": "en"}
        single = running.ask("/translate", fields | {"q": UNKNOWN}).json
        assert single["unknownWords"] == ["우주선을"]
        assert running.ask("/translate", fields | {"q": [KNOWN, UNKNOWN]}).json["unknownWords"] == [[], ["우주선을"]]
        assert running.ask("/translate", fields | {"q": KNOWN}).json == {"translatedText": "I am a student."}
        looks = [running.ask("/look/ko-en", {"input": text}).body.decode() for text in (KNOWN, UNKNOWN)]
        assert ['"unknown_words":["우주선을"]' in look.replace(": ", ":") for look in looks] == [False, True]
    finally:
        running.stop()
