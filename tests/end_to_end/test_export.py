"""A bundle, written for CTranslate2 from the shell: what it says in both engines, and what is left after a refusal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as FastTokenizer
from torch import nn

from heedful import build, load
from heedful.data.tokenizer import Tokenizer
from heedful.errors import ConfigError
from heedful.families import GenerationDefaults, config_of
from heedful.families.ctranslate2 import ExportError, Model, Vocabularies, from_ctranslate2, read_binary, write_folder
from heedful.families.original import OriginalConfig
from heedful.tasks import ctranslate2_export
from heedful.tasks.ctranslate2_export import write_ctranslate2
from heedful.tasks.translation.data import Tokenizers
from heedful.tasks.translation.predictor import Translator, TranslatorSettings
from shell import heedful

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install heedful[ctranslate2]")

TEXTS = ["나는 책을 읽어요.", "고양이가 물을 마셔요.", "I read a book.\nThe cat drinks water.", "🙂"]
SMALL = OriginalConfig(
    d_model=16, n_heads=2, d_ff=32, n_encoder_layers=2, n_decoder_layers=2, max_length=128, norm="pre"
)


def randomised(module: Any) -> Any:
    for parameter in module.parameters():
        nn.init.normal_(parameter, mean=0.0 if parameter.dim() > 1 else 0.5, std=0.3)
    return module.eval()


def bundle(folder: Path, *, joint: bool = True, model: Any = SMALL) -> Path:
    """Write the bundle of a translator with random weights."""
    source, target = (Tokenizer.train(texts * 2, vocab_size=size) for texts, size in ((TEXTS, 320), (TEXTS[2:], 290)))
    tokenizers = Tokenizers(source, source if joint else target)
    sizes = {"vocab_size": tokenizers.sizes[0], "tied": "all" if joint else "output"}
    config = model.changed(**sizes, target_vocab_size=None if joint else tokenizers.sizes[1])
    settings = TranslatorSettings(source="ko", target="en", joint=joint)
    Translator(config, randomised(build(config)), tokenizers.source, settings, tokenizers.target).save(folder)
    return folder


@pytest.mark.parametrize("joint", [True, False])
def test_both_engines_translate_the_same_from_the_pieces_of_the_tokeniser(joint: bool, tmp_path: Path) -> None:
    model, out = bundle(tmp_path / "model", joint=joint), tmp_path / "new" / "out"
    done = heedful("export", model, "--to", "ctranslate2", "--out", out)
    assert (done.code, done.err) == (0, "")
    assert f"wrote {out}" in done.out
    assert "12 of 12 answers are equal (beam 1 and 4)" in done.out
    names = {"shared_vocabulary.json"} if joint else {"source_vocabulary.json", "target_vocabulary.json"}
    names |= {"tokenizer.json"} if joint else {"tokenizer.json", "target_tokenizer.json"}
    assert {path.name for path in out.iterdir()} == {"model.bin", "config.json"} | names

    translator: Any = load(model, "translation")
    lines = [line for text in TEXTS for line in text.splitlines()]
    pieces = FastTokenizer.from_file(str(out / "tokenizer.json"))
    answers = ctranslate2.Translator(str(out)).translate_batch(
        [pieces.encode(line).tokens for line in lines],
        beam_size=1,
        max_decoding_length=20,
        min_decoding_length=0,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )
    decoder = FastTokenizer.from_file(str(out / ("tokenizer.json" if joint else "target_tokenizer.json")))
    written = [[decoder.token_to_id(token) for token in answer.hypotheses[0]] for answer in answers]
    decoded = [translator.target_tokenizer.decode(ids) for ids in written]
    assert decoded == translator.predict(lines, beam=1, max_new_tokens=20)
    exported, answered = translator.predict(TEXTS, beam=1, max_new_tokens=20), iter(decoded)
    assert exported == ["\n".join(next(answered) for _ in text.splitlines()) for text in TEXTS]


def test_a_quantised_model_is_smaller_and_says_how_far_off_it_is(tmp_path: Path) -> None:
    model = bundle(tmp_path / "model", model=SMALL.changed(d_model=64, max_length=64))
    for name, flags in (("full", ()), ("int8", ("--quantization", "int8"))):
        done = heedful("export", model, "--to", "ctranslate2", "--out", tmp_path / name, *flags)
        assert done.code == 0, done.err
    assert "verified in float32" in done.out
    assert "verified in int8" in done.out
    full, small = ((tmp_path / name / "model.bin").stat().st_size for name in ("full", "int8"))
    assert small < full / 2
    assert read_binary(tmp_path / "int8" / "model.bin").variables["decoder/projection/weight"].dtype == torch.int8


def test_a_folder_with_something_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    model, out = bundle(tmp_path / "model"), tmp_path / "out"
    out.mkdir()
    assert heedful("export", model, "--to", "ctranslate2", "--out", out).code == 0
    (out / "mine.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    done = heedful("export", model, "--to", "ctranslate2", "--out", out)
    assert done.code == 1
    assert "choose another one" in done.err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_part_without_a_place_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    recurrent = config_of("recurrent").changed(d_model=16)
    done = heedful(
        "export", bundle(tmp_path / "model", model=recurrent), "--to", "ctranslate2", "--out", tmp_path / "out"
    )
    assert done.code == 1
    assert "encoder is RecurrentEncoder" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_engines_that_do_not_agree_stop_the_export_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when one number of one matrix came out wrong on the way."""
    model = bundle(tmp_path / "model")

    def damaged(model: Model, folder: Path, **options: Any) -> None:
        write_folder(model, folder, **options)
        raw = (folder / "model.bin").read_bytes()
        place = raw.index(b"decoder/layer_1/attention/linear_2/weight") + 200
        (folder / "model.bin").write_bytes(raw[:place] + b"\x3f\x80\x3f\x40" + raw[place + 4 :])

    monkeypatch.setattr(ctranslate2_export, "write_folder", damaged)
    done = heedful("export", model, "--to", "ctranslate2", "--out", tmp_path / "out")
    assert done.code == 1
    assert "does not compute what the model does, so nothing was written" in done.err
    assert "most at token" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_without_ctranslate2_the_shell_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bundle(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    done = heedful("export", model, "--to", "ctranslate2", "--out", tmp_path / "out")
    assert (done.code, done.out) == (1, "")
    assert "pip install 'heedful[ctranslate2]'" in done.err


DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": {"family": "gpt2", "n_layers": 2, "max_length": 80},
    "short gpt2": {"family": "gpt2", "n_layers": 2, "max_length": 9},
    "llama": {"family": "llama", "n_layers": 2, "n_kv_heads": 2},
    "llama tied": {"family": "llama", "n_layers": 2, "tied": True},
    "bart": {"family": "bart", "n_encoder_layers": 2, "n_decoder_layers": 2, "max_length": 12},
    "t5": {"family": "t5", "n_encoder_layers": 2, "n_decoder_layers": 2, "d_head": 6},
}


