"""The logit lens ends with the model's logits; patching everything gives the clean run, and nothing the corrupted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import heedful
from every_task import embedder, language_model, translator
from heedful.errors import ConfigError, DataError, RecordingError
from heedful.lens import PatchEffects, logit_lens, patch

SOURCE, TARGET = torch.arange(10).view(2, 5), torch.arange(8).view(2, 4)
pytestmark = pytest.mark.usefixtures("without_gradients")
SMALL: dict[str, Any] = {"vocab_size": 20, "d_model": 24, "n_heads": 4, "d_ff": 32}


@pytest.fixture
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def encoder_decoder() -> Any:
    return heedful.build("tiny", **SMALL, n_encoder_layers=3, n_decoder_layers=2).double().eval()


def decoder_only() -> Any:
    return heedful.build("gpt2-tiny", **SMALL, n_layers=3, max_length=32).double().eval()


def test_the_last_layer_gives_the_models_logits() -> None:
    model = encoder_decoder()
    layers = logit_lens(model, (SOURCE, TARGET)).logits
    assert layers.shape == (3, 2, 4, 20)
    torch.testing.assert_close(layers[-1], model(SOURCE, TARGET), rtol=0, atol=0)


def test_a_layer_gives_the_logits_of_a_model_that_ends_there() -> None:
    model = decoder_only()
    layers = logit_lens(model, SOURCE).logits
    for depth in (2, 1, 0):
        del model.decoder.layers[depth]
        expected = model(SOURCE) if depth else model.head(model.decoder.norm(model.decoder.positions.embed(
            model.embedding(SOURCE)[0], torch.arange(5))))  # fmt: skip
        torch.testing.assert_close(layers[depth], expected, rtol=0, atol=1e-12)


def test_top_and_log_probability_read_the_same_numbers() -> None:
    layers = logit_lens(decoder_only(), SOURCE)
    top = layers.top(2, row=1)
    assert len(top) == 4
    assert len(top[0]) == 5
    token, share = top[3][4][0]
    assert token == int(layers.logits[3, 1, 4].argmax())
    assert share == pytest.approx(float(layers.log_probability(token, row=1)[3, 4].exp()))


def test_a_translator_reads_its_answer_and_a_language_model_its_text() -> None:
    model = translator("ko", "en")
    answer = model.answers(["나는 책을 읽었다."])[0]
    layers = logit_lens(model, "나는 책을 읽었다.")
    assert layers.logits.shape[2] == answer.n_tokens
    logprobs = layers.logits[-1, 0].log_softmax(-1)
    read = logit_lens(model, ("나는 책을 읽었다.", "I drink water."))
    assert read.logits.shape[2] == len(model.target_tokenizer.encode("I drink water.")) + 1
    pieces = [piece.logprob for piece in answer.pieces]
    assert [float(row.max()) >= value - 1e-5 for row, value in zip(logprobs, pieces, strict=True)] == [True] * len(
        pieces
    )
    text, _ = layers.top()[-1][0][0]
    assert isinstance(text, str)
    writer = language_model()
    assert logit_lens(writer, "I drink water").logits.shape[2] == len(writer.inputs("I drink water")[0])


def test_patching_everything_gives_the_clean_run_and_nothing_the_corrupted_one() -> None:
    model, clean, corrupted = decoder_only(), SOURCE[:1], SOURCE[1:]
    logprobs = [float(model(each)[0, -1].log_softmax(-1)[7]) for each in (clean, corrupted)]
    for layer_part in ("layer", "self_attention"):
        effects = patch(model, clean, corrupted, 7, part=layer_part, positions=[range(5), []])
        assert [effects.clean, effects.corrupted] == pytest.approx(logprobs)
        assert float(effects.effects[:, 1].abs().max()) < 1e-12
    whole = patch(model, clean, corrupted, 7, positions=[range(5), [4]])
    assert whole.restored[:, 0].tolist() == pytest.approx([1, 1, 1])
    assert float(whole.restored[2, 1]) == pytest.approx(1)  # the last stream of the last token is all that is read
    assert float(whole.restored[0, 1]) != pytest.approx(1)


def test_an_effect_is_that_of_swapping_the_activation_by_hand() -> None:
    model, clean, corrupted = decoder_only(), SOURCE[:1], SOURCE[1:]
    effects = patch(model, clean, corrupted, [3, 7], part="feed_forward").effects
    assert effects.shape == (3, 5)
    part, stored = model.decoder.layers[1].feed_forward.sublayer, []
    handle = part.register_forward_hook(lambda *_: stored.append(_[2].clone()))
    model(clean)
    before = model(corrupted)
    handle.remove()
    stored[1][:, 2] = stored[0][:, 2]
    handle = part.register_forward_hook(lambda *_: stored[1])
    after = model(corrupted)
    handle.remove()
    change = (after.log_softmax(-1) - before.log_softmax(-1))[0]
    assert float(effects[1, 2]) == pytest.approx(float(change[-2, 3] + change[-1, 7]), abs=1e-9)


def test_patching_in_small_batches_gives_the_same_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    model, clean, corrupted = decoder_only(), SOURCE[:1], SOURCE[1:]
    whole = patch(model, clean, corrupted, 7).effects
    monkeypatch.setattr(sys.modules[PatchEffects.__module__], "BATCH_TOKENS", 11)  # two rows of five tokens
    torch.testing.assert_close(patch(model, clean, corrupted, 7).effects, whole, rtol=0, atol=1e-12)


def test_heads_and_the_encoder_are_patched_too() -> None:
    model = encoder_decoder()
    clean, corrupted = (SOURCE[:1], TARGET[:1]), (SOURCE[1:], TARGET[:1])
    assert patch(model, clean, corrupted, 7, part="cross").effects.shape == (2, 4)
    whole = patch(model, clean, corrupted, 7, stack="encoder", positions=[range(5)])
    assert whole.restored.flatten().tolist() == pytest.approx([1, 1, 1])


def test_a_translator_is_patched_with_texts() -> None:
    model = translator("ko", "en")
    result = patch(model, "나는 책을 읽었다.", "그는 책을 읽었다.", "I drink water.", stack="encoder")
    n_tokens = len(model.inputs("나는 책을 읽었다.")[0])
    assert result.effects.shape == (2, n_tokens)
    ids = model.target_tokenizer.encode("I drink water.")
    logits = model.module(torch.tensor(model.inputs("나는 책을 읽었다.")), torch.tensor([[model.tokens.start, *ids]]))
    by_hand = logits[0].log_softmax(-1)[range(len(ids) + 1), [*ids, model.tokens.end[0]]].sum()
    assert result.clean == pytest.approx(float(by_hand), abs=1e-4)


def test_a_language_model_is_patched_with_texts() -> None:
    model = language_model()
    result = patch(model, "I drink water", "I drink books", " in")
    (prompt,), (answer,) = model.inputs("I drink water"), model.inputs(" in")
    assert result.effects.shape[1] == len(prompt) + len(answer) - 1


def test_what_cannot_be_done_is_refused() -> None:
    model, clean = decoder_only(), SOURCE[:1]
    with pytest.raises(RecordingError, match="one row and equal length"):
        patch(model, clean, SOURCE[:1, :4], 7)
    with pytest.raises(RecordingError, match="one row and equal length"):
        patch(model, SOURCE, SOURCE, 7)
    with pytest.raises(ConfigError, match="unknown stack 'encoder'"):
        patch(model, clean, clean, 7, stack="encoder")
    with pytest.raises(ConfigError, match="unknown part 'cross'"):
        patch(model, clean, clean, 7, part="cross")
    with pytest.raises(ConfigError, match="positions 0 to 4"):
        patch(model, clean, clean, 7, positions=[5])
    with pytest.raises(ConfigError, match="all positions"):
        patch(model, clean, clean, 7, part="self", positions=[1])
    with pytest.raises(RecordingError, match="1 to 5 tokens"):
        patch(model, clean, clean, [])
    with pytest.raises(RecordingError, match="eval"):
        logit_lens(model.train(), clean)
    with pytest.raises(RecordingError, match="a tensor"):
        logit_lens(model.eval(), "text")
    with pytest.raises(RecordingError, match="writes no text"):
        logit_lens(embedder(), "text")
    with pytest.raises(RecordingError, match="over a vocabulary"):
        logit_lens(heedful.build("bert-tiny", head="mean").eval(), clean)
    with pytest.raises(DataError):
        logit_lens(translator("ko", "en"), "")
