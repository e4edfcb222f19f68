"""Looking at models that write: the answer is the one they give, and everything beside it is as it happened."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from looks import check, values, weights

import heedful
import published_folders as published
from heedful.config import FamilyConfig
from heedful.data.text_tokenizers import of_characters
from heedful.data.tokenizer import Tokenizer
from heedful.errors import ConfigError, DataError, HeedfulError
from heedful.families import GenerationDefaults, config_of
from heedful.generation import GenerationConfig, generate
from heedful.lens.alignment import Head
from heedful.lens.tokens import PART, visible
from heedful.tasks.inspection import document as inspection_document
from heedful.tasks.inspection import inspect
from heedful.tasks.inspection.generation import agreement, beam_tree, end_of
from heedful.tasks.language_model import CausalLanguageModel
from heedful.tasks.language_model.predictor import LanguageModelSettings
from heedful.tasks.model_import import import_model
from heedful.tasks.translation.data import LongTextWarning
from heedful.tasks.translation.inspection import look
from heedful.tasks.translation.predictor import Translator, TranslatorSettings

SOURCE, TARGET = "저는 책을 읽어요.", "I read books."
SMALL = {"preset": "tiny", "d_model": 16, "d_ff": 16, "n_encoder_layers": 2, "n_decoder_layers": 2}
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "a beam": {"beam": 4, "length_penalty": 0.6, "length_penalty_kind": "google"},
    "a sample": {"sample": True, "temperature": 1.5, "seed": 3, "n_best": 2},
}


def built(config: FamilyConfig) -> Any:
    """With weights so far apart that answers differ and end."""
    torch.manual_seed(0)
    module = heedful.build(config)
    for name, parameter in module.named_parameters():
        if "norm" not in name:
            parameter.data.normal_(0, 0.3)
    return module


def translator(
    config: dict[str, Any] = SMALL, texts: tuple[str, ...] = (SOURCE, TARGET), **settings: Any
) -> Translator:
    tokenizer = Tokenizer.train(texts * 3, vocab_size=330)
    family = config_of(config).changed(vocab_size=tokenizer.vocab_size)
    words = TranslatorSettings(
        source="ko", target="en", **{"generation": GenerationConfig(max_new_tokens=9), **settings}
    )
    return Translator(family, built(family), tokenizer, words)


def continuer(context: int | None = None) -> CausalLanguageModel:
    tokenizer = of_characters("abcdefg \n", end=True)
    config = config_of({"preset": "gpt2", "d_model": 16, "n_heads": 2, "n_layers": 2, "max_length": 32}).changed(
        vocab_size=tokenizer.vocab_size
    )
    tokens = GenerationDefaults(end=(tokenizer.vocab_size - 1,))
    settings = LanguageModelSettings(tokens=tokens, generation=GenerationConfig(max_new_tokens=8), context=context)
    return CausalLanguageModel(config, built(config), tokenizer, settings)


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A model for each kind, those of others among them."""
    folder = tmp_path_factory.mktemp("writers")
    end, ends = {"eos_token_id": 2}, {"eos_token_id": [1, 5, 6], "decoder_start_token_id": 0}
    made: dict[str, tuple[Any, dict[str, Any]]] = {
        "gpt2": (published.gpt2(), end | {"bos_token_id": 2, "max_new_tokens": 20}),
        "llama": (published.llama(), end | {"bos_token_id": 1, "max_new_tokens": 30}),
        "bart": (published.bart(), end | {"max_new_tokens": 9, "forced_bos_token_id": 4, "decoder_start_token_id": 2}),
        "t5": (published.t5(), ends | {"max_new_tokens": 9}),
    }
    for name, (model, words) in made.items():
        import_model(published.publish(folder / f"their {name}", model, generation=words), folder / name)
    actual = {name: heedful.load(folder / name) for name in made}
    recurrent = {"preset": "recurrent", "d_model": 16}
    return actual | {"translator": translator(), "recurrent": translator(recurrent), "characters": continuer()}


