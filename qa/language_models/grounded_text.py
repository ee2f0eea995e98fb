"""What people read of the grounded form."""

from typing import Final

_REASONING: Final = {
    "en": (
        "Of {pieces} pieces of evidence, number {number} holds the words that answer "
        "the question best. {judged}",
        "None of the {pieces} pieces of evidence holds words that answer the question.",
        "It seems to answer it; the whole sentence is shown.",
        "It seems to be about something else than what was asked.",
    ),
    "de": (
        "Von {pieces} Belegen enthält Nummer {number} die Wörter, die am besten auf die "
        "Frage antworten. {judged}",
        "Keiner der {pieces} Belege enthält Wörter, die auf die Frage antworten.",
        "Er scheint sie zu beantworten; gezeigt wird der ganze Satz.",
        "Er scheint von etwas anderem zu handeln als dem Gefragten.",
    ),
}


def reasoning(language: str, number: int | None, pieces: int, can_answer: bool) -> str:
    """Say in words what was found; `number` is None where nothing was."""
    found, lost, yes, no = _REASONING.get(language, _REASONING["en"])
    if number is None:
        return lost.format(pieces=pieces)
    judged = yes if can_answer else no
    return found.format(pieces=pieces, number=number, judged=judged)
