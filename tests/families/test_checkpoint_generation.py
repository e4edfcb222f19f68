"""What generation_config.json says: read as transformers means it, written so that it says the same."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import transformers

from heedful.errors import ConfigError
from heedful.families import FAMILIES, GenerationDefaults, PublishedWarning
from heedful.families.hf_config import Published
from heedful.generation import GenerationConfig


def published(family: str) -> Published:
    published = FAMILIES[family].published
    assert published is not None
    return published


GPT2, BART = published("gpt2"), published("bart")
SAMPLED = GenerationDefaults(sample=True, temperature=0.5, top_k=9, top_p=0.25, min_p=0.125)
CASES: list[tuple[dict[str, Any], GenerationDefaults]] = [
    ({}, GenerationDefaults()),
    ({"max_new_tokens": 9, "min_new_tokens": 3}, GenerationDefaults(max_new_tokens=9, min_new_tokens=3)),
    ({"repetition_penalty": 1.5}, GenerationDefaults(repetition_penalty=1.5)),
    ({"no_repeat_ngram_size": 3}, GenerationDefaults(no_repeat_ngram_size=3)),
    ({"num_beams": 4, "length_penalty": 2}, GenerationDefaults(beam=4, length_penalty=2.0)),
    ({"do_sample": True, "temperature": 0.5, "top_k": 9, "top_p": 0.25, "min_p": 0.125}, SAMPLED),
    ({"do_sample": True, "top_k": 0}, GenerationDefaults(sample=True)),
]


@pytest.mark.parametrize(("settings", "meant"), CASES)
def test_generation_settings_round_trip(settings: dict[str, Any], meant: GenerationDefaults) -> None:
    assert GenerationDefaults.read(GPT2, settings) == meant
    assert meant.write(GPT2) == settings
    expected = transformers.GenerationConfig(**settings)
    expected.validate(strict=True)
    assert GenerationDefaults.read(GPT2, expected.to_dict()) == meant


def test_neutral_generation_settings_are_ignored() -> None:
    neutral = {
        "do_sample": False,
        "temperature": 0.5,
        "top_k": 9,
        "top_p": 0.25,
        "min_p": 0.5,
        "typical_p": 0.5,
        "repetition_penalty": 1.0,
        "no_repeat_ngram_size": 0,
        "min_new_tokens": 0,
        "num_beam_groups": 1,
        "diversity_penalty": 0.0,
        "encoder_no_repeat_ngram_size": 0,
        "guidance_scale": 1.0,
        "suppress_tokens": [],
        "early_stopping": True,
        "use_cache": False,
        "renormalize_logits": True,
        "task_specific_params": {"a": {"num_beams": 9}},
    }
    assert GenerationDefaults.read(GPT2, neutral) == GenerationDefaults()
    assert GenerationDefaults.read(GPT2, dict.fromkeys(neutral)) == GenerationDefaults()


def test_sampling_defaults_match_transformers() -> None:
    hf_defaults = transformers.GenerationConfig._get_default_generation_params()
    defaults = GenerationDefaults.read(GPT2, {"do_sample": True})
    assert defaults == GenerationDefaults(sample=True, top_k=hf_defaults["top_k"])
    assert GenerationDefaults.read(GPT2, hf_defaults | {"do_sample": True}) == defaults
    assert GenerationDefaults.read(GPT2, hf_defaults) == GenerationDefaults()


def test_encoder_decoder_lengths_count_the_start_token() -> None:
    settings = {"max_length": 142, "min_length": 56}
    assert GenerationDefaults.read(BART, settings) == GenerationDefaults(max_new_tokens=141, min_new_tokens=55)
    assert GenerationDefaults.read(GPT2, settings) == GenerationDefaults()
    newer: dict[str, Any] = {"max_new_tokens": 30, "min_new_tokens": 2}
    assert GenerationDefaults.read(BART, settings, newer) == GenerationDefaults(**newer)
    assert GenerationDefaults.read(BART, {"max_length": 9, "min_length": 0}) == GenerationDefaults(max_new_tokens=8)
    with pytest.raises(ConfigError, match="max_length must be a whole number, but '9' was given"):
        GenerationDefaults.read(BART, {"max_length": "9"})


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"suppress_tokens": [3], "begin_suppress_tokens": [4]}, "suppress_tokens, begin_suppress_tokens"),
        ({"forced_decoder_ids": [[1, 2]]}, "forced_decoder_ids"),
        ({"num_beam_groups": 2, "diversity_penalty": 0.5}, "num_beam_groups, diversity_penalty"),
        ({"encoder_no_repeat_ngram_size": 3}, "encoder_no_repeat_ngram_size"),
        ({"exponential_decay_length_penalty": [3, 1.5]}, "exponential_decay_length_penalty"),
        ({"sequence_bias": [[[3], 1.0]]}, "sequence_bias"),
        ({"guidance_scale": 2.0}, "guidance_scale"),
        ({"penalty_alpha": 0.5}, "penalty_alpha"),
        ({"do_sample": True, "typical_p": 0.5, "epsilon_cutoff": 0.1}, "typical_p, epsilon_cutoff"),
        ({"do_sample": True, "eta_cutoff": 0.1}, "eta_cutoff"),
        ({"do_sample": True, "num_beams": 4}, "num_beams with do_sample"),
    ],
)
def test_unsupported_generation_settings_are_named_in_a_warning(settings: dict[str, Any], named: str) -> None:
    with pytest.warns(PublishedWarning, match=rf"not supported and ignored: {named}$"):
        defaults = GenerationDefaults.read(GPT2, settings)
    assert defaults == GenerationDefaults(sample="do_sample" in settings, top_k=50 if "do_sample" in settings else None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"do_sample": True, "temperature": 0.0}, "temperature is more than 0"),
        ({"do_sample": True, "top_p": 1.5}, "top_p is more than 0 and at most 1"),
        ({"do_sample": True, "top_k": -1}, "top_k must be at least 1"),
        ({"do_sample": "yes"}, "sample must be true or false"),
        ({"repetition_penalty": -1}, "repetition_penalty is more than 0"),
        ({"num_beams": 0}, "beam must be at least 1"),
        ({"max_new_tokens": 3, "min_new_tokens": 3}, "must be more than min_new_tokens"),
        ({"no_repeat_ngram_size": True}, "no_repeat_ngram_size must be a whole number"),
        ({"length_penalty": 11}, "length_penalty goes from -10 to 10"),
    ],
)
def test_invalid_generation_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GenerationDefaults.read(GPT2, settings)


def test_every_default_is_a_setting_of_generation_under_the_same_name_and_within_its_ranges() -> None:
    tokens = {"start", "end", "pad", "forced_first", "forced_last", "suppress_tokens"}
    for _, meant in CASES:
        values = {name: value for name, value in meant.to_dict().items() if name not in tokens}
        assert GenerationConfig(**values).to_dict() | values == GenerationConfig(**values).to_dict()
    for wrong in ({"sample": True, "beam": 2}, {"top_k": 3}, {"temperature": 0.5}, {"min_new_tokens": -1}):
        for kind in (GenerationConfig, GenerationDefaults):
            with pytest.raises(ConfigError):
                kind(**wrong)


def test_no_warning_without_unsupported_settings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GenerationDefaults.read(BART, transformers.GenerationConfig().to_dict())
