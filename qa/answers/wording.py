"""What gates, signals, reasons and numbers are called where people read them."""

from dataclasses import dataclass
from enum import Enum

from qa.pipeline.agree import DISAGREEING
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.policy import Policy


@dataclass(frozen=True, slots=True)
class GateWords:
    """A gate as a question that it answers."""

    name: str
    question: str


GATES = {
    Gate.BOUNDARY: GateWords(
        "Own knowledge", "Does the language model know the answer without searching?"
    ),
    Gate.VERBATIM: GateWords(
        "Word for word",
        "Has an expert already answered exactly this question?",
    ),
    Gate.HARD_REFUSAL: GateWords(
        "Hard refusal", "Is any entry close enough to the question?"
    ),
    Gate.SOFT_REFUSAL: GateWords(
        "Soft refusal", "Does the evidence really answer the question?"
    ),
    Gate.ABSTENTION: GateWords("Abstention", "Is the answer reliable enough?"),
    Gate.AGREEMENT: GateWords("Agreement", "Do the sources agree with each other?"),
}


class Kind(Enum):
    """How a signal's number reads."""

    NUMBER = "number"
    COUNT = "count"
    YES_NO = "yes or no"


@dataclass(frozen=True, slots=True)
class SignalWords:
    """What a signal measures, how its number reads and what it must be to pass."""

    label: str
    kind: Kind = Kind.NUMBER
    rule: str = ""


SIGNALS = {
    "own_sureness": SignalWords(
        "Probability that the model knows the answer itself", rule="at least"
    ),
    "boundary_confidence": SignalWords(
        "Probability by the probe on the question's activations"
    ),
    "history_known": SignalWords("Probability by similar past questions, debiased"),
    "history_uncorrected": SignalWords(
        "Probability by similar past questions, before debiasing"
    ),
    "history_examples": SignalWords("Past questions used as examples", Kind.COUNT),
    "own_log_probability": SignalWords("Mean log-probability of its own draft"),
    "least_token_confidence": SignalWords("Lowest confidence in a new word"),
    "monitored_segments": SignalWords("Sentences monitored", Kind.COUNT),
    "monitored_rounds": SignalWords("Searches for evidence while writing", Kind.COUNT),
    "monitored_sourced": SignalWords("Sentences supported by an entry", Kind.COUNT),
    "monitored_added_facts": SignalWords(
        "Facts that its evidence does not contain", Kind.COUNT
    ),
    "own_answer_stands": SignalWords(
        "The model wrote an answer without evidence", Kind.YES_NO
    ),
    "question_distance": SignalWords(
        "Distance to the nearest answered question", rule="at most"
    ),
    "same_words": SignalWords("Same question, word for word", Kind.YES_NO),
    "distance_over_confidence": SignalWords(
        "Best evidence: distance ÷ confidence", rule="below"
    ),
    "verified_ratio": SignalWords("Best verified evidence: distance ÷ confidence"),
    "unverified_ratio": SignalWords("Best unverified evidence: distance ÷ confidence"),
    "ratio_if_not_expired": SignalWords(
        "Distance ÷ confidence, if the entry had not expired"
    ),
    "ratio_if_verified": SignalWords(
        "Distance ÷ confidence, if the entry were verified"
    ),
    "ratio_if_entitled": SignalWords(
        "Distance ÷ confidence, if you had access to the entry"
    ),
    "answer_characters": SignalWords("Characters in the draft", Kind.COUNT),
    "nearest_distance": SignalWords("Distance of the nearest entry"),
    "visible_entries": SignalWords("Entries that you have access to", Kind.COUNT),
    "readable": SignalWords("The model's output is readable", Kind.YES_NO),
    "verdict": SignalWords("The model says that it can answer", Kind.YES_NO),
    "verdict_probability": SignalWords(
        "Probability that the model can answer", rule="at least"
    ),
    "not_a_refusal_in_prose": SignalWords(
        "The answer is more than “I don't know”", Kind.YES_NO
    ),
    "citations_verified": SignalWords(
        "Citations found in their entries", Kind.COUNT, "at least"
    ),
    "citations_dropped": SignalWords(
        "Citations not found in their entries", Kind.COUNT
    ),
    "unsupported_facts": SignalWords(
        "Facts that no cited entry supports", Kind.COUNT, "at most"
    ),
    "answer_in_evidence": SignalWords(
        "Share of the answer's words found in the evidence"
    ),
    "question_in_evidence": SignalWords(
        "Share of the question's words found in the evidence"
    ),
    "log_probability": SignalWords("Mean log-probability of the answer's tokens"),
    "answer_confidence": SignalWords(
        "Confidence by the model's activations while it wrote", rule="at least"
    ),
    "early_confidence": SignalWords(
        "Confidence before the first word, by question and evidence", rule="at least"
    ),
    "joint_confidence": SignalWords(
        "Confidence by all signals together", rule="at least"
    ),
    "least_token_probability": SignalWords("Probability of the least likely token"),
    "mean_entropy": SignalWords("Mean entropy of the token choices"),
    DISAGREEING: SignalWords(
        "Entries that contradict what the answer rests on", Kind.COUNT, "at most"
    ),
    "willingness": SignalWords("Probability of writing an answer at all"),
}

