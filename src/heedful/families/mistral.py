"""Mistral: LLaMA's parts under a sliding window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..core import DecoderOnly, causal, window
from .llama import FIXED, NAMES, SETTINGS, RotaryConfig, assemble
from .published import Published, nullable
from .registry import Family, register


@dataclass(frozen=True, kw_only=True)
class MistralConfig(RotaryConfig):
    """The defaults are what a published config means by leaving a key out; the presets are the models.

    `window`: how many tokens a token sees, itself among them, in each layer; None for all that came before.
    """

    family: ClassVar[str] = "mistral"

    n_kv_heads: int = 8
    d_ff: int = 14336
    max_length: int = 131072
    window: int | None = 4096

    def check(self) -> None:
        super().check()
        self.require_positive("window")


def build(config: MistralConfig) -> DecoderOnly:
    """Every token sees the last ones before it; without a window, this is LLaMA."""
    return assemble(config, None if config.window is None else causal() & window(config.window))


PUBLISHED = Published(
    model_type="mistral",
    architectures=(("MistralForCausalLM", {}), ("MistralModel", {})),
    settings=SETTINGS | {"n_kv_heads": nullable("num_key_value_heads"), "window": nullable("sliding_window")},
    fixed=FIXED,
    names=lambda config: NAMES,
)

SEVEN = MistralConfig(max_length=32768, norm_eps=1e-5)
mistral = register(
    Family(
        MistralConfig,
        build,
        presets={
            "mistral-tiny": SEVEN.changed(
                vocab_size=8000, d_model=128, n_heads=4, n_kv_heads=2, d_ff=352, n_layers=4, max_length=256, window=64
            ),
            "mistral-7b": SEVEN,
            "mistral-7b-v0.2": SEVEN.changed(rotary_base=1e6, window=None),
            "mistral-7b-v0.3": SEVEN.changed(vocab_size=32768, rotary_base=1e6, window=None),
        },
        published=PUBLISHED,
    )
)
