"""Published models that write text: with the defaults of their folders, they write what transformers writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
import published_folders as published
from heedful.data.published_tokenizer import PublishedTokenizer
from heedful.errors import ConfigError, DataError
from heedful.tasks.language_model import DEFAULT_MAX_NEW_TOKENS
from heedful.tasks.model_import import import_model
from published_folders import TEXTS, publish, theirs
from shell import heedful as shell

START = {"bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 2}
GPT2: dict[str, dict[str, Any]] = {
    "greedy": {"max_new_tokens": 9},
    "a beam": {"max_new_tokens": 9, "num_beams": 3, "length_penalty": 0.5},
    "several ends": {"max_new_tokens": 30, "eos_token_id": [2, *range(60, 160)]},
    "no repetition": {"max_new_tokens": 12, "repetition_penalty": 1.7},
    "no pair twice": {"max_new_tokens": 12, "no_repeat_ngram_size": 2},
    "bad words": {"max_new_tokens": 9, "bad_words_ids": [[index] for index in range(40, 200)]},
    "not too short": {"max_new_tokens": 12, "min_new_tokens": 7, "eos_token_id": [2, *range(60, 160)]},
}
PROMPTS = ["The cat", "나는 물을", "a </s> b", " in the garden, ", "x"]


def written(folder: Path, kind: str, text: str, **words: Any) -> list[int]:
    """What transformers writes with the folder's own defaults, alone; the prompt left out."""
    model, tokenizer = theirs(folder, kind)
    given = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        row: list[int] = model.generate(**given, **words)[0].tolist()
    return row[1:] if kind == "AutoModelForSeq2SeqLM" else row[given["input_ids"].shape[1] :]


def text_of(tokenizer: PublishedTokenizer, prompt: str, ids: list[int], ends: list[int]) -> str:
    """What the tokens add, up to an end."""
    stop = next((place for place, index in enumerate(ids) if index in ends), len(ids))
    return tokenizer.continuation(tokenizer.encode(prompt), ids[:stop])


@pytest.mark.parametrize("case", GPT2)
def test_a_language_model_goes_on_as_transformers_does(case: str, tmp_path: Path) -> None:
    words = START | GPT2[case]
    folder = publish(tmp_path / "theirs", published.gpt2(), generation=words)
    model = import_model(folder, tmp_path / "ours")
    ends = words["eos_token_id"] if isinstance(words["eos_token_id"], list) else [words["eos_token_id"]]
    answers = heedful.load(tmp_path / "ours", "language-model").answers(PROMPTS)
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        ids = written(folder, "AutoModelForCausalLM", prompt)
        assert answer.text == text_of(model.tokenizer, prompt, ids, ends)
        assert answer.finished == (ids[-1] in ends)
        assert model.answers([prompt])[0].text == answer.text
    if "ends" in case or "short" in case:
        assert any(answer.finished for answer in answers)