NAMES = ("gpt2", "llama", "bart", "t5", "translator", "recurrent", "characters")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_that_of_predict_and_looking_changes_nothing(
    name: str, way: str, writers: dict[str, Any]
) -> None:
    model, words = writers[name], WAYS[way]
    text = "bad egg" if name == "characters" else "나는 책"
    before = {key: tensor.clone() for key, tensor in model.module.state_dict().items()}
    (wanted,) = model.answers([text], **words)
    document = inspect(model, text, **words)
    assert document["answer"] == wanted.text == model.predict([text], **words)[0]
    check(document, model.module)
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.module.state_dict().items())

    steps, read = document["generation"]["steps"], document["sequences"]["target"]
    assert len(read) == len(document["written"]) == len(steps)
    told = [visible(step["token"]) for step in steps]
    assert [text == "\ufffd" for text in told] == [text.endswith(PART) for text in document["written"]]
    assert "".join(told).replace("\ufffd", "") == "".join(document["written"]).replace(PART, "")
    assert [token["text"] for token in read[1:]] == document["written"][:-1]
    assert (document["written"][-1] == "■") is wanted.finished
    own = steps[document.get("prompt", 1) - 1 :]
    assert len(own) == wanted.n_tokens
    assert sum(step["logprob"] for step in own) == pytest.approx(wanted.logprob, abs=1e-3)
    for step in steps:
        shares = [share for _, share in step["top"]]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1 + 1e-5

    beam = document["generation"]["beam"]
    assert (beam is None) is (way != "a beam")
    if beam:
        chosen = [node for node in beam["nodes"] if node["fate"] == "chosen"]
        assert [node["step"] for node in chosen] == list(range(wanted.n_tokens + 1))
        assert chosen[-1]["score"] == wanted.score
        assert chosen[-1]["logprob"] == pytest.approx(wanted.logprob)


@pytest.mark.parametrize("name", NAMES)
def test_the_weights_are_those_of_the_recorder(name: str, writers: dict[str, Any]) -> None:
    model = writers[name]
    text = "bad egg" if name == "characters" else "나는 책"
    document = inspect(model, text)
    (source,), (actual,) = model.inputs(text), model.generate(model.inputs(text), model.generation)[0][:1]
    end = [] if not actual.finished else [0]  # read by nobody
    tokens = [*actual.tokens, *end]
    with torch.inference_mode(), heedful.record(model.module) as recording:
        if document["kind"] == "writing":
            model.module(torch.tensor([[*source, *tokens][:-1]]))
        else:
            model.module(torch.tensor([source]), torch.tensor([[model.tokens.start, *tokens[:-1]]]))
    assert len(document["attentions"]) == len(recording.looks)
    for seen in recording.looks:
        assert torch.equal(weights(document, f"{seen.stack}.{seen.kind}.{seen.layer}"), seen.weights[0])


def test_every_beam_is_worth_what_the_model_gives_its_tokens() -> None:
    model = translator()
    (source,) = model.inputs(SOURCE)
    words = GenerationConfig(beam=3, max_new_tokens=6, length_penalty=0.7)
    traces: list[Any] = []
    ((best, *_),) = generate(
        model.module,
        [source],
        words,
        search_trace=traces,
        start=model.tokens.start,
        end=model.tokens.end,
        suppress_tokens=model.tokens.suppress_tokens,
    )
    written = [*best.tokens, *end_of(traces[0], best, words)]
    tree = beam_tree(traces[0], written, best, words, lambda tokens: str(tokens[-1]))
    nodes = tree["nodes"]

    def tokens(node: dict[str, Any]) -> list[int]:
        return [] if node["parent"] is None else [*tokens(nodes[node["parent"]]), int(node["text"])]

    for node in nodes[1:]:
        path = tokens(node)
        assert len(path) == node["step"] == nodes[node["parent"]]["step"] + 1
        with torch.inference_mode():
            logits = model.module(torch.tensor([source]), torch.tensor([[model.tokenizer.start, *path[:-1]]]))[0]
        alone = logits.log_softmax(-1)[range(len(path)), path].sum().item()
        assert node["logprob"] == pytest.approx(alone, abs=1e-4)
        assert node["score"] == pytest.approx(alone / len(path) ** 0.7, abs=1e-4)
    for step in range(1, len(traces[0]) + 1):
        at = [node for node in nodes if node["step"] == step]
        kept = [node["logprob"] for node in at if node["fate"] in ("kept", "chosen")]
        pruned = [node["logprob"] for node in at if node["fate"] == "pruned" and int(node["text"]) != 2]
        assert len(kept) <= 3 + 1  # one may be the end of the answer
        assert not pruned or max(pruned) <= min(kept) + 1e-6
    assert tokens(next(node for node in reversed(nodes) if node["fate"] == "chosen")) == written


