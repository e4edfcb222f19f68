"""Models of CTranslate2 as bundles: they translate as that engine does, and as the bundle they came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import processors
from torch import nn

import heedful
from heedful.data.tokenizer import Tokenizer
from heedful.families import GenerationDefaults, PublishedWarning
from heedful.families.ctranslate2 import Model, Vocabularies, write_folder
from heedful.families.original import OriginalConfig
from heedful.tasks.model_import import import_model
from heedful.tasks.translation.data import Tokenizers
from heedful.tasks.translation.predictor import Translator, TranslatorSettings
from shell import heedful as shell

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install heedful[ctranslate2]")

TEXTS = ["나는 책을 읽어요.", "고양이가 물을 마셔요.", "The cat drinks water.", "🙂"]
SIZES: dict[str, Any] = {
    "d_model": 16,
    "n_heads": 2,
    "d_ff": 32,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "max_length": 128,
}
SIZES |= {"norm": "pre", "tied": "none"}
LETTERS = ("<unk>", "<s>", "</s>", *"abcdefgh ")


def randomised(module: Any, *unwanted: int) -> Any:
    """Never writing the unwanted: what a norm gives sums up to D times its bias, and the rows are alike."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, mean=0.0 if parameter.dim() > 1 else 0.5, std=0.6)
    with torch.no_grad():
        module.decoder.norm.weight.fill_(3.0)
        module.decoder.norm.bias.fill_(1.0)
        module.head.weight[list(unwanted)] = -5.0
    return module.eval()


def exported(folder: Path, *, joint: bool = True) -> tuple[Any, Path]:
    """A translator of ours, and the same as CTranslate2 has it."""
    source, target = (Tokenizer.train(texts * 2, vocab_size=size) for texts, size in ((TEXTS, 320), (TEXTS[2:], 290)))
    tokenizers = Tokenizers(source, source if joint else target)
    config = OriginalConfig(
        **SIZES, vocab_size=tokenizers.sizes[0], target_vocab_size=None if joint else tokenizers.sizes[1]
    )
    settings = TranslatorSettings(source="ko", target="en", joint=joint)
    module = randomised(heedful.build(config), source.pad, source.start)
    Translator(config, module, tokenizers.source, settings, tokenizers.target).save(folder / "ours")
    done = shell("export", folder / "ours", "--to", "ctranslate2", "--out", folder / "theirs")
    assert done.code == 0, done.err
    return heedful.load(folder / "ours"), folder / "theirs"


@pytest.mark.parametrize("joint", [True, False])
def test_what_was_exported_comes_back_and_translates_the_same(joint: bool, tmp_path: Path) -> None:
    model, folder = exported(tmp_path, joint=joint)
    done = shell("import", folder, "--out", tmp_path / "again")
    assert (done.code, done.err) == (0, "")
    assert "a composed model for text-to-text" in done.out
    again: Any = heedful.load(tmp_path / "again")
    assert again.settings.joint == joint
    for options in ({"beam": 1, "max_new_tokens": 15}, {"beam": 4, "max_new_tokens": 15}):
        assert again.predict(TEXTS, **options) == model.predict(TEXTS, **options)
    assert len({*model.predict(TEXTS, max_new_tokens=15)}) > 2
    for text in TEXTS:
        assert again.inputs(text) == model.inputs(text)  # the end is there, and once
    assert again.predict(["", "  "]) == ["", ""]
    assert shell("predict", tmp_path / "again", TEXTS[0]).code == 0
    back = shell("export", tmp_path / "again", "--to", "hf", "--out", tmp_path / "back")
    assert (back.code, "'composed' has no published form" in back.err) == (2, True)


def test_a_tokeniser_that_adds_ends_itself_adds_them_once(tmp_path: Path) -> None:
    model, folder = exported(tmp_path)
    fast = FastTokenizer.from_file(str(folder / "tokenizer.json"))
    ends = {"single": "<s> $A </s>", "special_tokens": [("<s>", 1), ("</s>", 2)]}
    fast.post_processor = processors.TemplateProcessing(**ends)
    fast.save(str(folder / "tokenizer.json"))
    again = import_model(folder, tmp_path / "again")
    assert [again.inputs(text) for text in TEXTS] == [model.inputs(text) for text in TEXTS]


