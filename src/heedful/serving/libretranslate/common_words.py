"""Short words that nearly every text of a language has, and letters that few others of its script have."""

from __future__ import annotations

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
