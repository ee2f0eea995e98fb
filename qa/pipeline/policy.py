"""The policy of an answer: every threshold and switch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

# A reranker orders this many candidates for each piece that is kept, as in the CBDR
# paper.
_RERANKED_A_PIECE = 3
# The verifier chooses this many by their tokens, from the retrieved ones. At twenty-five
# help desks that no fit had seen, search had the right entry among its first 12 for 94
# of 100 questions, and their tokens put it among the first 8 of 40 for 97. Weighing more
# of them makes the choice worse: it adds wrong entries that look right.
_WEIGHED_A_PIECE, _RETRIEVED_A_PIECE = 2, 10

# The maximum distance of a new knowledge base if a verifier reads what passes it. For
# 3,000 questions about sixteen invented organisations with known answers, the nearest
# entry is at 0.70 to 1.15 (5th to 95th percentile; 98 % below 1.19); for questions to
# another organisation, half are at 1.17 and above, so a distance that decides alone
# must be smaller. Of 670 questions to ten help desks in people's own words, 1.25
# answered six more than 1.2, all of them rightly, and no more of 400 unanswerable ones.
ALPHA_WITH_VERIFIER = 1.25


class Scope(StrEnum):
    """What may be answered from.

    KNOWLEDGE_BASE: evidence only.
    ADAPTIVE: where no entry covers the question, also the language model's own
        knowledge, labelled as unsourced.
    """

    KNOWLEDGE_BASE = "knowledge_base"
    ADAPTIVE = "adaptive"


class RetrievalTiming(StrEnum):
    """When evidence is retrieved; all but ALWAYS need the adaptive scope.

    ALWAYS: for every question.
    BOUNDARY: if a probe on the question's activations doubts that the model knows the
        answer (CBDR).
    HISTORY: if similar past questions suggest that the model does not know it (DH-ICL).
    LOG_PROBABILITY: if the model's own draft has a low probability.
    MONITORED: while the model writes, at words that it is not confident of (CtrlA).
    """

    ALWAYS = "always"
    BOUNDARY = "boundary"
    HISTORY = "history"
    LOG_PROBABILITY = "log_probability"
    MONITORED = "monitored"


class Section(StrEnum):
    HARD_REFUSAL = "Hard refusal"
    VERBATIM = "Word-for-word answers"
    ENTRY = "Answers from entries"
    SOFT_REFUSAL = "Soft refusal"
    ABSTENTION = "Abstention"
    AGREEMENT = "Agreement"
    SHOWN = "What is shown, and when"
    REVIEWS = "What reviews count"
    TIMING = "When evidence is retrieved"
    ACTIVATION = "Activation"
    RECORD = "Record"


@dataclass(frozen=True, slots=True)
class Declared:
    """Description of a policy field for models, forms, REST and tables.

    `limits` include both ends.
    """

    section: Section
    label: str
    help: str = ""
    limits: tuple[float, float] | None = None
    symbol: str = ""

    @property
    def described(self) -> str:
        """The help text, with the paper's symbol."""
        symbol = f"In the paper: {self.symbol}." if self.symbol else ""
        return f"{self.help} {symbol}".strip()


def _field(
    default: object,
    section: Section,
    label: str,
    help_text: str = "",
    *,
    limits: tuple[float, float] | None = None,
    symbol: str = "",
) -> Any:
    declared = Declared(section, label, help_text, limits, symbol)
    return field(default=default, metadata={"declared": declared})


_DISTANCE, _SHARE, _FLOOR = (0.0, 2.0), (0.0, 1.0), (0.01, 1.0)