def test_a_tokeniser_of_another_model_is_refused(tmp_path: Path) -> None:
    _, folder = exported(tmp_path)
    vocabulary = json.loads((folder / "shared_vocabulary.json").read_text())
    vocabulary[300], vocabulary[301] = vocabulary[301], vocabulary[300]
    (folder / "shared_vocabulary.json").write_text(json.dumps(vocabulary))
    done = shell("import", folder, "--out", tmp_path / "again")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "which in the model is" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours", "theirs"]


def listed(folder: Path, **around: Any) -> Path:
    """A model over letters with a bare list of tokens."""
    torch.manual_seed(7)  # one whose answers depend on whether an end was read
    module = randomised(heedful.build(OriginalConfig(**SIZES, vocab_size=len(LETTERS))), 0, 1)
    defaults = GenerationDefaults(start=1, end=(2,))
    folder.mkdir()
    write_folder(Model(module, Vocabularies(LETTERS, LETTERS, **around), defaults), folder)
    return folder


@pytest.mark.parametrize("around", [{}, {"suffix": (2,)}, {"prefix": (1,), "suffix": (2,)}])
@pytest.mark.parametrize("unit", ["words", "characters"])
def test_a_list_of_tokens_is_read_as_words_or_characters(unit: Any, around: dict[str, Any], tmp_path: Path) -> None:
    folder = listed(tmp_path / "theirs", **around)
    model = import_model(folder, tmp_path / "ours", unit=unit)
    tokens = ["c", "a", "b", "h"]
    space = " " if unit == "words" else ""
    text = space.join(tokens)
    assert model.inputs(text) == [[*around.get("prefix", ()), *map(LETTERS.index, tokens), *around.get("suffix", ())]]
    engine = ctranslate2.Translator(str(folder))
    assert len({*model.predict([text], max_new_tokens=13)[0]}) > 1
    (result,) = engine.translate_batch([tokens], beam_size=1, max_decoding_length=13)
    assert model.predict([text], max_new_tokens=13) == [space.join(result.hypotheses[0])]
    assert LETTERS.index("<unk>") in model.inputs(space.join(["c", "z"]))[0]


def test_without_a_unit_words_are_taken_and_said_to_be(tmp_path: Path) -> None:
    folder = listed(tmp_path / "theirs")
    done = shell("import", folder, "--out", tmp_path / "ours")
    assert done.code == 0
    assert "tokens with spaces between them" in done.err
    model: Any = heedful.load(tmp_path / "ours")
    assert model.inputs("a b") == [[3, 4]]
    with pytest.warns(PublishedWarning, match="--unit characters"):
        import_model(folder, tmp_path / "other")


def test_a_language_model_goes_on(tmp_path: Path) -> None:
    config = {
        "family": "gpt2",
        "n_layers": 2,
        "max_length": 40,
        "vocab_size": len(LETTERS),
        "d_model": 24,
        "n_heads": 4,
    }
    module = heedful.build(config)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    (tmp_path / "theirs").mkdir()
    model = Model(module.eval(), Vocabularies(LETTERS, LETTERS), GenerationDefaults(start=1, end=(2,)))
    write_folder(model, tmp_path / "theirs")
    imported = import_model(tmp_path / "theirs", tmp_path / "ours", unit="characters")
    assert imported.task == "language-model"
    engine = ctranslate2.Generator(str(tmp_path / "theirs"))
    (result,) = engine.generate_batch([["c", "a", "b"]], max_length=9, include_prompt_in_result=False)
    assert imported.predict(["cab"], max_new_tokens=9) == ["".join(result.sequences[0])]


def test_what_cannot_be_imported_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = listed(tmp_path / "theirs")
    for options, code, reason in (
        (("--task", "language-model"), 2, "is a model for text-to-text, and not for language-model"),
        (("--task", "embedding"), 2, "is a model for text-to-text, and not for embedding"),
    ):
        done = shell("import", folder, "--unit", "words", "--out", tmp_path / "ours", *options)
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
        assert reason in done.err
    (folder / "shared_vocabulary.json").unlink()
    done = shell("import", folder, "--unit", "words", "--out", tmp_path / "ours")
    assert (done.code, "lacks a vocabulary" in done.err) == (1, True)
    (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:99])
    done = shell("import", folder, "--out", tmp_path / "ours")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]
