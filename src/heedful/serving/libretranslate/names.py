"""What languages are called in English."""

from __future__ import annotations

import re

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
