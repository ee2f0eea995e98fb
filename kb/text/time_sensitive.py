"""Whether a question asks about what changes: what a model learnt may be out of date.

A model's knowledge ends on a date; that such a question was answered
rightly once proves nothing. By words alone: that one too many is looked up costs little.

References:
    DH-ICL, section 3.1: questions on recent events count as unknown.
"""

import re
from typing import Final

_WORDS: Final = {
    "en": (
        r"now", r"nowadays", r"today(?:'s|s)?", r"tonight", r"tomorrow", r"yesterday",
        r"current(?:ly)?", r"latest", r"newest", r"recent(?:ly)?", r"upcoming",
        r"so far", r"as of", r"at the moment", r"at present", r"presently",
        r"these days", r"up to date", r"right now", r"still",
        r"(?:this|next|last|past) (?:year|month|week|weekend|season|quarter|decade)",
    ),
    "de": (
        r"heut(?:e|ig\w*)", r"gestern", r"jetzt", r"jetzig\w*", r"derzeit\w*",
        r"aktuell\w*", r"momentan\w*", r"zurzeit", r"gegenwärtig\w*", r"neue?st\w*",
        r"kürzlich", r"neulich", r"bisher\w*", r"noch immer", r"immer noch",
        r"(?:diese|nächste|letzte|vorige|kommende)[nrsm]? "
        r"(?:jahr|monat|woche|wochenende|quartal|saison)(?:e?s)?",
    ),
}  # fmt: skip
_PATTERNS: Final = {
    language: re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    for language, words in _WORDS.items()
}


def asks_about_now(question: str, language: str = "en") -> bool:
    """Tell whether the answer depends on the date of the question.

    Args:
        question: Its text.
        language: BCP 47 primary subtag; one without a list of words is read as English.
    """
    plain = " ".join(question.replace("\u2019", "'").split())
    return _PATTERNS.get(language, _PATTERNS["en"]).search(plain) is not None
