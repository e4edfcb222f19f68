"""Published models that read text: what they answer is what transformers computes from the same folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import heedful
import published_folders as published
from heedful.errors import ConfigError, DataError
from heedful.tasks.model_import import import_model
from heedful.tasks.text_encoder import BATCH_TOKENS, _batches
from published_folders import TEXTS, publish, theirs, write
from shell import heedful as shell

LONG = " ".join(["cat"] * (published.LIMIT + 1))
CLASSES = {"id2label": {0: "bad", 1: "so so", 2: "good"}, "label2id": {"bad": 0, "so so": 1, "good": 2}}
PAIRS = [("The cat reads.", "나는 물을 마셔요!"), ("I played.", "")]


def close(actual: Any, wanted: Any) -> None:
    torch.testing.assert_close(torch.tensor(actual), torch.as_tensor(wanted), rtol=1e-4, atol=1e-5)


def modules(*kinds: str) -> list[dict[str, Any]]:
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize", "Dense": "2_Dense"}
    return [
        {"idx": 0, "name": "0", "path": paths[kind], "type": f"sentence_transformers.models.{kind}"} for kind in kinds
    ]


def hidden(folder: Path, text: str) -> torch.Tensor:
    """(T, D), of one text alone."""
    model, tokenizer = theirs(folder, "AutoModel")
    with torch.no_grad():
        return torch.as_tensor(model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0])


def logits(folder: Path, kind: str, *texts: str) -> torch.Tensor:
    model, tokenizer = theirs(folder, kind)
    rows = [[text] for text in texts]  # alone, an empty second text would count as none
    inputs = tokenizer(*rows, return_tensors="pt", return_token_type_ids=True)
    with torch.no_grad():
        return torch.as_tensor(model(**inputs).logits[0])


EMBEDDERS: dict[str, tuple[dict[str, Any], Callable[[torch.Tensor], torch.Tensor]]] = {
    "nothing said": ({}, lambda output: F.normalize(output.mean(0), dim=-1)),
    "mean": (
        {
            "modules_json": modules("Transformer", "Pooling"),
            "1_Pooling/config_json": {"pooling_mode_mean_tokens": True},
        },
        lambda output: output.mean(0),
    ),
    "first, normalized": (
        {
            "modules_json": modules("Transformer", "Pooling", "Normalize"),
            "1_Pooling/config_json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        },
        lambda output: F.normalize(output[0], dim=-1),
    ),
    "first, as newer ones say it": (
        {"modules_json": modules("Transformer", "Pooling"), "1_Pooling/config_json": {"pooling_mode": "cls"}},
        lambda output: output[0],
    ),
}


@pytest.mark.parametrize("kind", EMBEDDERS)
def test_pooling_matches_sentence_transformers_folder(kind: str, tmp_path: Path) -> None:
    files, pooled = EMBEDDERS[kind]
    folder = publish(tmp_path / "theirs", published.bert("Model"), **files)
    model = import_model(folder, tmp_path / "ours")
    assert (model.task, heedful.load(tmp_path / "ours").task) == ("embedding", "embedding")
    for text, vector in zip(TEXTS, model.predict(TEXTS), strict=True):
        close(vector, pooled(hidden(folder, text)))


def test_a_model_of_masked_words_that_has_a_pooling_is_an_embedder(tmp_path: Path) -> None:
    files = EMBEDDERS["mean"][0]
    folder = publish(tmp_path / "theirs", published.roberta(), **files)
    model = import_model(folder, tmp_path / "ours")
    assert model.task == "embedding"
    close(model.predict(TEXTS), torch.stack([hidden(folder, text).mean(0) for text in TEXTS]))
    assert import_model(folder, tmp_path / "words", task="masked-lm").task == "masked-lm"


WRONG_MODULES: dict[str, tuple[Any, Any, str]] = {
    "a layer more": (modules("Transformer", "Pooling", "Dense"), {"pooling_mode_mean_tokens": True}, "module 'Dense'"),
    "another pooling": (
        modules("Transformer", "Pooling"),
        {"pooling_mode_max_tokens": True},
        "pooling_mode_max_tokens",
    ),
    "a new word": (modules("Transformer", "Pooling"), {"pooling_mode": "lasttoken"}, "pooling_mode is not supported"),
    "two poolings": (modules("Pooling"), {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, " and "),
    "none": (modules("Pooling"), {}, "no pooling"),
    "no list": ({"type": "Pooling"}, {}, "not a list of modules"),
    "elsewhere": ([{"type": "Transformer", "path": "0_Transformer"}], {}, "only one beside"),
    **{
        f"path {path!r}": (
            [{"type": "x.Pooling", "path": path}],
            {"pooling_mode_mean_tokens": True},
            "folder beside it",
        )
        for path in ("..", ".", "../1_Pooling", "/etc", "a/b", "\0", "1_Pooling/..", "~")
    },
}


@pytest.mark.parametrize("case", WRONG_MODULES)
def test_modules_that_are_not_known_are_refused(case: str, tmp_path: Path) -> None:
    values, pooling, match = WRONG_MODULES[case]
    folder = publish(
        tmp_path / "theirs", published.bert("Model"), **{"modules_json": values, "1_Pooling/config_json": pooling}
    )
    write(tmp_path / "config.json", {"pooling_mode_mean_tokens": True})  # for one that climbs
    with pytest.raises(ConfigError, match=match):
        import_model(folder, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_lower_casing_is_done_by_the_tokenizer(tmp_path: Path) -> None:
    lower = {"sentence_bert_config_json": {"max_seq_length": 9, "do_lower_case": True}}
    assert import_model(publish(tmp_path / "bert", published.bert("Model"), **lower), tmp_path / "ours").predict(["A"])
    with pytest.raises(ConfigError, match="do_lower_case"):
        import_model(publish(tmp_path / "roberta", published.roberta("Model"), **lower), tmp_path / "other")


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_classes_by_their_names_and_probabilities(family: str, tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", getattr(published, family)("ForSequenceClassification", **CLASSES))
    model = import_model(folder, tmp_path / "ours")
    for text, shares in zip(TEXTS, model.predict(TEXTS), strict=True):
        wanted = logits(folder, "AutoModelForSequenceClassification", text).softmax(-1)
        close([shares[name] for name in ("bad", "so so", "good")], wanted)
        assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_two_texts_are_told_apart(tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", published.bert("ForSequenceClassification", **CLASSES))
    model = import_model(folder, tmp_path / "ours")
    for pair, shares in zip(PAIRS, model.predict(PAIRS), strict=True):
        wanted = logits(folder, "AutoModelForSequenceClassification", *pair).softmax(-1)
        close([shares[name] for name in ("bad", "so so", "good")], wanted)
    joined = model.predict([" ".join(PAIRS[0])])[0]
    assert abs(joined["bad"] - model.predict(PAIRS)[0]["bad"]) > 1e-5


def test_a_table_of_segments_that_a_tokeniser_does_not_use(tmp_path: Path) -> None:
    """A tokeniser that numbers two texts, over a model with one row, which tells nothing apart."""
    folder = publish(tmp_path / "theirs", published.roberta("ForSequenceClassification", vocab_size=300))
    published.wordpiece().save(str(folder / "tokenizer.json"))
    assert len(import_model(folder, tmp_path / "ours").predict(["a", ("a", "b")])) == 2
    write(folder / "tokenizer_config.json", {"model_input_names": ["input_ids", "attention_mask"]})
    assert len(import_model(folder, tmp_path / "unused").predict(["a", ("a", "b")])) == 2


MEANINGS: dict[str, tuple[dict[str, Any], Callable[[torch.Tensor], torch.Tensor]]] = {
    "several": (CLASSES | {"problem_type": "multi_label_classification"}, torch.sigmoid),
    "one score": ({"num_labels": 1}, lambda output: output),
    "scores": (CLASSES | {"problem_type": "regression"}, lambda output: output),
}


@pytest.mark.parametrize("case", MEANINGS)
def test_what_the_numbers_mean(case: str, tmp_path: Path) -> None:
    changes, meant = MEANINGS[case]
    folder = publish(tmp_path / "theirs", published.bert("ForSequenceClassification", **changes))
    model = import_model(folder, tmp_path / "ours")
    wanted = meant(logits(folder, "AutoModelForSequenceClassification", TEXTS[0]))
    (shares,) = model.predict(TEXTS[:1])
    close([shares[name] for name in model.settings.labels], wanted)
    output = shell("predict", tmp_path / "ours", TEXTS[0]).out.rstrip("\n")
    if case == "several":
        assert output == "\t".join(name for name, share in shares.items() if share >= 0.5)
    else:
        assert output.split("\t") == [f"{score:.6g}" for score in shares.values()]
    beside = shell("predict", tmp_path / "ours", TEXTS[0], "--scores").out
    assert beside.startswith(f"{next(iter(shares))}\t{next(iter(shares.values())):.4f}")
    assert ('"scores"' in shell("predict", tmp_path / "ours", TEXTS[0], "--json").out) == ("score" in case)


@pytest.mark.parametrize(("family", "mask"), [("bert", "[MASK]"), ("roberta", "<mask>")])
def test_gaps_are_filled_as_transformers_guesses(family: str, mask: str, tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", getattr(published, family)())
    model = import_model(folder, tmp_path / "ours")
    text = f"The {mask} reads a {mask}."
    _, tokenizer = theirs(folder, "AutoModelForMaskedLM")
    best = logits(folder, "AutoModelForMaskedLM", text).softmax(-1).topk(5)
    places = [place for place, index in enumerate(tokenizer(text)["input_ids"]) if index == tokenizer.mask_token_id]
    (guesses,) = model.guesses([text])
    assert len(guesses) == len(places) == 2
    for gap, place in zip(guesses, places, strict=True):
        close([guess.probability for guess in gap], best.values[place])
        names = [tokenizer.decode([index]) for index in best.indices[place]]
        assert [guess.text.strip() for guess in gap] == [name.strip().removeprefix("##") for name in names]


class Certain(torch.nn.Module):
    """The same guess in every gap."""

    def __init__(self, size: int, token: int) -> None:
        super().__init__()
        self.size, self.token = size, token

    def forward(self, x: torch.Tensor, *_: Any) -> torch.Tensor:
        return F.one_hot(torch.full(x.shape[:2], self.token), self.size).float()


@pytest.mark.parametrize(
    ("family", "token", "text", "wanted"),
    [
        ("bert", "cat", "The [MASK]  READS ([MASK])!", "The cat  READS (cat)!"),
        ("bert", "cat", "[MASK][MASK] x", "catcat x"),
        ("bert", "cat", "a [MASK] [MASK]", "a cat cat"),
        ("bert", "##s", "play [MASK], cat[MASK]", "plays, cats"),
        ("bert", ".", "He reads [MASK]", "He reads."),
        ("bert", "[SEP]", "[MASK] x", "[SEP] x"),
        ("roberta", "Ġthe", "in <mask> garden", "in the garden"),
        ("roberta", "s", "play <mask>", "plays"),
        ("roberta", "T", "<mask>he", "The"),
    ],
)
def test_word_continuation_has_no_space(family: str, token: str, text: str, wanted: str, tmp_path: Path) -> None:
    model = import_model(publish(tmp_path / "theirs", getattr(published, family)()), tmp_path / "ours")
    index = model.tokenizer.id_of(token)
    assert index is not None
    model.module.head = Certain(model.config.vocab_size, index)
    assert model.predict([text]) == [wanted]


def test_a_text_without_a_gap_is_refused_and_an_empty_one_is_not(tmp_path: Path) -> None:
    model = import_model(publish(tmp_path / "theirs", published.bert()), tmp_path / "ours")
    assert model.predict(["", " "]) == ["", " "]
    with pytest.raises(DataError, match=r"text 2: it has no gap; write \[MASK\]"):
        model.predict(["[MASK]", "a <mask>"])
    with pytest.raises(DataError, match="text 1: gaps are filled in one text"):
        model.guesses([("a", "[MASK]")])
    done = shell("predict", tmp_path / "ours", stdin=b"a [MASK]\nno gap\n\n")
    assert (done.code, done.out.count("\n")) == (1, 3)
    assert "<stdin>:2: it has no gap" in done.err


READERS: dict[str, Callable[[], Any]] = {
    "embedding": lambda: published.bert("Model"),
    "classification": lambda: published.roberta("ForSequenceClassification", **CLASSES),
    "masked-lm": published.bert,
}


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One bundle for each task."""
    folder = tmp_path_factory.mktemp("readers")
    for task, make in READERS.items():
        assert import_model(publish(folder / f"their {task}", make()), folder / task).task == task
    return {task: folder / task for task in READERS}


