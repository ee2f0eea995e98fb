"""What a refusal says: one function for every path that shows one."""

from collections.abc import Mapping

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
        reason: The reason that the asker may be told (`Outcome.shown_reason`).
        language: A language without texts of its own is answered in English.
        overrides: The knowledge base's own texts by (language, reason); the reason ""
            stands for every reason without one.
    """
    own = overrides or {}
    for key in ((language, reason.value), (language, "")):
        if key in own:
            return own[key]
    return _DEFAULTS.get(language, _DEFAULTS["en"])[reason]
