"""What gates, signals, reasons and numbers are called where people read them."""

from qa.pipeline.gates import GATES, Gate
from qa.pipeline.policy import Policy
from qa.pipeline.rules import Kind

# stage -> what is being done while it runs, and its name once done
STAGES = {
    "question": ("Reading the question", "Question read"),
    "boundary_load": ("Starting the language model", "Language model ready"),
    Gate.BOUNDARY.value: GATES[Gate.BOUNDARY].stage_words,
    "monitored": (
        "Writing, and searching where a word is uncertain",
        "Written and monitored",
    ),
    "recall": ("Writing from the model's own knowledge", "Answer drafted"),
    "retrieve.embed": ("", "Search: embedding the question"),
    "retrieve.sql": ("", "Search: database query"),
    "retrieve": ("Searching the knowledge base", "Searched"),
    "rerank": ("Ranking the results", "Results reranked"),
    "debias": ("Comparing with past verdicts", "Compared with past verdicts"),
    Gate.VERBATIM.value: GATES[Gate.VERBATIM].stage_words,
    Gate.HARD_REFUSAL.value: GATES[Gate.HARD_REFUSAL].stage_words,
    "verify": ("Reading the entries found", "Entries read"),
    Gate.ENTRY.value: GATES[Gate.ENTRY].stage_words,
    "load": ("Starting the language model", "Language model ready"),
    "generate": ("Reading the evidence and writing", "Answer drafted"),
    "support": ("Checking every statement against the evidence", "Statements checked"),
    Gate.SOFT_REFUSAL.value: GATES[Gate.SOFT_REFUSAL].stage_words,
    Gate.ABSTENTION.value: GATES[Gate.ABSTENTION].stage_words,
    Gate.AGREEMENT.value: GATES[Gate.AGREEMENT].stage_words,
    "outcome": ("Finishing", "Stored"),
}


def distance_in_words(distance: float, policy: Policy) -> str:
    """Say how far a distance in [0, 2] is, on the scale of the policy's own limits."""
    if distance <= policy.verbatim_distance:
        return "very close"
    if distance < policy.alpha:
        return "close"
    if distance <= policy.horizon:
        return "far"
    return "unrelated"


def confidence_in_words(confidence: float) -> str:
    words = {1.0: "certain", 0.9: "high", 0.75: "fair"}
    return next((word for low, word in words.items() if confidence >= low), "low")


def time_in_words(milliseconds: float) -> str:
    if milliseconds < 1:
        return "under 1 ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1_000:.1f} s"


def number_in_words(value: float | None, kind: Kind = Kind.NUMBER) -> str:
    if value is None:
        return "none"
    match kind:
        case Kind.YES_NO:
            return "yes" if value else "no"
        case Kind.COUNT:
            return f"{value:,.0f}"
        case Kind.NUMBER:
            return f"{value:.2f}"
