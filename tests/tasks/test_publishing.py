"""`heedful export --to hf`: transformers answers the same from the folder, and so does the bundle made of it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch.nn import functional as F

import heedful
import published_folders as published
from heedful.config import read_mapping
from heedful.data.tokenizer import Tokenizer
from heedful.families import config_of, write_checkpoint
from heedful.families.ctranslate2 import ExportError
from heedful.tasks import hf_export
from heedful.tasks.embedding import Pooling, pooling_of
from heedful.tasks.hf_export import export_huggingface
from heedful.tasks.model_import import import_model
from heedful.tasks.translation.data import Tokenizers
from heedful.tasks.translation.predictor import Translator, TranslatorSettings
from published_folders import PAGE, TEXTS, publish, randomised, theirs
from shell import heedful as shell

CLASSES = {"id2label": {0: "나쁨", 1: "so so", 2: "good"}, "label2id": {"나쁨": 0, "so so": 1, "good": 2}}
TOKENS = {"decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}
CHOICES = {"num_beams": 3, "length_penalty": 0.5, "max_new_tokens": 12, "min_new_tokens": 2, "no_repeat_ngram_size": 3}
SAMPLING = {"do_sample": True, "temperature": 0.5, "top_k": 7, "top_p": 0.75, "repetition_penalty": 1.25}
POOLING = {
    "modules_json": [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"}],
    "1_Pooling/config_json": {"pooling_mode_cls_token": True},
}
PUBLISHED: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "masked-lm": (published.bert, {}),
    "masked roberta": (published.roberta, {}),
    "classes": (lambda: published.bert("ForSequenceClassification", **CLASSES), {}),
    "several classes": (
        lambda: published.bert("ForSequenceClassification", problem_type="multi_label_classification", **CLASSES),
        {},
    ),
    "scores": (lambda: published.roberta("ForSequenceClassification", problem_type="regression", **CLASSES), {}),
    "embedding": (lambda: published.bert("Model"), {}),
    "first, not normalized": (lambda: published.roberta("Model"), POOLING),
    "gpt2": (published.gpt2, {"generation": {"eos_token_id": [2, 9], "bos_token_id": 2, **CHOICES}}),
    "gpt2 that samples": (published.gpt2, {"generation": {"eos_token_id": 2, "max_new_tokens": 9, **SAMPLING}}),
    "llama": (published.llama, {"generation": {"eos_token_id": 2, "bos_token_id": 1, "max_new_tokens": 9}}),
    "bart": (
        published.bart,
        {"generation": TOKENS | CHOICES | {"forced_bos_token_id": 7, "bad_words_ids": [[9], [70]]}},
    ),
    "t5": (published.t5, {"generation": {"decoder_start_token_id": 0, "eos_token_id": 1, "max_new_tokens": 9}}),
}


def asked(model: Any) -> list[Any]:
    texts = [text for text in TEXTS if text]
    return [f"{text} {model.settings.mask}" for text in texts] if model.task == "masked-lm" else texts


@pytest.mark.parametrize("case", PUBLISHED)
def test_a_model_goes_out_and_comes_back_as_it_was(case: str, tmp_path: Path) -> None:
    make, files = PUBLISHED[case]
    ours = import_model(publish(tmp_path / "theirs", make(), **files), tmp_path / "ours")
    done = shell("export", tmp_path / "ours", "--to", "hf", "--out", tmp_path / "new" / "out")
    assert (done.code, done.err) == (0, "")
    assert "all weights are equal" in done.out
    again = import_model(tmp_path / "new" / "out", tmp_path / "again")
    assert (again.task, again.config, again.settings) == (ours.task, ours.config, ours.settings)
    assert again.tokenizer.fingerprint == ours.tokenizer.fingerprint
    assert again.tokenizer.roles.items() >= ours.tokenizer.roles.items()
    before, after = ours.module.state_dict(), again.module.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert again.predict(asked(ours)) == ours.predict(asked(ours))


@pytest.mark.parametrize("case", PUBLISHED)
def test_transformers_computes_the_same_from_what_was_written(case: str, tmp_path: Path) -> None:
    make, files = PUBLISHED[case]
    before = publish(tmp_path / "theirs", make(), **files)
    import_model(before, tmp_path / "ours")
    export_huggingface(tmp_path / "ours", tmp_path / "out")
    kind = type(make()).__name__
    one, tokenizer = theirs(before, kind)
    other, other_tokenizer = theirs(tmp_path / "out", kind)
    for text in TEXTS[2:]:
        ids = tokenizer(text)["input_ids"]
        assert other_tokenizer(text)["input_ids"] == ids
        given = {"input_ids": torch.tensor([ids])}
        if hasattr(one, "get_decoder") and one.config.is_encoder_decoder:
            given["decoder_input_ids"] = given["input_ids"]
        with torch.no_grad():
            assert torch.equal(one(**given)[0], other(**given)[0])
    if one.can_generate():
        for name in ("eos_token_id", *files["generation"]):
            assert getattr(other.generation_config, name) == getattr(one.generation_config, name), name
    assert other.config.id2label == one.config.id2label
    if "classes" in case or case == "scores":
        means = {"several classes": "multi_label_classification", "scores": "regression"}
        assert other.config.problem_type == means.get(case, "single_label_classification")


def test_two_texts_are_told_apart_from_what_was_written(tmp_path: Path) -> None:
    """A tokeniser that gives no token_type_ids unless it is told to."""
    model = import_model(
        publish(tmp_path / "theirs", published.bert("ForSequenceClassification", **CLASSES)), tmp_path / "ours"
    )
    export_huggingface(tmp_path / "ours", tmp_path / "out")
    other, tokenizer = theirs(tmp_path / "out", "AutoModelForSequenceClassification")
    with torch.no_grad():
        shares = other(**tokenizer("The cat", "a dog", return_tensors="pt")).logits[0].softmax(-1)
    (ours,) = model.predict([("The cat", "a dog")])
    assert [ours[other.config.id2label[place]] for place in range(3)] == pytest.approx(shares.tolist(), abs=1e-5)


def test_vectors_are_pooled_as_they_were(tmp_path: Path) -> None:
    for normalized in (True, False):
        for head in ("first", "mean"):
            model = import_model(
                publish(tmp_path / "theirs", published.bert("Model")), tmp_path / f"{head} {normalized}"
            )
            model.config = model.config.changed(head=head)
            model.settings = model.settings.changed(normalized=normalized)
            model.save(tmp_path / "ours")
            out = tmp_path / f"out {head} {normalized}"
            files = export_huggingface(tmp_path / "ours", out)
            assert {"modules.json", "1_Pooling/config.json"} <= set(files)
            assert pooling_of(out) == Pooling(head, normalized)
            assert ((out / "1_Pooling").stat().st_mode & 0o777) == 0o755
            other, tokenizer = theirs(out, "AutoModel")
            with torch.no_grad():
                hidden = other(**tokenizer("The cat", return_tensors="pt")).last_hidden_state[0]
            vector = hidden[0] if head == "first" else hidden.mean(0)
            wanted = F.normalize(vector, dim=-1) if normalized else vector
            assert heedful.load(tmp_path / "ours").predict(["The cat"])[0] == pytest.approx(wanted.tolist(), abs=1e-5)


def translator(folder: Path, *, joint: bool = True, **changes: Any) -> Translator:
    """One trained here, as far as its bundle shows."""
    source, target = (Tokenizer.train(texts * 2, vocab_size=size) for texts, size in ((PAGE, 330), (PAGE[:2], 300)))
    tokenizers = Tokenizers(source, source if joint else target)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 2, "n_decoder_layers": 2, "max_length": 32}
    words = {"vocab_size": tokenizers.sizes[0], "tied": "all" if joint else "output"}
    config = config_of("marian-tiny").changed(
        **sizes, **words, target_vocab_size=None if joint else tokenizers.sizes[1]
    )
    module = randomised(heedful.build(config))
    settings = TranslatorSettings(source="ko", target="en", joint=joint, **changes)
    Translator(config, module, tokenizers.source, settings, tokenizers.target).save(folder)
    return heedful.load(folder, "translation")


@pytest.mark.parametrize("beam", [1, 3])
def test_transformers_translates_as_a_model_that_was_trained_here(beam: int, tmp_path: Path) -> None:
    model = translator(tmp_path / "ours", generation={"beam": beam})
    done = shell("export", tmp_path / "ours", "--to", "hf", "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    other, tokenizer = theirs(tmp_path / "out", "AutoModelForSeq2SeqLM")
    assert other.generation_config.num_beams in (None, beam)
    texts = [PAGE[2], TEXTS[0]]
    ours = model.answers(texts, max_new_tokens=32)
    assert any(answer.n_tokens > 20 for answer in ours)  # more than transformers writes unless told
    for text, answer in zip(texts, ours, strict=True):
        with torch.no_grad():
            row = other.generate(**tokenizer(text, return_tensors="pt"))[0]
        assert tokenizer.decode(row, skip_special_tokens=True) == answer.text
    again = import_model(tmp_path / "out", tmp_path / "again")
    assert again.task == "text-to-text"
    assert again.predict(texts) == [answer.text for answer in ours]


def test_a_translator_of_two_vocabularies_comes_back(tmp_path: Path) -> None:
    model = translator(tmp_path / "ours", joint=False)
    files = export_huggingface(tmp_path / "ours", tmp_path / "out")
    assert {"tokenizer.json", "target_tokenizer.json"} <= set(files)
    again = import_model(tmp_path / "out", tmp_path / "again")
    assert again.predict(PAGE) == model.predict(PAGE, max_new_tokens=32)


PREPARED: dict[str, dict[str, Any]] = {
    "as it is": {"do_resize": False, "rescale_factor": 0.25},
    "resized": {"size": {"height": 12, "width": 12}, "resample": 3, "do_rescale": False},
    "cropped": {
        "image_processor_type": "DeiTImageProcessor",
        "size": {"shortest_edge": 14},
        "crop_size": 12,
        "do_center_crop": True,
    },
}


@pytest.mark.parametrize("case", PREPARED)
def test_images_are_prepared_as_they_were(case: str, tmp_path: Path) -> None:
    sizes = {"image_size": 12, "patch_size": 4, "hidden_size": 20, "intermediate_size": 23, "num_hidden_layers": 1}
    model = transformers.ViTForImageClassification(transformers.ViTConfig(num_attention_heads=5, **sizes, **CLASSES))
    randomised(model).save_pretrained(tmp_path / "theirs")
    said = {"image_processor_type": "ViTImageProcessor", "image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7]}
    published.write(tmp_path / "theirs" / "preprocessor_config.json", said | PREPARED[case])
    ours = import_model(tmp_path / "theirs", tmp_path / "ours")
    export_huggingface(tmp_path / "ours", tmp_path / "out")
    again = import_model(tmp_path / "out", tmp_path / "again")
    assert (again.config, again.settings) == (ours.config, ours.settings)
    processor: Any = transformers.AutoImageProcessor.from_pretrained(tmp_path / "out", backend="pil")
    rows = 12 if case == "as it is" else 17
    picture = (np.arange(rows * 12 * 3) * 7 % 256).astype(np.uint8).reshape(rows, 12, 3)
    given = torch.as_tensor(processor(picture, return_tensors="np")["pixel_values"][0])
    torch.testing.assert_close(ours.prepared(picture), given, rtol=1e-3, atol=1e-3)


def test_a_forecaster_comes_back(tmp_path: Path) -> None:
    sizes = {"d_model": 20, "num_attention_heads": 5, "ffn_dim": 23, "num_hidden_layers": 1, "prediction_length": 7}
    model = transformers.PatchTSTForPrediction(
        transformers.PatchTSTConfig(context_length=30, patch_length=6, patch_stride=3, **sizes)
    )
    randomised(model).save_pretrained(tmp_path / "theirs")
    ours = import_model(tmp_path / "theirs", tmp_path / "ours")
    export_huggingface(tmp_path / "ours", tmp_path / "out")
    again = import_model(tmp_path / "out", tmp_path / "again")
    series = [[float(step % 7) for step in range(30)]]
    assert again.predict(series) == ours.predict(series)


def test_what_has_no_published_form_is_refused_and_nothing_left(tmp_path: Path) -> None:
    source = Tokenizer.train(PAGE * 2, vocab_size=330)
    config = config_of("tiny").changed(vocab_size=source.vocab_size, d_model=16, n_heads=2, d_ff=32)
    settings = TranslatorSettings(source="ko", target="en")
    Translator(config, heedful.build(config), source, settings).save(tmp_path / "ours")
    done = shell("export", tmp_path / "ours", "--to", "hf", "--out", tmp_path / "out")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "the family 'original' has no published form; " in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_model(publish(tmp_path / "theirs", published.bert()), tmp_path / "ours")
    done = shell("export", tmp_path / "ours", "--to", "hf", "--out", tmp_path / "out", "--quantization", "int8")
    assert (done.code, "--quantization is for --to ctranslate2" in done.err) == (2, True)
    done = shell("export", tmp_path / "ours", "--to", "hf", "--out", tmp_path / "theirs")
    assert (done.code, "not an empty folder; choose another one (--out)" in done.err) == (1, True)
    done = shell("export", tmp_path / "theirs", "--to", "hf", "--out", tmp_path / "out")
    assert (done.code, "is not a bundle's config" in done.err) == (1, True)
    done = shell("export", tmp_path / "ours", "--to", "ctranslate2", "--out", tmp_path / "out")
    assert (done.code, "only translators are written for CTranslate2" in done.err) == (1, True)

    def lossy(folder: Path, module: Any, *rest: Any, **words: Any) -> None:
        with torch.no_grad():
            module.embedding.weight[5, 5] += 1
        write_checkpoint(folder, module, *rest, **words)
        with torch.no_grad():
            module.embedding.weight[5, 5] -= 1

    monkeypatch.setattr(hf_export, "write_checkpoint", lossy)
    with pytest.raises(ExportError, match=r"embedding\.weight differs after reading the export back"):
        export_huggingface(tmp_path / "ours", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours", "theirs"]


def test_roles_of_tokens_are_said(tmp_path: Path) -> None:
    files: dict[str, Any] = {"tokenizer_config_json": {}}
    import_model(publish(tmp_path / "bert", published.bert(), **files), tmp_path / "ours")
    export_huggingface(tmp_path / "ours", tmp_path / "out")
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "out").mask_token == "[MASK]"
    translator(tmp_path / "translator")
    export_huggingface(tmp_path / "translator", tmp_path / "other")
    said = read_mapping(tmp_path / "other" / "tokenizer_config.json")
    assert (said["pad_token"], said["bos_token"], said["eos_token"]) == ("<pad>", "<s>", "</s>")
