"""Classes of letters by their property, such as ``\\p{Greek}``: the names that Go knows.

The names of nodes are ASCII. Of ASCII, each class has exactly its letters; of all others, Python cannot tell by script,
so every class has them, and so has every negated one.
"""

import unicodedata
from functools import lru_cache
from typing import Final

_CATEGORY_NAMES: Final = """
    C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
"""
_CATEGORIES: Final = frozenset(_CATEGORY_NAMES.split())
"""General categories of Unicode, and their groups."""

_ALIASES: Final = {
    "Cased_Letter": "LC",
    "Close_Punctuation": "Pe",
    "Combining_Mark": "M",
    "Connector_Punctuation": "Pc",
    "Control": "Cc",
    "Currency_Symbol": "Sc",
    "Dash_Punctuation": "Pd",
    "Decimal_Number": "Nd",
    "Enclosing_Mark": "Me",
    "Final_Punctuation": "Pf",
    "Format": "Cf",
    "Initial_Punctuation": "Pi",
    "Letter": "L",
    "Letter_Number": "Nl",
    "Line_Separator": "Zl",
    "Lowercase_Letter": "Ll",
    "Mark": "M",
    "Math_Symbol": "Sm",
    "Modifier_Letter": "Lm",
    "Modifier_Symbol": "Sk",
    "Nonspacing_Mark": "Mn",
    "Number": "N",
    "Open_Punctuation": "Ps",
    "Other": "C",
    "Other_Letter": "Lo",
    "Other_Number": "No",
    "Other_Punctuation": "Po",
    "Other_Symbol": "So",
    "Paragraph_Separator": "Zp",
    "Private_Use": "Co",
    "Punctuation": "P",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Spacing_Mark": "Mc",
    "Surrogate": "Cs",
    "Symbol": "S",
    "Titlecase_Letter": "Lt",
    "Unassigned": "Cn",
    "Uppercase_Letter": "Lu",
    "cntrl": "Cc",
    "digit": "Nd",
    "punct": "P",
}
"""Other names of categories."""

_SCRIPT_NAMES: Final = """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki
    Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee
    Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra
    Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati
    Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi
    Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian
    Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui
    Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari
    Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic
    Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage
    Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan
    Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri
    Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan
    Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""
_SCRIPTS: Final = frozenset(_SCRIPT_NAMES.split())
"""Of Unicode 15. Go 1.26 does not find names of several words, such as Old_Italic; earlier ones did, so they count."""

_ASCII: Final = range(0x80)
_BEYOND: Final = r"\x80-\U0010FFFF"
_NOTHING: Final = r"\uD800"
"""No text has half a surrogate pair."""


@lru_cache(maxsize=256)
def members(name: str, negated: bool) -> str | None:
    """Return the letters of a class as Python writes them between square brackets, None if Go does not know it.

    Upper and lower case do not matter in a name, nor do spaces, dashes and underscores.
    """
    key = _plain(name)
    if key == "any":
        return _NOTHING if negated else rf"\x00-\x7F{_BEYOND}"
    if key == "ascii":
        return _BEYOND if negated else r"\x00-\x7F"
    if key not in _KNOWN:
        return None
    letters = (chr(code) for code in _ASCII if _has(_KNOWN[key], chr(code)) != negated)
    return "".join(f"\\x{ord(letter):02X}" for letter in letters) + _BEYOND


def _plain(name: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in name if letter not in "_- ")


_KNOWN: Final = {
    "assigned": "Assigned",
    **{_plain(alias): category for alias, category in _ALIASES.items()},
    **{_plain(name): name for name in (*_SCRIPTS, *_CATEGORIES)},
}


def _has(name: str, letter: str) -> bool:
    """Say whether a letter of ASCII is of a category or script."""
    if name in _CATEGORIES:
        category = unicodedata.category(letter)
        return category in ("Lu", "Ll", "Lt") if name == "LC" else category.startswith(name)
    return name == "Assigned" or (letter.isalpha() if name == "Latin" else name == "Common" and not letter.isalpha())