def test_what_might_have_come_and_every_beam_keep_their_spaces() -> None:
    """Put together, the texts on the way to an answer are the answer."""
    document = inspect(continuer(), "bad egg", beam=2)
    chosen = [node["text"] for node in document["generation"]["beam"]["nodes"] if node["fate"] == "chosen"]
    assert "".join(chosen).removesuffix("■") == document["answer"]
    assert {" ", "\n"} & set(document["answer"])
    for step in document["generation"]["steps"]:
        own = [text for text, share in step["top"] if share == pytest.approx(math.exp(step["logprob"]))]
        assert not own or step["token"] in own
    told = inspect(translator(), SOURCE, target=TARGET)["generation"]["steps"]
    assert "".join(step["token"] for step in told) == f" {TARGET}■"
    assert any(text.startswith(" ") and len(text) > 1 for step in told for text, _ in step["top"])


def test_a_given_target_is_seen_as_if_it_had_been_written() -> None:
    model = translator()
    document = inspect(model, SOURCE, target=TARGET)
    assert (document["answer"], document["written"][-1]) == (TARGET, "■")
    assert (document["given"], inspect(model, SOURCE)["given"]) == (True, False)
    assert "".join(token["piece"] for token in document["sequences"]["target"][1:]) == "▁I▁read▁books."
    assert document["generation"]["beam"] is None
    wanted, actual = look(model, SOURCE, TARGET), document["alignment"]
    assert (actual["source"], actual["target"]) == (wanted.source, wanted.target)
    assert len(actual["maps"]) == len(wanted.weights)
    for one in actual["maps"]:
        torch.testing.assert_close(values(document, one["weights"]), wanted.weights[Head(one["layer"], one["head"])])
    assert actual["maps"][0]["layer"] is actual["maps"][0]["head"] is None
    best = values(document, actual["maps"][actual["chosen"]]["weights"]).argmax(dim=1).tolist()
    assert sorted(map(tuple, actual["links"])) == sorted((source, target) for target, source in enumerate(best))


def test_a_model_of_others_reads_a_target_as_it_was_trained(writers: dict[str, Any]) -> None:
    for name in ("bart", "t5"):
        document = inspect(writers[name], "나는 물을", target="나는 책을")
        assert document["written"][-1] == "■"
        assert document["alignment"]["target"] == ["나는", "책을"]
        assert document["alignment"]["source"] == ["나는", "물을"]
        assert (document["written"][0] == writers[name].target_tokenizer.token_of(4)) is (name == "bart")


def test_letters_spelt_in_bytes_are_whole_words() -> None:
    actual = inspect(translator(texts=(TARGET,)), SOURCE, target="책 I")["alignment"]
    assert (actual["source"], actual["target"]) == (["저는", "책을", "읽어요."], ["책", "I"])


def test_agreement_favours_the_map_that_tells_words_apart() -> None:
    apart, one_word = torch.eye(3)[[2, 0, 1]] * 0.1, torch.tensor([[0.1, 0.8], [0.0, 0.9], [0.2, 0.7]])
    assert agreement(apart) == 1
    assert agreement(one_word) == pytest.approx(1 / 3)


def test_the_recurrent_model_shows_its_alignment_and_nothing_it_does_not_have(writers: dict[str, Any]) -> None:
    document = inspect(writers["recurrent"], SOURCE, target=TARGET)
    assert [one["id"] for one in document["attentions"]] == ["decoder.cross.0"]
    assert document["attentions"][0]["numbers"] is document["positions"] is None
    assert document["layers"] == []
    assert [(one["layer"], one["head"]) for one in document["alignment"]["maps"]] == [(0, 0)]


