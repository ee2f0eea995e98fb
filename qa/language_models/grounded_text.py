"""What people read of the grounded form."""

from typing import Final

_REASONING: Final = {
    "en": (
        "Of {pieces} pieces of evidence, number {number} holds the words that answer "
        "the question best. The model gives {verdict:.0%} to its being answered at all. "
        "{judged}",
        "None of the {pieces} pieces of evidence holds the words that the model wrote.",
        "The whole sentence is shown.",
        "It seems to be about something else than what was asked.",
    ),
    "de": (
        "Von {pieces} Belegen enthält Nummer {number} die Wörter, die am besten auf die "
        "Frage antworten. Dass sie überhaupt beantwortet ist, hält das Modell zu "
        "{verdict:.0%} für wahrscheinlich. {judged}",
        "Keiner der {pieces} Belege enthält die Wörter, die das Modell schrieb.",
        "Gezeigt wird der ganze Satz.",
        "Er scheint von etwas anderem zu handeln als dem Gefragten.",
    ),
}


def reasoning(
    language: str, number: int | None, pieces: int, verdict: float, can_answer: bool
) -> str:
    """Say in words what was found; `number` is None where the words stand nowhere."""
    found, lost, yes, no = _REASONING.get(language, _REASONING["en"])
    if number is None:
        return lost.format(pieces=pieces)
    judged = yes if can_answer else no
    return found.format(pieces=pieces, number=number, verdict=verdict, judged=judged)
