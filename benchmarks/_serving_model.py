"""A translator to serve: base-sized, of random weights, with a vocabulary of made-up words, one token each."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import torch

import heedful
from heedful.data.tokenizer import FIRST_PIECE, Tokenizer
from heedful.families import config_of
from heedful.generation import GenerationConfig
from heedful.tasks.translation.predictor import Translator, TranslatorSettings

VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
NEW = 24  # tokens of an answer before it may end


def write_model(folder: Path, config: dict[str, Any]) -> None:
    """A bundle whose answers have one length, so that every engine has the same to write."""
    torch.manual_seed(0)
    tokenizer = _tokenizer(config["vocab_size"])
    family = config_of({**config, "vocab_size": tokenizer.vocab_size})
    settings = TranslatorSettings(
        source="en", target="ko", generation=GenerationConfig(min_new_tokens=NEW, max_new_tokens=NEW + 1)
    )
    folder.mkdir(parents=True, exist_ok=True)
    Translator(family, heedful.build(family), tokenizer, settings).save(folder)


def with_beam(folder: Path, beam: int, out: Path) -> Path:
    """The same bundle, but for its beam."""
    shutil.copytree(folder, out)
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    config["settings"]["generation"]["beam"] = beam
    (out / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return out


def sentences(vocab_size: int, n: int, seed: int = 1) -> list[str]:
    """Of 8 to 40 tokens, the end among them."""
    words, random = _words(vocab_size), Random(seed)
    return [" ".join(random.choice(words) for _ in range(random.randint(7, 39))) for _ in range(n)]


def _tokenizer(vocab_size: int) -> Tokenizer:
    """Letters make syllables, syllables make words, and a word takes the space before it."""
    words = _words(vocab_size)
    merges = [*product(CONSONANTS, VOWELS), *((word[:2], word[2:]) for word in words), *((" ", word) for word in words)]
    return Tokenizer([" ", *VOWELS, *CONSONANTS, *(left + right for left, right in merges)], merges)


def _words(vocab_size: int) -> list[str]:
    """As many as fit beside the fixed pieces, the letters and the syllables."""
    syllables = ["".join(letters) for letters in product(CONSONANTS, VOWELS)]
    room = vocab_size - FIRST_PIECE - 1 - len(VOWELS) - len(CONSONANTS) - len(syllables)
    return ["".join(pair) for pair in list(product(syllables, syllables))[: room // 2]]
