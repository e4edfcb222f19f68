"""Fonts for pictures: those that have the glyphs a figure needs, or an error that names a font to install."""

import unicodedata
from collections.abc import Iterable
from typing import Any

from ..errors import MissingDependencyError

BASE = "DejaVu Sans"  # comes with matplotlib
KOREAN = ["NanumGothic", "Noto Sans KR", "Noto Sans CJK KR", "Malgun Gothic"]
KOREAN += ["Apple SD Gothic Neo", "AppleGothic", "Noto Sans CJK JP", "UnDotum"]


class Lettering:
    """The fonts that one figure needs, and its texts with escapes for what they cannot show.

    Hangul without a font is an error. Any other character that no font holds, and what cannot be seen
    (a line break, a control character), is written as its escape: never an empty box.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        characters = {letter for text in texts for letter in _composed(text) if letter.isprintable()}
        self.families, self._undrawable = _cover(characters)
        if _hangul(self._undrawable):
            notice_new_fonts()
            self.families, self._undrawable = _cover(characters)
        hangul = _hangul(self._undrawable)
        if hangul:
            raise MissingDependencyError(
                f"no installed font can draw the Korean letters {''.join(hangul[:8])}. Install one: "
                "apt install fonts-nanum (Debian, Ubuntu), dnf install google-noto-sans-cjk-fonts (Fedora); "
                "macOS and Windows have one already. Or draw with language='en' and labels without Hangul"
            )

    @property
    def style(self) -> dict[str, Any]:
        """Return keyword arguments for every text: these fonts, and no math mode for dollar signs."""
        return {"fontfamily": self.families, "parse_math": False, "usetex": False}

    def write(self, text: str) -> str:
        """Return the text with escapes for characters that cannot be drawn."""
        is_drawn = {letter: letter.isprintable() and letter not in self._undrawable for letter in _composed(text)}
        escape = str.maketrans({x: x.encode("unicode_escape").decode() for x, drawn in is_drawn.items() if not drawn})
        return _composed(text).translate(escape)


def installed_families() -> list[str]:
    """Return the upright regular families that matplotlib has listed, good Korean ones first."""
    rank = {name: place for place, name in enumerate(KOREAN)}
    names = {
        entry.name
        for entry in _font_manager().fontManager.ttflist
        if entry.name in rank or (entry.style == "normal" and entry.weight in (400, "normal"))
    }
    # A last-resort font holds every character, each as a box.
    real = (name for name in names if not name.replace(" ", "").lstrip(".").startswith("LastResort"))
    return sorted(real, key=lambda name: (rank.get(name, len(rank)), name))


def notice_new_fonts() -> None:
    """Register fonts that were installed after matplotlib cached its font list."""
    manager = _font_manager()
    listed = {entry.fname for entry in manager.fontManager.ttflist}
    for path in sorted({entry.fname for entry in manager.FontManager().ttflist} - listed):
        manager.fontManager.addfont(path)


def drawable(family: str, characters: set[str]) -> set[str]:
    """Return the characters for which the family has a glyph."""
    manager = _font_manager()
    try:
        path = manager.findfont(manager.FontProperties(family=[family]), fallback_to_default=False)
    except ValueError:  # uninstalled since matplotlib made its list
        return set()
    font = manager.get_font(path)
    return {letter for letter in characters if font.get_char_index(ord(letter))}


def _font_manager() -> Any:
    """Import matplotlib's font manager, which every picture needs first."""
    try:
        from matplotlib import font_manager
    except ImportError as missing:
        raise MissingDependencyError("pictures need matplotlib; install it: pip install matplotlib") from missing
    return font_manager


def _cover(characters: set[str]) -> tuple[list[str], set[str]]:
    """Return as few families as needed to draw these characters, and the characters that none of them has."""
    families, missing = [BASE], characters - drawable(BASE, characters)
    for family in installed_families() if missing else ():
        if missing and (glyphs := drawable(family, missing)):
            families.append(family)
            missing -= glyphs
    return families, missing


def _hangul(letters: set[str]) -> list[str]:
    return sorted(letter for letter in letters if "HANGUL" in unicodedata.name(letter, ""))


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)  # a syllable typed as loose letters is drawn as one