@pytest.mark.parametrize("task", READERS)
def test_batched_output_equals_single_output(task: str, readers: dict[str, Path]) -> None:
    model: Any = heedful.load(readers[task])
    texts = [
        f"{'[MASK] ' if task == 'masked-lm' else ''}{text}" for text in [*TEXTS, *published.TYPED, "cat " * 15] * 9
    ]
    together = model.outputs(texts)
    for text, found in list(zip(texts, together, strict=True))[:10]:
        torch.testing.assert_close(found, model.outputs([text])[0], rtol=1e-4, atol=1e-5)
    assert model.outputs([]) == []
    assert model.predict([]) == []


def test_texts_of_similar_length_are_read_together_and_each_once() -> None:
    lengths = [3, 4096, 1, 5000, 2000, 2000, 100]
    batches = _batches(lengths)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or max(lengths[index] for index in batch) * len(batch) <= BATCH_TOKENS


@pytest.mark.parametrize("task", READERS)
def test_what_cannot_be_read_is_named(task: str, readers: dict[str, Path]) -> None:
    model: Any = heedful.load(readers[task])
    mask = "[MASK] " if task == "masked-lm" else ""
    for wrong, why in (
        (mask + LONG, f"it has .* tokens, and this model reads at most {published.LIMIT}"),
        (mask + "\ud800", "half a surrogate pair"),
        (7, "a text is a str, not int"),
        (None, "a text is a str, not NoneType"),
        (["a", "b"], "a text is a str, not list"),
        (("a", "b", "c"), "gaps are filled" if mask else "a text is a str, not tuple"),
    ):
        with pytest.raises(DataError, match=f"text 2: {why}"):
            model.predict([f"{mask}cat", wrong])
        assert model.validation_error(wrong)
    assert model.validation_error(f"{mask}cat") is None
    with pytest.raises(DataError, match=r"predict takes a list, not str; put one text in brackets"):
        model.predict("cat")


@pytest.mark.parametrize("task", READERS)
def test_the_shell_answers_line_by_line(task: str, readers: dict[str, Path]) -> None:
    text = "The [MASK] reads." if task == "masked-lm" else "The cat reads."
    (answer,) = heedful.load(readers[task]).predict([text])
    lines = shell("predict", readers[task], stdin=f"{text}\n\n{text}\n".encode()).out.split("\n")
    assert len(lines) == 4
    assert lines[0] == lines[2]
    examples: dict[str, Callable[[], str]] = {
        "embedding": lambda: " ".join(f"{number:.6g}" for number in answer),
        "classification": lambda: next(iter(answer)),
        "masked-lm": lambda: answer,
    }
    assert lines[0] == examples[task]()


@pytest.mark.parametrize("task", READERS)
def test_generation_options_are_refused_for_encoders(task: str, readers: dict[str, Path]) -> None:
    for options in (("--beam", 2), ("--n-best", 2), ("--sample",), ("--max-new-tokens", 5), ("--stream",)):
        done = shell("predict", readers[task], "a [MASK] cat", *options)
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1
        assert f"{options[0]} is for models that generate text; this model is for {task}" in done.err
