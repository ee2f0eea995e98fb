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
        "Own knowledge", "Does the language model know it without looking?"
    ),
    Gate.VERBATIM: GateWords(
        "Word for word",
        "Has an expert already answered exactly this question?",
    ),
    Gate.HARD_REFUSAL: GateWords(
        "Hard refusal", "Is anything known that is close enough to the question?"
    ),
    Gate.SOFT_REFUSAL: GateWords(
        "Soft refusal", "Does the evidence really answer the question?"
    ),
    Gate.ABSTENTION: GateWords("Abstention", "Is the written answer to be trusted?"),
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
        "How sure it is that the model knows by itself", rule="at least"
    ),
    "boundary_confidence": SignalWords("By the probe of the question's activations"),
    "history_known": SignalWords("By past questions, the model's leaning taken out"),
    "history_uncorrected": SignalWords("By past questions, as the model leans"),
    "history_examples": SignalWords("Past questions that were shown", Kind.COUNT),
    "own_log_probability": SignalWords("Mean log-probability of its own draft"),
    "least_token_confidence": SignalWords("Confidence in the least certain new word"),
    "monitored_segments": SignalWords("Sentences that were watched", Kind.COUNT),
    "monitored_rounds": SignalWords("How often evidence was looked for", Kind.COUNT),
    "monitored_sourced": SignalWords("Sentences that stand in an entry", Kind.COUNT),
    "monitored_added_facts": SignalWords(
        "Facts that its evidence does not say", Kind.COUNT
    ),
    "own_answer_stands": SignalWords("It wrote an answer by itself", Kind.YES_NO),
    "question_distance": SignalWords(
        "Distance to the nearest answered question", rule="at most"
    ),
    "same_words": SignalWords("It asks the same in the same words", Kind.YES_NO),
    "distance_over_confidence": SignalWords(
        "Best evidence: distance ÷ confidence", rule="below"
    ),
    "verified_ratio": SignalWords("Best verified evidence: distance ÷ confidence"),
    "unverified_ratio": SignalWords("Best unverified evidence: distance ÷ confidence"),
    "ratio_if_not_expired": SignalWords(
        "Distance ÷ confidence, had the entry not expired"
    ),
    "ratio_if_verified": SignalWords(
        "Distance ÷ confidence, had the entry been verified"
    ),
    "ratio_if_entitled": SignalWords(
        "Distance ÷ confidence, had you been entitled to the entry"
    ),
    "answer_characters": SignalWords("Characters of the draft", Kind.COUNT),
    "nearest_distance": SignalWords("Distance of the nearest entry"),
    "visible_entries": SignalWords("Entries that you may see", Kind.COUNT),
    "readable": SignalWords("The model's output could be read", Kind.YES_NO),
    "verdict": SignalWords("The model itself says that it can answer", Kind.YES_NO),
    "verdict_probability": SignalWords(
        "How sure the model is that it can answer", rule="at least"
    ),
    "not_a_refusal_in_prose": SignalWords(
        "The answer is more than “I don't know”", Kind.YES_NO
    ),
    "citations_verified": SignalWords(
        "Citations found in their entries", Kind.COUNT, "at least"
    ),
    "citations_dropped": SignalWords("Citations that were not found", Kind.COUNT),
    "unsupported_facts": SignalWords(
        "Facts that no cited entry holds", Kind.COUNT, "at most"
    ),
    "answer_in_evidence": SignalWords(
        "Share of the answer's words that stand in the evidence"
    ),
    "question_in_evidence": SignalWords(
        "Share of the question's words that stand in the evidence"
    ),
    "log_probability": SignalWords("Mean log-probability of its words"),
    "answer_confidence": SignalWords(
        "Confidence, by what went on inside the model while it wrote", rule="at least"
    ),
    "early_confidence": SignalWords(
        "Confidence before the first word, from question and evidence", rule="at least"
    ),
    "joint_confidence": SignalWords(
        "Confidence by all signals together", rule="at least"
    ),
    "least_token_probability": SignalWords("Probability of its least likely word part"),
    "mean_entropy": SignalWords("How open the choice of its words was (mean entropy)"),
    DISAGREEING: SignalWords(
        "Entries that contradict what the answer rests on", Kind.COUNT, "at most"
    ),
    "willingness": SignalWords("How likely it was to write anything at all"),
}