def test_numbers_that_found_no_room_come_for_a_layer_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    model = translator()
    monkeypatch.setattr(inspection_document, "ROOM", 0)
    assert not any(one["numbers"] for one in inspect(model, SOURCE)["attentions"])
    assert all(one["numbers"] for one in inspect(model, SOURCE, layers=[0])["attentions"])


def test_only_the_layers_asked_for() -> None:
    document = inspect(translator(), SOURCE, layers=[1])
    assert {one["layer"] for one in (*document["attentions"], *document["layers"])} == {1}
    assert torch.equal(weights(document, "decoder.cross.1"), weights(inspect(translator(), SOURCE), "decoder.cross.1"))


@pytest.mark.parametrize(
    ("item", "words", "error", "said"),
    [
        ("", {}, DataError, "the text is empty"),
        (7, {}, DataError, "a text is a str, not int"),
        ("\ud800", {}, DataError, "half a surrogate pair"),
        (SOURCE, {"bean": 2}, ConfigError, "bean"),
        (SOURCE, {"target": TARGET, "beam": 2}, ConfigError, "no answer is generated: leave out 'beam'"),
        (SOURCE, {"layers": [0, 7]}, DataError, "there is no layer 7"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_in_words(
    item: Any, words: dict[str, Any], error: type[HeedfulError], said: str
) -> None:
    with pytest.raises(error, match=said):
        inspect(translator(), item, **words)


def test_a_text_of_several_parts_is_not_cut() -> None:
    with pytest.raises(DataError, match="answered in 2 parts"):
        inspect(translator(one_sentence=True), f"{SOURCE} {SOURCE}")


def test_a_sentence_longer_than_any_in_training_is_looked_at_whole_where_it_has_room() -> None:
    model, text = translator(), "책을 " * 400
    with pytest.warns(LongTextWarning, match="1 sentence longer .* was read whole, the longest with 401;"):
        document = inspect(model, text, layers=[0])
    assert len(document["sequences"]["source"]) == 401
    with pytest.warns(LongTextWarning):
        assert [document["answer"]] == model.predict([text])
    limited = translator({**SMALL, "positions": "learned", "max_length": 100}, max_tokens=100)
    with pytest.raises(DataError, match="answered in 5 parts"):
        inspect(limited, text)
    with pytest.raises(DataError, match=r"a word of .* tokens is longer than the 100 that this model reads at once"):
        inspect(limited, "책을" * 400)


def test_a_model_without_attention_says_so() -> None:
    with pytest.raises(HeedfulError, match="this recurrent model has no attention"):
        inspect(translator({"preset": "recurrent-plain", "d_model": 16}), SOURCE)


def test_an_answer_that_outgrows_the_context_is_refused_and_one_that_just_fits_is_not() -> None:
    model = continuer(context=12)
    model.settings = model.settings.changed(tokens=GenerationDefaults())  # it knows no end
    with pytest.raises(DataError, match=r"have 17 tokens together, and this model sees 12 .* at most 6 new"):
        inspect(model, "bad egg", max_new_tokens=11)
    document = inspect(model, "bad egg", max_new_tokens=6)
    assert len(document["sequences"]["target"]) == 12
    assert document["answer"] == model.predict(["bad egg"], max_new_tokens=6)[0]
    with pytest.warns(UserWarning, match="sees 12 tokens at once, and the text has 7 .* limited to 6 new tokens"):
        assert inspect(model, "bad egg") == document  # its own number, 8, is more than fits
    with pytest.raises(ConfigError, match="without 'target'"):
        inspect(model, "bad egg", target="a")


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="a Linear cannot be inspected"):
        inspect(torch.nn.Linear(2, 2), SOURCE)


def test_the_document_names_the_model(tmp_path: Path) -> None:
    model = translator()
    document = inspect(model, SOURCE, name="runs/ko-en", language="ko")
    assert (document["format"], document["kind"], document["language"]) == (1, "translation", "ko")
    assert document["question"] == SOURCE
    said = document["model"]
    assert (said["name"], said["family"], said["task"]) == ("runs/ko-en", "original", "translation")
    assert said["parameters"] == sum(parameter.numel() for parameter in model.module.parameters())
    assert ["d_model", 16] in said["facts"]
