"""The guided form's words: examples that are read once, and what people read."""

from typing import Final

# Far from any knowledge base's own subject, so that none of their words leak.
EXAMPLES: Final = (
    (
        "The pool is open from 7 to 21 o'clock on weekdays, and from 9 to 18 o'clock on "
        "Sundays.",
        "When does the pool close on a Tuesday?",
        "The pool is open from 7 to 21 o'clock on weekdays, and from 9 to 18 o'clock on "
        "Sundays.",
    ),
    (
        "A lost key is replaced within three days for a fee of 40 euros.",
        "How much does a new key cost if I lose mine?",
        "A lost key is replaced within three days for a fee of 40 euros.",
    ),
    (
        "The museum does not sell tickets at the door. Guided tours begin at the fountain.",
        "Can I buy a ticket at the entrance?",
        "The museum does not sell tickets at the door.",
    ),
    (
        "Parcels over 20 kg are collected only on Mondays.",
        "On which day is my 30 kg parcel picked up?",
        "Parcels over 20 kg are collected only on Mondays.",
    ),
    (
        "Season tickets are ordered on the website under Account, Tickets. They arrive by "
        "post within a week. The website also has a map.",
        "How do I get a season ticket?",
        "Season tickets are ordered on the website under Account, Tickets. They arrive by "
        "post within a week.",
    ),
)
NO_NOTE: Final = "-"

_REASONING: Final = {
    "en": (
        "Of {pieces} pieces of evidence, number {number} fits the question best "
        "({share:.0%} against the others). {verdict}",
        "It seems to answer it; the answer is copied from it.",
        "It seems to be about something else than what was asked.",
    ),
    "de": (
        "Von {pieces} Belegen passt Nummer {number} am besten zur Frage ({share:.0%} "
        "gegenüber den anderen). {verdict}",
        "Er scheint sie zu beantworten; die Antwort ist daraus übernommen.",
        "Er scheint von etwas anderem zu handeln als dem Gefragten.",
    ),
}


def reasoning(
    language: str, number: int, pieces: int, share: float, can_answer: bool
) -> str:
    """Say in words what the form's first two steps found."""
    sentence, yes, no = _REASONING.get(language, _REASONING["en"])
    return sentence.format(
        pieces=pieces, number=number, share=share, verdict=yes if can_answer else no
    )