@pytest.mark.parametrize("name", DECODERS)
def test_any_model_of_known_parts_is_written_from_python(name: str, tmp_path: Path) -> None:
    module = randomised(build({**DECODERS[name], "vocab_size": 40, "d_model": 24, "n_heads": 4, "d_ff": 30}))
    tokens = tuple(f"t{index}" for index in range(40))
    start = None if name == "gpt2" else 1
    model = Model(module, Vocabularies(tokens, tokens), GenerationDefaults(start=start, end=(2,)))
    done = write_ctranslate2(model, tmp_path / "out")
    assert done.exact.largest < 1e-5
    assert done.exact.scored >= 3
    assert not done.exact.different
    assert from_ctranslate2(tmp_path / "out").vocabularies == model.vocabularies


def test_what_cannot_be_asked_for_is_refused_at_once(tmp_path: Path) -> None:
    module = randomised(build(SMALL, vocab_size=40))
    tokens = tuple(f"t{index}" for index in range(40))
    model = Model(module, Vocabularies(tokens, tokens), GenerationDefaults(start=1, end=(2,)))
    with pytest.raises(ConfigError, match="unknown quantization 'int3'"):
        write_ctranslate2(model, tmp_path / "out", quantization="int3")
    module.train()
    with pytest.raises(ExportError, match=r"module\.eval\(\)"):
        write_ctranslate2(model, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_different_answer_is_told_from_a_tie_that_rounding_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = randomised(build(SMALL, vocab_size=40))
    tokens = tuple(f"t{index}" for index in range(40))
    model = Model(module, Vocabularies(tokens, tokens, suffix=(2,)), GenerationDefaults(start=1, end=(2,)))
    write_ctranslate2(model, tmp_path / "out")
    pairs, answer = list(ctranslate2_export.random_pairs(model)), ctranslate2_export.search_answer

    def other(model: Model, ids: list[int], beam: int) -> tuple[list[int], float]:
        """Another first token: the least likely one, the last of them where several are."""
        tokens, score = answer(model, ids, beam)
        with torch.no_grad():
            logits = module(torch.tensor([ids]), torch.tensor([[1]]))[0, 0]
        return [int((logits == logits.min()).nonzero()[-1]), *tokens[1:]], score - 3

    monkeypatch.setattr(ctranslate2_export, "search_answer", other)
    assert len(ctranslate2_export.compare(model, tmp_path / "out", pairs).different) == 2 * len(pairs)
    with torch.no_grad():  # all tokens alike: any answer is as good as any other
        module.head.weight.zero_()
    done = write_ctranslate2(model, tmp_path / "alike")
    assert (done.exact.answers, done.exact.different) == (2 * len(pairs), ())
