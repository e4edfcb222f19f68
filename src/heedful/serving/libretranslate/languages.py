"""Languages: what they are called, who translates between them, and which one a text is written in.

A language is detected first by its script: how much of the text is written in that of each language. Where several
share a script, by their commonest words and letters. The confidence, from 0 to 100, is about these languages only: no
other is thought of.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp

from ...data.languages import CODE, SCRIPTS, matches, script_of
from ..errors import APIError
from ..models import Models, Served

_ALL = (
    "af:Afrikaans am:Amharic ar:Arabic az:Azerbaijani be:Belarusian bg:Bulgarian bn:Bengali bs:Bosnian ca:Catalan "
    "cs:Czech cy:Welsh da:Danish de:German el:Greek en:English eo:Esperanto es:Spanish et:Estonian eu:Basque "
    "fa:Persian fi:Finnish fr:French ga:Irish gl:Galician gu:Gujarati he:Hebrew hi:Hindi hr:Croatian hu:Hungarian "
    "hy:Armenian id:Indonesian is:Icelandic it:Italian ja:Japanese ka:Georgian kk:Kazakh km:Khmer kn:Kannada "
    "ko:Korean ky:Kyrgyz la:Latin lo:Lao lt:Lithuanian lv:Latvian mk:Macedonian ml:Malayalam mn:Mongolian "
    "mr:Marathi ms:Malay mt:Maltese my:Burmese nb:Norwegian ne:Nepali nl:Dutch nn:Nynorsk no:Norwegian pa:Punjabi "
    "pl:Polish ps:Pashto pt:Portuguese ro:Romanian ru:Russian sa:Sanskrit si:Sinhala sk:Slovak sl:Slovenian "
    "so:Somali sq:Albanian sr:Serbian sv:Swedish sw:Swahili ta:Tamil te:Telugu tg:Tajik th:Thai tl:Tagalog "
    "tr:Turkish uk:Ukrainian ur:Urdu uz:Uzbek vi:Vietnamese xh:Xhosa yi:Yiddish yo:Yoruba zh:Chinese zu:Zulu"
)
_NAMES = dict(pair.split(":") for pair in _ALL.split())


def name_of(code: str) -> str:
    """Korean for ko, Portuguese (BR) for pt-BR; the code itself where the language has no name here."""
    language, *more = re.split("[-_]", code)
    name = _NAMES.get(language.lower())
    return code if name is None else f"{name} ({'-'.join(more)})" if more else name


TASKS = ("translation", "text-to-text")


@dataclass(frozen=True)
class Translators:
    """The models by the pair of their languages; of several for one pair, the first."""

    pairs: dict[tuple[str, str], Served]

    @classmethod
    def of(cls, models: Models) -> Translators:
        """Those of the served models that say their languages."""
        pairs: dict[tuple[str, str], Served] = {}
        for model in models.of_task(*TASKS):
            if (pair := _languages(model)) is not None:
                pairs.setdefault(pair, model)
        return cls(pairs)

    @property
    def languages(self) -> list[str]:
        """All codes, in the order of the models, sources first."""
        return list(dict.fromkeys(pair[side] for side in (0, 1) for pair in self.pairs))

    def targets(self, source: str) -> list[str]:
        """What a language is translated into."""
        return [target for of, target in self.pairs if of == source]

    def before(self, target: str) -> list[str]:
        """All codes, first those that are translated into a language: one of them, where nothing else is known."""
        return list(dict.fromkeys([*(source for source, into in self.pairs if into == target), *self.languages]))

    def code(self, requested: str) -> str:
        """The code that a language has here: en-US is answered by a model of en. Refused where there is none."""
        result = next(self._codes(requested), None)
        if result is None:
            allowed = ", ".join(self.languages) or "none, since no translator is served"
            raise APIError(400, f"{requested[:40]!r} is not supported; the languages are: {allowed}")
        return result

    def between(self, source: str, target: str) -> Served:
        """The translator of a pair."""
        if (source, target) not in self.pairs:
            into = ", ".join(self.targets(source)) or "none"
            raise APIError(
                400,
                f"{name_of(target)} ({target}) is not available as a target language from {name_of(source)} "
                f"({source}); those that are: {into}",
            )
        return self.pairs[source, target]

    def _codes(self, requested: str) -> Iterator[str]:
        """The same code, then a narrower and a wider one."""
        wanted = requested.lower().replace("_", "-")
        yield from (code for code in self.languages if code.lower().replace("_", "-") == wanted)
        yield from filter(partial(matches, requested), self.languages)
        yield from (code for code in self.languages if matches(code, requested))


def _languages(model: Served) -> tuple[str, str] | None:
    settings = model.predictor.settings
    source, target = getattr(settings, "source", None), getattr(settings, "target", None)
    codes = [code for code in (source, target) if isinstance(code, str) and CODE.fullmatch(code)]
    return (codes[0], codes[1]) if len(codes) == 2 else None


WORDS = {
    code: frozenset(words.split())
    for code, words in {
        "ar": "في من على إلى عن هذا هذه التي الذي أن كان لا ما مع هو هي",
        "be": "і ў не на што з як я гэта але ён яна мы для да",
        "bg": "и на да не се за от е с че ще той тя това са ли",
        "cs": "a v na je se že to s z do jsem ale jak ve pro by jsou není",
        "da": "og i er det at en af til på for den ikke jeg med som har et de var",
        "de": "der die das und ist ich nicht ein eine zu den mit von auf für es sie wir im dem hat war auch",
        "en": "the of and to in a is it that was for on i you with he she as are not this be have at we they his my",
        "es": "el la de que y en un una los las es por con no se para su lo como más está yo del",
        "fa": "و در به از که این را با است آن برای یک من می ما",
        "fi": "ja on ei se että hän en oli minä mutta ovat niin kun joka mitä tämä",
        "fr": "le la les de des et est un une que je il elle dans pour pas en du au ne qui sur ce avec nous vous",
        "hi": "के है में की और का से को यह पर नहीं हैं मैं कि ने वह",
        "hu": "a az és hogy nem is egy van meg de ez volt én mint csak el",
        "id": "yang dan di itu dengan untuk tidak ini dari dalam saya akan ada kami pada",
        "it": "il la di che e è un una non per in sono con del le i lo si mi ho della gli come",
        "mr": "आहे आणि मी हे ते या नाही की तो ती होते आहेत मला",
        "nb": "og i er det at en av til på for den ikke jeg med som har et de var",
        "ne": "छ र मा को लाई यो म पनि हो गर्न छन् तर",
        "nl": "de het een en van ik is dat in niet te zijn op met voor maar er aan ze hij wij",
        "nn": "og i er det at ein av til på for den ikkje eg med som har eit dei var",
        "pl": "i w na z nie się jest do że to jak ale o co po za ten są ja",
        "pt": "o a de que e do da em um uma não os as se para com por é eu no na mais está",
        "ro": "și de la în un o este nu cu pe că mai din să sunt ce am pentru",
        "ru": "и в не на я что он с как это она мы но по у из за был так",
        "sk": "a v na je sa že to s z do som ale ako vo pre by sú nie",
        "sv": "och i är det att en av till på för den inte jag med som har ett de var om",
        "tr": "ve bir bu da de için ben ne çok var değil mi o gibi ile daha",
        "uk": "і в не на що я з як це але він вона ми у та до за є",
        "ur": "کے ہے میں کی اور کا سے کو یہ پر نہیں ہیں کہ نے وہ",
        "vi": "là và của tôi không có một những cho được này các người trong",
    }.items()
}
WORDS["no"] = WORDS["nb"]

LETTERS = {
    "be": "ўіы",
    "bg": "ъщ",
    "cs": "ěřů",
    "da": "æøå",
    "de": "äöüß",
    "es": "ñ",
    "fa": "پچژگ",
    "fi": "äö",
    "fr": "éèêàçœû",
    "hu": "őűáé",
    "it": "èòàù",
    "nb": "æøå",
    "nn": "æøå",
    "no": "æøå",
    "pl": "łąężśćń",
    "pt": "ãõçáê",
    "ro": "șțăâ",
    "ru": "ыэё",
    "sk": "ľĺŕô",
    "sv": "åäö",
    "tr": "ışğç",
    "uk": "іїєґ",
    "ur": "ٹڈںےہ",
    "vi": "đơưạảấầậ",
}


ENOUGH = 4000  # characters of a text that are looked at
A_HIT = 1.5  # what a common word adds to the log-odds of its language
USUAL = 1 / 8  # of its words are hits where none is known: fewer than its own language has, more than another's

_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_KANA = re.compile(r"[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_DENSE = ("Hangul", "Japanese", "Chinese")  # a character says about as much as two letters do


@dataclass(frozen=True)
class Detected:
    """A language, and how sure that is."""

    language: str
    confidence: float


def detect(text: str, languages: Sequence[str]) -> list[Detected]:
    """Those it may be in, the likeliest first. Of a text without letters nothing is known: the first, with 0."""
    text = text[:ENOUGH]
    written = _letters_of(text, languages)
    total = sum(written.values())
    sharing: dict[str | None, list[str]] = defaultdict(list)
    for language in dict.fromkeys(languages):
        sharing[script_of(language)].append(language)
    result = [
        Detected(language, round(100 * written[script] / total * part, 1))
        for script, sharers in sharing.items()
        if written[script]
        for language, part in _shared(text, sharers).items()
    ]
    sure = sorted((item for item in result if item.confidence), key=lambda item: -item.confidence)
    return sure or [Detected(language, 0.0) for language in languages[:1]]


def _letters_of(text: str, languages: Sequence[str]) -> dict[str | None, float]:
    """How much of the text is in each script; under None, what is in no script that is known."""
    written: dict[str | None, float] = defaultdict(float)
    for script, letters in SCRIPTS.items():
        written[script] = len(letters.findall(text)) * (2 if script in _DENSE else 1)
    # Chinese characters are in Japanese texts too: where there is kana, or nobody speaks of Chinese, they are Japanese.
    served = {script_of(language) for language in languages}
    japanese = "Japanese" in served and (_KANA.search(text) or "Chinese" not in served)
    if japanese:
        written["Chinese"] = 0
    else:
        written["Japanese"] -= written["Chinese"]
    scripts = re.compile("|".join(letters.pattern for letters in SCRIPTS.values()))
    written[None] = len(_LETTER.findall(scripts.sub("", text)))
    return written


def _shared(text: str, languages: Sequence[str]) -> dict[str, float]:
    """The probability of each of several languages of one script."""
    if len(languages) == 1:
        return {languages[0]: 1.0}
    words = [word.lower() for word in _WORD.findall(text)]
    hits = {language: _hits(words, language) for language in languages}
    most = max(hits.values())
    odds = {language: exp(A_HIT * (count - most)) for language, count in hits.items()}
    total = sum(odds.values())
    return {language: item / total for language, item in odds.items()}


def _hits(words: Sequence[str], language: str) -> float:
    code = re.split("[-_]", language.lower())[0]
    if code not in WORDS:
        return USUAL * len(words)
    common, letters = WORDS[code], set(LETTERS.get(code, ""))
    return sum((word in common) + (not letters.isdisjoint(word)) for word in words)
