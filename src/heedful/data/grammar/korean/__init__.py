"""Korean morphology: letters and sounds, particles, conjugation, numbers."""

from heedful.data.grammar.korean.hangul import compose, decompose, final_sound
from heedful.data.grammar.korean.numbers import clock, counted, date, days, money, month, native, sino
from heedful.data.grammar.korean.particles import attach
from heedful.data.grammar.korean.verbs import Verb, conjugate, copula

__all__ = [
    "Verb",
    "attach",
    "clock",
    "compose",
    "conjugate",
    "copula",
    "counted",
    "date",
    "days",
    "decompose",
    "final_sound",
    "money",
    "month",
    "native",
    "sino",
]
