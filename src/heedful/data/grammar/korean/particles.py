"""Particles, in the form that the last sound of their word asks for."""

from __future__ import annotations

from heedful.data.grammar.korean.hangul import final_sound
from heedful.errors import unknown

_AFTER_CONSONANT_AND_VOWEL = {
    name: tuple(name.split("/"))
    for name in ("은/는", "이/가", "을/를", "과/와", "아/야", "이에요/예요", "이야/야", "이여/여")
}
_WITH_I = ("(이)나", "(이)랑", "(이)라도", "(이)든지", "(이)라고", "(이)라는", "(이)야말로", "(이)며")
_WITH_EU = ("(으)로", "(으)로는", "(으)로도", "(으)로만", "(으)로부터", "(으)로서", "(으)로써")
_INVARIANT = (
    "의", "도", "만", "에", "에는", "에도", "에만", "에서", "에서는", "에서도", "에서만", "에서부터", "에게", "에게는",
    "에게도", "에게서", "한테", "한테는", "한테도", "한테만", "한테서", "께", "께는", "께서", "께서는", "께서도",
    "부터", "까지", "까지는", "까지도", "보다", "보다는", "보다도", "처럼", "같이", "만큼", "마다", "밖에", "하고",
    "대로", "조차", "마저", "뿐", "만은", "만이", "요",
)  # fmt: skip

PARTICLES = (*_AFTER_CONSONANT_AND_VOWEL, *_WITH_I, *_WITH_EU, *_INVARIANT)
"""Every particle `attach` knows, by the name it takes."""

_FUSED = {
    ("저", "이/가"): "제가", ("나", "이/가"): "내가", ("너", "이/가"): "네가", ("누구", "이/가"): "누가",
    ("저", "의"): "제", ("나", "의"): "내", ("너", "의"): "네",
}  # fmt: skip


def attach(word: str, particle: str) -> str:
    """The word with its particle: 책 + 은/는 → 책은, 서울 + (으)로 → 서울로, 저 + 이/가 → 제가."""
    if particle not in PARTICLES:
        raise ValueError(unknown("particle", particle, PARTICLES))
    before, space, last = word.rpartition(" ")
    if fused := _FUSED.get((last, particle)):
        return before + space + fused
    return word + _form(word, particle)


def _form(word: str, particle: str) -> str:
    if particle in _INVARIANT:
        return particle
    sound = final_sound(word)
    if particle in _AFTER_CONSONANT_AND_VOWEL:
        after_consonant, after_vowel = _AFTER_CONSONANT_AND_VOWEL[particle]
        return after_consonant if sound else after_vowel
    linked = sound not in ("", "ㄹ") if particle in _WITH_EU else sound != ""
    return particle[1:].replace(")", "") if linked else particle[3:]
