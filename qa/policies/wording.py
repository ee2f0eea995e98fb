"""The words of each reason for a refusal: to its asker, on pages, and what to do next."""

from collections.abc import Mapping
from dataclasses import dataclass

from qa.pipeline.gates import Reason

# Every text says why and what to do next, and nothing about what the asker may not see.
_DEFAULTS: Mapping[str, Mapping[Reason, str]] = {
    "en": {
        Reason.NOTHING_KNOWN: "I found nothing about this in the knowledge base, so I "
        "won't guess. Try other words, or pass the question to an expert.",
        Reason.TOO_FAR: "The knowledge base has something related, but nothing that "
        "answers this. Have a look at the related entries, ask more precisely, or pass "
        "the question to an expert.",
        Reason.UNVERIFIED_ONLY: "What the knowledge base has on this has not been "
        "verified yet, so I won't answer from it. Please ask an expert to check it.",
        Reason.EXPIRED_ONLY: "What the knowledge base had on this is out of date, so I "
        "won't answer from it. Please ask an expert for the current state.",
        Reason.NOT_ENTITLED: "There is knowledge about this that your account may not "
        "see. Please ask a colleague who has access, or ask for access.",
        Reason.NOT_ANSWERED: "I found related entries, but none that clearly answers this, "
        "so I won't guess. Have a look at them yourself, ask more precisely, or pass the "
        "question to an expert.",
        Reason.MODEL_DECLINED: "The entries I found do not clearly answer this, so I "
        "won't guess. Have a look at them yourself, ask more precisely, or pass the "
        "question to an expert.",
        Reason.MALFORMED_OUTPUT: "I could not put an answer together that can be "
        "checked. Have a look at the entries I found, or ask again in other words.",
        Reason.UNSUPPORTED: "The answer I drafted was not fully backed by the entries I "
        "found, so I am not showing it. Have a look at them yourself, or pass the "
        "question to an expert.",
        Reason.LOW_CONFIDENCE: "I could not be sure enough of an answer to this, so I am "
        "not showing one. Have a look at the entries I found yourself, or pass the "
        "question to an expert.",
        Reason.NO_PROBE: "I could not check how sure an answer to this would be, so I am "
        "not showing one. Have a look at the entries I found yourself, and tell an "
        "administrator.",
        Reason.SOURCES_DISAGREE: "The entries I found contradict each other on this, so "
        "I won't pick a side. Both are shown below; please ask an expert which is right.",
        Reason.POLICY_STALE: "Answers are paused because the thresholds were set for "
        "other models than the ones now running. Please tell an administrator.",
    },
    "de": {
        Reason.NOTHING_KNOWN: "Dazu habe ich in der Wissensbasis nichts gefunden und "
        "rate nicht. Versuchen Sie es mit anderen Worten oder geben Sie die Frage an "
        "eine Fachperson weiter.",
        Reason.TOO_FAR: "In der Wissensbasis steht Verwandtes, aber nichts, was diese "
        "Frage beantwortet. Sehen Sie sich die verwandten Einträge an, fragen Sie "
        "genauer oder geben Sie die Frage an eine Fachperson weiter.",
        Reason.UNVERIFIED_ONLY: "Was die Wissensbasis dazu enthält, ist noch nicht "
        "geprüft; deshalb antworte ich nicht daraus. Bitten Sie eine Fachperson, es zu "
        "prüfen.",
        Reason.EXPIRED_ONLY: "Was die Wissensbasis dazu enthielt, ist nicht mehr "
        "gültig; deshalb antworte ich nicht daraus. Fragen Sie eine Fachperson nach "
        "dem aktuellen Stand.",
        Reason.NOT_ENTITLED: "Dazu gibt es Wissen, das Ihr Konto nicht sehen darf. "
        "Fragen Sie jemanden mit Zugriff oder beantragen Sie ihn.",
        Reason.NOT_ANSWERED: "Ich habe Verwandtes gefunden, aber keinen Eintrag, der das "
        "eindeutig beantwortet, und rate nicht. Sehen Sie sich die Einträge selbst an, "
        "fragen Sie genauer oder geben Sie die Frage an eine Fachperson weiter.",
        Reason.MODEL_DECLINED: "Die gefundenen Einträge beantworten das nicht "
        "eindeutig, und ich rate nicht. Sehen Sie sie selbst an, fragen Sie genauer "
        "oder geben Sie die Frage an eine Fachperson weiter.",
        Reason.MALFORMED_OUTPUT: "Ich konnte keine Antwort bilden, die sich prüfen "
        "lässt. Sehen Sie sich die gefundenen Einträge an oder fragen Sie mit anderen "
        "Worten.",
        Reason.UNSUPPORTED: "Mein Entwurf war durch die gefundenen Einträge nicht ganz "
        "gedeckt; deshalb zeige ich ihn nicht. Sehen Sie sie selbst an oder geben Sie "
        "die Frage an eine Fachperson weiter.",
        Reason.LOW_CONFIDENCE: "Einer Antwort darauf könnte ich nicht sicher genug "
        "sein; deshalb zeige ich keine. Sehen Sie die gefundenen Einträge selbst an "
        "oder geben Sie die Frage an eine Fachperson weiter.",
        Reason.NO_PROBE: "Wie sicher eine Antwort darauf wäre, konnte ich nicht prüfen; "
        "deshalb zeige ich keine. Sehen Sie die gefundenen Einträge selbst an und "
        "verständigen Sie die Administration.",
        Reason.SOURCES_DISAGREE: "Die gefundenen Einträge widersprechen sich hierin; "
        "deshalb entscheide ich mich für keinen. Beide stehen darunter; fragen Sie eine "
        "Fachperson, welcher gilt.",
        Reason.POLICY_STALE: "Antworten sind ausgesetzt, weil die Schwellen für andere "
        "Modelle gesetzt wurden als die, die gerade laufen. Bitte verständigen Sie die "
        "Administration.",
    },
}