def test_an_empty_text_is_the_start_of_any_and_a_space_is_text(tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", published.gpt2(), generation=START | {"max_new_tokens": 6})
    model = import_model(folder, tmp_path / "ours")
    theirs_alone = theirs(folder, "AutoModelForCausalLM")[0]
    ids = theirs_alone.generate(torch.tensor([[2]]), attention_mask=torch.ones(1, 1))[0, 1:].tolist()
    empty, space = model.predict(["", " "])
    assert empty == model.tokenizer.decode(ids)
    assert space == text_of(model.tokenizer, " ", written(folder, "AutoModelForCausalLM", " "), [2])
    nothing = publish(
        tmp_path / "none", published.gpt2(bos_token_id=None, eos_token_id=None), generation={"max_new_tokens": 6}
    )
    with pytest.raises(DataError, match="text 2: this model has no start token"):
        import_model(nothing, tmp_path / "bare").predict(["a", ""])


def test_sampling_is_the_folders_own_and_its_seed_ours(tmp_path: Path) -> None:
    words = {"do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9, "max_new_tokens": 8}
    folder = publish(tmp_path / "theirs", published.gpt2(), generation=START | words)
    model = import_model(folder, tmp_path / "ours")
    own = model.generation
    assert (own.sample, own.temperature, own.top_k, own.top_p, own.max_new_tokens) == (True, 0.7, 5, 0.9, 8)
    drawn = {model.predict(["The cat"], seed=seed)[0] for seed in range(8)}
    assert len(drawn) > 1
    assert model.predict(["The cat"], seed=3) == model.predict(["The cat"], seed=3)
    greedy = publish(tmp_path / "greedy", published.gpt2(), generation=START | {"max_new_tokens": 8})
    assert model.predict(["The cat"], beam=1) == import_model(greedy, tmp_path / "other").predict(["The cat"])
    ids = theirs(folder, "AutoModelForCausalLM")[0](torch.tensor([model.tokenizer.encode("The cat")])).logits[0, -1]
    allowed = {
        model.tokenizer.continuation(model.tokenizer.encode("The cat"), [index]) for index in ids.topk(5).indices
    }
    assert {model.predict(["The cat"], seed=seed, max_new_tokens=1)[0] for seed in range(20)} <= allowed


def test_a_language_model_that_says_no_length_has_one(tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", published.llama(), generation={"bos_token_id": 1, "eos_token_id": 2})
    assert import_model(folder, tmp_path / "ours").generation.max_new_tokens == DEFAULT_MAX_NEW_TOKENS
    words = {"bos_token_id": 1, "eos_token_id": 2, "min_new_tokens": DEFAULT_MAX_NEW_TOKENS + 5}
    folder = publish(tmp_path / "long", published.llama(), generation=words)
    assert import_model(folder, tmp_path / "other").generation.max_new_tokens == 2 * DEFAULT_MAX_NEW_TOKENS + 5


@pytest.mark.parametrize("beams", [1, 3])
def test_a_llama_that_spells_in_bytes(beams: int, tmp_path: Path) -> None:
    words = {"bos_token_id": 1, "eos_token_id": 2, "max_new_tokens": 15, "num_beams": beams}
    folder = publish(tmp_path / "theirs", published.llama(), generation=words)
    model = import_model(folder, tmp_path / "ours")
    for prompt, answer in zip(PROMPTS, model.predict(PROMPTS), strict=True):
        ids = written(folder, "AutoModelForCausalLM", prompt)
        assert answer == text_of(model.tokenizer, prompt, ids, [2])


TOKENS = {"decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1, "bos_token_id": 0}
T5_TOKENS = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
REWRITERS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "bart": (published.bart, TOKENS | {"max_new_tokens": 9}),
    "bart, forced": (published.bart, TOKENS | {"max_new_tokens": 9, "forced_bos_token_id": 7, "num_beams": 2}),
    "bart, a length": (published.bart, TOKENS | {"max_length": 7, "no_repeat_ngram_size": 2, "num_beams": 1}),
    "bart, another start": (published.bart, TOKENS | {"max_new_tokens": 9, "decoder_start_token_id": 5}),
    "bart, no repetition": (published.bart, TOKENS | {"max_new_tokens": 9, "repetition_penalty": 1.9}),
    "t5": (published.t5, T5_TOKENS | {"max_new_tokens": 9}),
    "t5, a beam": (published.t5, T5_TOKENS | {"max_new_tokens": 9, "num_beams": 3, "eos_token_id": [1, 5, 6]}),
}


@pytest.mark.parametrize("case", REWRITERS)
def test_a_text_is_rewritten_as_transformers_does(case: str, tmp_path: Path) -> None:
    make, words = REWRITERS[case]
    folder = publish(tmp_path / "theirs", make(), generation=words)
    model = import_model(folder, tmp_path / "ours")
    assert model.task == "text-to-text"
    prompts = [f"translate English to Korean: {text}" if case == "t5" else text for text in TEXTS]
    for prompt, answer in zip(prompts, heedful.load(tmp_path / "ours").predict(prompts), strict=True):
        ids = written(folder, "AutoModelForSeq2SeqLM", prompt)
        if prompt:
            assert answer == model.tokenizer.decode(ids)
            assert model.predict([prompt]) == [answer]
        else:
            assert answer == ""


def test_a_prefix_stands_before_every_text(tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", published.t5(), generation=T5_TOKENS | {"max_new_tokens": 9})
    model = import_model(folder, tmp_path / "ours")
    wanted = model.predict([f"play: {text}" for text in TEXTS if text])
    model.settings = model.settings.changed(prefix="play: ")
    model.save(tmp_path / "again")
    assert heedful.load(tmp_path / "again").predict([text for text in TEXTS if text]) == wanted
    assert heedful.load(tmp_path / "again").predict([""]) == [""]


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle for each kind; do not write into them."""
    folder = tmp_path_factory.mktemp("writers")
    made = {
        "gpt2": (published.gpt2(), START | {"max_new_tokens": 20}),
        "llama": (published.llama(), {"bos_token_id": 1, "eos_token_id": 2, "max_new_tokens": 40}),
        "bart": (published.bart(), TOKENS | {"max_new_tokens": 20}),
        "t5": (published.t5(), T5_TOKENS | {"max_new_tokens": 20}),
    }
    for name, (model, words) in made.items():
        import_model(publish(folder / f"their {name}", model, generation=words), folder / name)
    return {name: folder / name for name in made}


WRITERS = ("gpt2", "llama", "bart", "t5")


@pytest.mark.parametrize("name", WRITERS)
def test_a_stream_adds_up_to_the_answer_and_shows_whole_characters(name: str, writers: dict[str, Path]) -> None:
    model: Any = heedful.load(writers[name])
    for text in ("The cat", "", "나는"):
        for seed in range(3):
            words = {"sample": True, "temperature": 1.5, "seed": seed} if seed else {}
            stream = model.stream(text, **words)
            bits = list(stream)
            assert "".join(bits) == stream.answer.text == model.predict([text], **words)[0]
            assert all(bits)


@pytest.mark.parametrize("name", WRITERS)
def test_pieces_have_what_the_answer_is_worth(name: str, writers: dict[str, Path]) -> None:
    model: Any = heedful.load(writers[name])
    for answer in model.answers([text for text in PROMPTS if text.strip()]):
        assert sum(piece.logprob for piece in answer.pieces) == pytest.approx(answer.logprob, abs=1e-4)
        assert answer.n_tokens >= len(answer.pieces)
    best, *others = model.candidates(["The cat"], n_best=3)[0]
    assert len(others) == 2
    assert best.score >= others[0].score >= others[1].score


@pytest.mark.parametrize("name", WRITERS)
def test_what_cannot_be_read_is_named(name: str, writers: dict[str, Path]) -> None:
    model: Any = heedful.load(writers[name])
    wrong = [("\ud800", "half a surrogate pair"), (7, "a text is a str, not int"), (("a", "b"), "not tuple")]
    if name in ("gpt2", "bart"):  # the others' positions are relative
        wrong.append(("cat " * 70, f"tokens, and this model reads at most {published.LIMIT}"))
    for text, why in wrong:
        with pytest.raises(DataError, match=f"text 2: .*{why}"):
            model.predict(["a", text])
        with pytest.raises(DataError, match="text 1: "):
            model.stream(text)
        assert model.validation_error(text)
    with pytest.raises(DataError, match="predict takes a list, not str"):
        model.predict("cat")
    with pytest.raises(ConfigError, match="unknown"):
        model.predict(["cat"], beams=3)


def test_a_prompt_may_fill_all_places_but_not_more(writers: dict[str, Path]) -> None:
    model = heedful.load(writers["gpt2"], "language-model")
    texts = ["x" * letters for letters in range(published.LIMIT - 1, published.LIMIT + 2)]
    assert [len(model.tokenizer.encode(text)) - published.LIMIT for text in texts] == [-1, 0, 1]
    assert [answer.n_tokens for answer in model.answers(texts[:2])] == [2, 1]
    assert "this model reads at most 64" in (model.validation_error(texts[2]) or "")


def test_the_shell_writes_and_streams(writers: dict[str, Path]) -> None:
    model = heedful.load(writers["llama"])
    (answer,) = model.predict(["나는 물을"])
    plain = shell("predict", writers["llama"], "나는 물을")
    streamed = shell("predict", writers["llama"], "나는 물을", "--stream")
    assert (plain.code, plain.err, streamed.err) == (0, "", "")  # so much and no more was asked for
    assert plain.out == streamed.out
    assert len(answer) > 3
    lines = shell("predict", writers["bart"], "--json", stdin="The cat\n\n나는\n".encode()).out.splitlines()
    assert len(lines) == 3
    long = shell("predict", writers["gpt2"], stdin=("cat\n" + "cat " * 70 + "\n").encode())
    assert (long.code, long.out.count("\n")) == (1, 2)
    assert "<stdin>:2: it has " in long.err
    assert "Traceback" not in long.err