@dataclass(frozen=True, slots=True)
class Policy:
    """Every threshold and switch of one answer; versioned and stored with it.

    A gate that is switched off is still measured and stored (shadow). Without any
    evidence there is nothing to answer from, whatever is switched off.
    """

    name: str = "default"
    version: int = 1
    hard_refusal: bool = _field(
        True, Section.HARD_REFUSAL, "hard refusal",
        "Refuse by distance. Off: measure only (shadow).",
    )  # fmt: skip
    # The defaults were chosen on the bundled models and the demonstration questions as
    # a whole: questions that the knowledge base answers have ratios from 0 to 0.84,
    # those that it only touches on from 0.91 (one 0.85), those that it knows nothing
    # about from 1.24; the same question in other words is below 0.2, where the words
    # must agree too. Of 52 verdicts past that alpha, those on right answers are at 0.63
    # and above (one at 0.41), the others at 0.49 and below (one at 0.92). This is how
    # they were found, not how well they generalise: calibrating on one's own labelled
    # answers does better.
    alpha: float = _field(
        0.85, Section.HARD_REFUSAL, "maximum distance",
        "A question is refused unless the smallest distance / confidence is below this value (Euclidean distance of unit vectors, 0 to 2).",
        limits=_DISTANCE, symbol="alpha (Learn to Refuse, equation 2)",
    )  # fmt: skip
    alpha_unverified: float = _field(
        2.0, Section.HARD_REFUSAL, "maximum distance of unverified evidence",
        "A stricter maximum distance for unverified evidence; a value above alpha has no effect.",
        limits=_DISTANCE,
    )  # fmt: skip
    horizon: float = _field(
        1.25, Section.HARD_REFUSAL, "horizon",
        "Distance above which an entry counts as unrelated.",
        limits=_DISTANCE,
    )  # fmt: skip
    top_k: int = _field(
        4, Section.HARD_REFUSAL, "pieces of evidence", limits=(1, 20)
    )  # fmt: skip
    verbatim_distance: float = _field(
        0.35, Section.VERBATIM, "maximum distance of a word-for-word answer",
        "Maximum distance of a word-for-word answer; 0 switches it off.",
        limits=_DISTANCE,
    )  # fmt: skip
    verification: bool = _field(
        True, Section.ENTRY, "verification",
        "Let the verifier judge whether an entry answers the question, and show a verified entry that does as the answer. Off: measure only.",
    )  # fmt: skip
    # On knowledge held out of training, with a third to a half of its questions without
    # an answer: at 0.8, of people's questions to an FAQ 20 in 100 that have an answer
    # are refused, 1 in 34 without one is answered and 1 in 20 of all answers shown is
    # wrong; at 22 help desks with documents and tables also 1 in 20. Of what 0.75 shows
    # beyond that, 10 of 28 were wrong. A knowledge base's own questions find a better
    # value.
    min_entry_answer: float = _field(
        0.8, Section.ENTRY, "minimum probability of an entry's own answer",
        "Minimum probability, by the verifier, at which a verified entry, or two that are about equally likely, are shown whole as the answer; above 1 none is shown.",
        limits=(0.0, 1.01),
    )  # fmt: skip
    # A model that copies words from one entry can't know better than the verifier. One
    # that writes may be asked at a lower value.
    min_answerability: float = _field(
        0.8, Section.ENTRY, "minimum answerability",
        "Minimum probability, by the verifier, that any entry answers the question; below it the language model is not asked. 0 lets all pass.",
        limits=_SHARE,
    )  # fmt: skip
    # Nobody vouches for unverified entries: one written by hand gets a confidence of
    # 0.8 without anybody having read it. A policy must admit such entries explicitly.
    unverified_floor: float = _field(
        1.0, Section.HARD_REFUSAL, "minimum confidence of unverified evidence",
        "Minimum confidence of unverified evidence; 1 admits verified evidence only.",
        limits=_FLOOR,
    )  # fmt: skip
    answer_from_enriched: bool = _field(
        False, Section.HARD_REFUSAL, "answers from a model's proposals",
        "Use a language model's proposals as evidence before a curator has reviewed them; the answer then says so.",
    )  # fmt: skip
    enriched_floor: float = _field(
        0.4, Section.HARD_REFUSAL, "minimum confidence of a model's proposals",
        "Minimum confidence of evidence that a language model proposed and nobody has reviewed.",
        limits=_FLOOR,
    )  # fmt: skip
    soft_refusal: bool = _field(
        True, Section.SOFT_REFUSAL, "soft refusal",
        "Refuse by the model's verdict. Off: measure only (shadow).",
    )  # fmt: skip
    min_verdict: float = _field(
        0.6, Section.SOFT_REFUSAL, "minimum verdict",
        "Minimum probability, by the model's verdict, that the evidence answers the question.",
        limits=_SHARE,
    )  # fmt: skip
    support_check: bool = _field(
        True, Section.SOFT_REFUSAL, "support check",
        "Refuse answers that their evidence does not support. Off: measure only.",
    )  # fmt: skip
    min_sentence_support: float = _field(
        0.3, Section.SOFT_REFUSAL, "minimum support of a sentence",
        "Minimum probability, by the verifier, that a cited entry supports each sentence of an answer; a sentence that the entry contains word for word always passes.",
        limits=_SHARE,
    )  # fmt: skip
    abstention: bool = _field(
        False, Section.ABSTENTION, "abstention",
        "Refuse by low confidence. Off: measure only (shadow).",
    )  # fmt: skip
    min_confidence: float = _field(
        0.0, Section.ABSTENTION, "minimum confidence by activations",
        "Minimum confidence of the probe that reads the answer's activations; 0 lets all pass.",
        limits=_SHARE,
    )  # fmt: skip
    min_early_confidence: float = _field(
        0.0, Section.ABSTENTION, "minimum early confidence",
        "Minimum confidence of the probe that reads question and evidence; below it no answer is generated. 0 lets all pass.",
        limits=_SHARE,
    )  # fmt: skip
    min_joint_confidence: float = _field(
        0.0, Section.ABSTENTION, "minimum joint confidence",
        "Minimum confidence of the probe that combines all signals; 0 lets all pass.",
        limits=_SHARE,
    )  # fmt: skip
    answer_without_probe: bool = _field(
        True, Section.ABSTENTION, "answers without a probe",
        "Show answers even if a confidence is enforced and no probe fits the language model.",
    )  # fmt: skip
    sources_must_agree: bool = _field(
        True, Section.AGREEMENT, "refuses where sources disagree",
        "Refuse answers that another entry contradicts, until curators resolve the conflict. Off: show them with a notice.",
    )  # fmt: skip
    reveal_not_entitled: bool = _field(
        False, Section.SHOWN, "reveals knowledge that the asker may not see",
        "Let a refusal mention that there is knowledge which the asker may not see.",
    )  # fmt: skip
    refuse_when_stale: bool = _field(
        False, Section.SHOWN, "refuses while stale",
        "Refuse everything while the thresholds belong to other models.",
    )  # fmt: skip
    completeness_counts: bool = _field(
        False, Section.REVIEWS, "incomplete answers are wrong",
        "A reviewed answer that is not complete counts as a false one. Off: correct and true to its evidence is enough.",
    )  # fmt: skip
    marked_evidence_counts: bool = _field(
        False, Section.REVIEWS, "answers from other evidence are wrong",
        "A reviewed answer that cites none of the evidence that the expert marked counts as a false one. Off: the marks only record which entries answer the question.",
    )  # fmt: skip
    scope: Scope = _field(  # noqa: RUF009  # an immutable default
        Scope.KNOWLEDGE_BASE, Section.TIMING, "scope",
        "knowledge_base: answer from evidence alone. adaptive: if no entry covers the question, also answer from the language model's own knowledge, labelled as unsourced.",
    )  # fmt: skip
    retrieval_timing: RetrievalTiming = _field(  # noqa: RUF009  # an immutable default
        RetrievalTiming.ALWAYS, Section.TIMING, "retrieval timing",
        "When evidence is retrieved. All but always need the adaptive scope: boundary (a probe of the question), history (similar past questions), log_probability (of the draft), monitored (during generation).",
    )  # fmt: skip
    own_knowledge_first: bool = _field(
        False, Section.TIMING, "own knowledge first",
        "Ask the language model for its own knowledge before evidence is retrieved, which saves the search: its answer then takes precedence over a verified entry. Off: only if no entry covers the question.",
    )  # fmt: skip
    min_known: float = _field(
        0.95, Section.TIMING, "minimum known probability",
        "Minimum known probability at which the language model answers from its own knowledge; above 1 it never does. Set it from a risk-coverage curve.",
        limits=(0.0, 1.01), symbol="beta (CBDR)",
    )  # fmt: skip
    steering: float = _field(
        0.3, Section.TIMING, "steering",
        "Steering strength of a monitored answer towards honesty: 1 is halfway between untruthful and honest, 0 is none.",
        limits=(-20.0, 20.0),
    )  # fmt: skip
    min_token_confidence: float = _field(
        0.0, Section.TIMING, "minimum confidence of a word",
        "Minimum confidence of a word of a monitored answer; below it evidence is retrieved. 1 is the level of a confident person, -1 of an unconfident one.",
        limits=(-1000.0, 1000.0),
    )  # fmt: skip
    rerank: bool = _field(
        False, Section.TIMING, "reranking",
        "Order the retrieved evidence by how much it helps the model. Needs a reranker.",
    )  # fmt: skip
    debias_verdict: bool = _field(
        False, Section.SOFT_REFUSAL, "verdict corrected by past ones",
        "Correct the model's verdict by what it says about past questions that experts judged.",
    )  # fmt: skip
    test_cases_must_pass: bool = _field(
        False, Section.ACTIVATION, "test cases must pass",
        "Every saved test case of the knowledge base must pass before this version is activated, and before it is replaced while active. Off: giving a reason is enough.",
    )  # fmt: skip
    # Fingerprints that the thresholds were set for, several separated by spaces.
    calibrated_embedder: str = _field(
        "", Section.RECORD, "set for the embedding model"
    )  # fmt: skip
    calibrated_language_model: str = _field(
        "", Section.RECORD, "set for the language model"
    )  # fmt: skip
    calibrated_retrieval: str = _field(
        "", Section.RECORD, "set for the search method"
    )  # fmt: skip
    # Likewise, with "|" between the sets of several language models.
    calibrated_probes: str = _field("", Section.RECORD, "set for the probes")
    calibrated_own_knowledge: str = _field(
        "", Section.RECORD, "set for the closed-book model"
    )  # fmt: skip
    is_calibrated: bool = _field(False, Section.RECORD, "from labelled answers")
    # Whether the base's own questions chose the thresholds; not recorded in the
    # version.
    is_self_calibrated: bool = False

    @property
    def retrieved(self) -> int:
        """How many entries a search returns."""
        if self.verification:
            return self.top_k * _RETRIEVED_A_PIECE
        return self.handed_on

    @property
    def weighed(self) -> int:
        """How many of them the verifier weighs."""
        return self.top_k * _WEIGHED_A_PIECE

    @property
    def handed_on(self) -> int:
        """How many of them go on at most: to a reranker, which keeps `top_k`, more."""
        return self.top_k * (_RERANKED_A_PIECE if self.rerank else 1)

    @property
    def min_enriched(self) -> float | None:
        """Least confidence of unreviewed evidence; None if none of it may be used."""
        return self.enriched_floor if self.answer_from_enriched else None

    @property
    def least_early(self) -> float | None:
        """Early confidence below which no answer is written; None if not enforced."""
        is_enforced = self.abstention and self.min_early_confidence > 0
        return self.min_early_confidence if is_enforced else None


# Declarations by field name, in the order of display.
DECLARED: Mapping[str, Declared] = {
    each.name: each.metadata["declared"]
    for each in fields(Policy)
    if "declared" in each.metadata
}
# The fields that a person sets; the others record what the thresholds were set for.
CHOSEN = tuple(
    name for name, each in DECLARED.items() if each.section is not Section.RECORD
)


def default(name: str) -> Any:
    return getattr(_DEFAULTS, name)


_DEFAULTS = Policy()
