"""What a published model says about generating, as its bundle keeps it: the tokens, and how to generate."""

from __future__ import annotations

from dataclasses import fields

from ..families import GenerationDefaults
from ..generation import GenerationConfig

SHARED = {field.name for field in fields(GenerationConfig)} & {field.name for field in fields(GenerationDefaults)}


def taken_apart(defaults: GenerationDefaults) -> tuple[GenerationDefaults, GenerationConfig]:
    """The tokens alone, and the rest."""
    plain = GenerationDefaults()
    tokens = defaults.changed(**{name: getattr(plain, name) for name in SHARED})
    return tokens, GenerationConfig(**{name: getattr(defaults, name) for name in SHARED})


def put_together(tokens: GenerationDefaults, generation: GenerationConfig) -> GenerationDefaults:
    """What `taken_apart` took apart."""
    return tokens.changed(**{name: getattr(generation, name) for name in SHARED})