_RETURN_TO_PERSON = "Ask a colleague who knows the subject."
_REPHRASE = "Name the product, fee or process in the words that a document would use."
_REPORT = (
    "If this should be known, press “Should be known” and say what was missing: "
    "the people who keep the knowledge read it."
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
        "Nothing known is close enough",
        "The nearest entries are related at most; none of them covers this question.",
        (
            "Look at the related entries: one may hold what you need.",
            _REPHRASE,
            _REPORT,
        ),
    ),
    Reason.UNVERIFIED_ONLY: ReasonWords(
        "What is known has not been verified",
        "An entry fits, but no person has confirmed it yet.",
        (
            "Do not pass on an unverified entry as a fact.",
            "Ask whoever keeps this knowledge to verify the entry.",
        ),
    ),
    Reason.EXPIRED_ONLY: ReasonWords(
        "What is known has expired",
        "An entry fits, but the date until which it was valid has passed.",
        (
            "Do not use the old rule: it may have changed.",
            "Ask whoever keeps this knowledge to renew the entry.",
        ),
    ),
    Reason.NOT_ENTITLED: ReasonWords(
        "You may not see what is known",
        "There is knowledge on this for another audience than yours.",
        ("Hand the case to a colleague of the team in charge.",),
    ),
    Reason.MODEL_DECLINED: ReasonWords(
        "The evidence does not answer the question",
        "Entries on the subject were found and read, but they do not say what was asked.",
        ("Read the related entries yourself.", _REPHRASE, _REPORT),
    ),
    Reason.MALFORMED_OUTPUT: ReasonWords(
        "The language model gave no readable answer",
        "Entries were found, but what the model wrote could not be checked.",
        ("Read the related entries yourself.", "Ask again in other words."),
    ),
    Reason.UNSUPPORTED: ReasonWords(
        "The answer was not supported by the evidence",
        "An answer was written and withheld: it said what no entry says.",
        ("Read the related entries yourself.", _RETURN_TO_PERSON, _REPORT),
    ),
    Reason.LOW_CONFIDENCE: ReasonWords(
        "No answer would be sure enough",
        "What goes on inside the language model while it reads and writes did not look "
        "like it does when its answers are right.",
        ("Read the related entries yourself.", _RETURN_TO_PERSON, _REPORT),
    ),
    Reason.NO_PROBE: ReasonWords(
        "How sure an answer is could not be told",
        "The policy shows no answer whose confidence is not known, and no probe that "
        "could tell it fits the language model that is running.",
        ("Tell your administrator.", "Read the related entries yourself."),
    ),
    Reason.SOURCES_DISAGREE: ReasonWords(
        "The sources disagree",
        "Two entries that the answer would rest on contradict each other, and nobody has "
        "settled yet which one is right.",
        (
            "Read both entries below; tell the customer neither as certain.",
            "Ask a colleague who knows which one is right.",
            "Those who keep the knowledge have it on their list of conflicts.",
        ),
    ),
    Reason.POLICY_STALE: ReasonWords(
        "The limits must be set again first",
        "The models have changed since the limits were set, and the policy says not to "
        "answer until they are set again.",
        ("Tell your administrator.", _RETURN_TO_PERSON),
    ),
}

# stage -> what is being done while it runs, and its name once done
STAGES = {
    "question": ("Reading the question", "Question read"),
    "boundary_load": ("Starting the language model", "Language model ready"),
    "boundary": ("Asking what the model knows by itself", "Own knowledge judged"),
    "monitored": (
        "Writing, and looking where a word is in doubt",
        "Written and watched",
    ),
    "recall": ("Writing from the model's own knowledge", "Answer drafted"),
    "retrieve.embed": ("", "of the search: embedding the question"),
    "retrieve.sql": ("", "of the search: the database"),
    "retrieve": ("Searching what is known", "Searched"),
    "rerank": ("Ranking what was found", "Ranked anew"),
    "debias": ("Comparing with past verdicts", "Compared with past verdicts"),
    "verbatim": ("Looking for a ready answer", "Ready answers compared"),
    "hard_refusal": ("Judging how close it is", "Closeness judged"),
    "load": ("Starting the language model", "Language model ready"),
    "generate": ("Reading the evidence and writing", "Answer drafted"),
    "support": ("Checking every statement against the evidence", "Statements checked"),
    "soft_refusal": ("Judging the draft", "Draft judged"),
    "abstention": ("Judging how sure it is", "Sureness judged"),
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
