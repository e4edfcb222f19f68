"""Marian, the translators of OPUS-MT: BART's layers over sinusoidal positions, with one vocabulary or two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..core import EncoderDecoder, Sinusoidal
from ..errors import ConfigError
from .bart import ENDS, FIXED, SETTINGS, SHARED, BartConfig, assemble, layer_links
from .hf_config import Given, Published, Setting, derived
from .registry import register
from .weight_map import Formula, WeightMap


@dataclass(frozen=True, kw_only=True)
class MarianConfig(BartConfig):
    """The defaults are what a published config means by leaving a key out; the presets are the models."""

    family: ClassVar[str] = "marian"

    vocab_size: int = 58101

    def check_tied(self) -> None:
        """Any way of tying will do."""


def build(config: MarianConfig) -> EncoderDecoder:
    """The sines stand before the cosines."""
    return assemble(config, positions=lambda: _positions(config))


def _positions(config: MarianConfig) -> Sinusoidal:
    return Sinusoidal(config.d_model, config.max_length, layout="halves")


def names(config: MarianConfig) -> WeightMap:
    """A matrix for both embeddings has a name of its own."""
    table = Formula((config.max_length, config.d_model), lambda: _positions(config).table())
    return WeightMap(
        (*((SHARED,) if config.tied == "all" else ()), *ENDS, *layer_links()),
        computed={f"model.{stack}.embed_positions.weight": table for stack in ("encoder", "decoder")},
        prefix="model.",
    )


TIED = {"all": (True, True), "output": (False, True), "none": (False, False)}
TIED_KEYS = ("share_encoder_decoder_embeddings", "tie_word_embeddings")


def _read_tied(given: Given) -> str:
    said = tuple(given.get(key, True) for key in TIED_KEYS)
    for tied, values in TIED.items():
        if values == said:
            return tied
    raise ConfigError(f"{TIED_KEYS[0]}={said[0]!r} with {TIED_KEYS[1]}={said[1]!r} is not supported")


PUBLISHED = Published(
    model_type="marian",
    architectures=(("MarianMTModel", {}), ("MarianModel", {})),
    settings=SETTINGS
    | {
        "target_vocab_size": derived("decoder_vocab_size", lambda given: given.get("vocab_size")),
        "tied": Setting(TIED_KEYS, _read_tied, lambda tied: dict(zip(TIED_KEYS, TIED[tied], strict=True))),
    },
    fixed=FIXED | {"normalize_embedding": False, "static_position_embeddings": True},
    names=names,
    start="decoder_start_token_id",
)

BASE = MarianConfig(
    d_model=512,
    n_heads=8,
    d_ff=2048,
    n_encoder_layers=6,
    n_decoder_layers=6,
    max_length=512,
    activation="silu",
    scale_embedding=True,
)
marian = register(
    MarianConfig,
    build,
    presets={
        "marian-tiny": BASE.changed(
            vocab_size=8000, d_model=128, n_heads=4, d_ff=512, n_encoder_layers=3, n_decoder_layers=3
        ),
        "marian-base": BASE,
        "marian-big": BASE.changed(d_model=1024, n_heads=16, d_ff=4096, activation="relu"),
    },
    published=PUBLISHED,
)