_RETURN_TO_PERSON = "Ask a colleague who knows the subject."
_REPHRASE = "Name the product, fee or process in the words that a document would use."
_REPORT = (
    "If this should be known, press “No, we should know this” and say what is missing: "
    "the knowledge team reads it."
)


@dataclass(frozen=True, slots=True)
class ReasonWords:
    """Why a question was refused, and what its asker can do now."""

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

# stage -> what is being done while it runs, and its name once done
STAGES = {
    "question": ("Reading the question", "Question read"),
    "boundary_load": ("Starting the language model", "Language model ready"),
    "boundary": ("Checking what the model knows itself", "Own knowledge checked"),
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
    "verbatim": ("Looking for an exact answer", "Exact answers compared"),
    "hard_refusal": ("Checking how close the evidence is", "Distance checked"),
    "load": ("Starting the language model", "Language model ready"),
    "generate": ("Reading the evidence and writing", "Answer drafted"),
    "support": ("Checking every statement against the evidence", "Statements checked"),
    "soft_refusal": ("Checking the draft", "Draft checked"),
    "abstention": ("Checking the confidence", "Confidence checked"),
    "agreement": ("Comparing the sources", "Sources compared"),
    "outcome": ("Finishing", "Stored"),
}


def meets(value: float | None, limit: float | None, words: SignalWords) -> bool | None:
    """Hold a number against its limit as the rule says; a yes or no must be the limit.

    None where either is missing.
    """
    if value is None or limit is None:
        return None
    match words.rule:
        case "below":
            return value < limit
        case "at most":
            return value <= limit
        case "at least":
            return value >= limit
        case _:
            return value == limit


def limit_in_words(value: float, limit: float, words: SignalWords) -> str:
    """Say where a number is beside its limit: "above the limit of 0.85"."""
    name = "minimum" if words.rule == "at least" else "limit"
    where = "at" if value == limit else "above" if value > limit else "below"
    if words.rule == "at most" and value <= limit:
        where = "within"
    return f"{where} the {name} of {number_in_words(limit, words.kind)}"


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
    if confidence >= 1:
        return "certain"
    if confidence >= 0.9:
        return "high"
    if confidence >= 0.75:
        return "fair"
    return "low"


def time_in_words(milliseconds: float) -> str:
    """Return a duration with a unit that suits it."""
    if milliseconds < 1:
        return "under 1 ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1_000:.1f} s"


def number_in_words(value: float | None, kind: Kind = Kind.NUMBER) -> str:
    """Return a measured number as people read it."""
    if value is None:
        return "none"
    match kind:
        case Kind.YES_NO:
            return "yes" if value else "no"
        case Kind.COUNT:
            return f"{value:,.0f}"
        case Kind.NUMBER:
            return f"{value:.2f}"