def refusal_text(
    reason: Reason,
    language: str,
    overrides: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """Return what is shown for `reason` in `language` (two letters).

    Args:
        language: A language without texts of its own is answered in English.
        overrides: The knowledge base's own texts by (language, reason); the reason ""
            covers every reason without one.
    """
    own = overrides or {}
    for key in ((language, reason.value), (language, "")):
        if key in own:
            return own[key]
    return _DEFAULTS.get(language, _DEFAULTS["en"])[reason]


_RETURN_TO_PERSON = "Ask a colleague who knows the subject."
_REPHRASE = "Name the product, fee or process in the words that a document would use."
_REPORT = (
    "If this should be known, press “No, we should know this” and say what is missing: "
    "the knowledge team reads it."
)


@dataclass(frozen=True, slots=True)
class ReasonWords:
    title: str
    why: str
    next_steps: tuple[str, ...]


REASONS = {
    Reason.NOTHING_KNOWN: ReasonWords(
        "Nothing is known about this",
        "No entry of the knowledge base is related to the question.",
        (_RETURN_TO_PERSON, _REPORT),
    ),
    Reason.TOO_FAR: ReasonWords(
        "No entry is close enough",
        "The nearest entries are related, but none of them covers this question.",
        (
            "Look at the related entries: one may contain what you need.",
            _REPHRASE,
            _REPORT,
        ),
    ),
    Reason.UNVERIFIED_ONLY: ReasonWords(
        "The matching entry is not verified",
        "An entry matches, but nobody has verified it yet.",
        (
            "Do not pass on an unverified entry as a fact.",
            "Ask the knowledge team to verify the entry.",
        ),
    ),
    Reason.EXPIRED_ONLY: ReasonWords(
        "The matching entry has expired",
        "An entry matches, but it was valid only until a date that has passed.",
        (
            "Do not use the old rule: it may have changed.",
            "Ask the knowledge team to renew the entry.",
        ),
    ),
    Reason.NOT_ENTITLED: ReasonWords(
        "You do not have access to this knowledge",
        "There is an entry about this for another audience.",
        ("Hand the case to a colleague of the team in charge.",),
    ),
    Reason.NOT_ANSWERED: ReasonWords(
        "No entry clearly answers the question",
        "Related entries were found and compared with the question; none of them seems to "
        "answer it.",
        (
            "Read the related entries: one of them may answer it after all.",
            _REPHRASE,
            _REPORT,
        ),
    ),
    Reason.MODEL_DECLINED: ReasonWords(
        "The evidence does not answer the question",
        "Entries on the subject were found and read, but they do not contain the answer.",
        ("Read the related entries yourself.", _REPHRASE, _REPORT),
    ),
    Reason.MALFORMED_OUTPUT: ReasonWords(
        "The language model's output could not be read",
        "Entries were found, but the model's output could not be checked.",
        ("Read the related entries yourself.", "Ask again in other words."),
    ),
    Reason.UNSUPPORTED: ReasonWords(
        "The answer was not supported by the evidence",
        "A draft was written and withheld, because no entry supports what it says.",
        ("Read the related entries yourself.", _RETURN_TO_PERSON, _REPORT),
    ),
    Reason.LOW_CONFIDENCE: ReasonWords(
        "Confidence is too low",
        "The language model's activations did not look as they do when its answers are "
        "right.",
        ("Read the related entries yourself.", _RETURN_TO_PERSON, _REPORT),
    ),
    Reason.NO_PROBE: ReasonWords(
        "Answer confidence unavailable",
        "The policy requires a confidence for every answer, and no probe fits the "
        "language model that is running.",
        ("Tell your administrator.", "Read the related entries yourself."),
    ),
    Reason.SOURCES_DISAGREE: ReasonWords(
        "The sources disagree",
        "Two entries that the answer would rest on contradict each other, and nobody has "
        "decided yet which one is right.",
        (
            "Read both entries below; present neither to the customer as certain.",
            "Ask a colleague who knows which one is right.",
            "The conflict is on the knowledge team's list.",
        ),
    ),
    Reason.POLICY_STALE: ReasonWords(
        "The thresholds must be recalibrated",
        "The models have changed since the thresholds were set, and the policy does not "
        "answer until they are recalibrated.",
        ("Tell your administrator.", _RETURN_TO_PERSON),
    ),
}
