"""Every threshold and switch of one answer."""

from dataclasses import dataclass
from enum import StrEnum

from kb.types import Evidence

# As the CBDR paper: so many times the pieces that are kept are ranked anew.
CANDIDATES_A_PIECE = 3


class Scope(StrEnum):
    """What may be answered from.

    KNOWLEDGE_BASE: nothing but evidence.
    ADAPTIVE: the language model's own knowledge too, labelled as unsourced.
    """

    KNOWLEDGE_BASE = "knowledge_base"
    ADAPTIVE = "adaptive"


class RetrievalTiming(StrEnum):
    """When evidence is looked for; all but ALWAYS need the adaptive scope.

    ALWAYS: for every question.
    BOUNDARY: where a probe of the question's activations doubts that the model knows
        (CBDR).
    HISTORY: where past questions like it say that the model does not know (DH-ICL).
    LOG_PROBABILITY: where the model's own draft is unlikely to it.
    MONITORED: while it writes, at words that it is not confident of (CtrlA).
    """

    ALWAYS = "always"
    BOUNDARY = "boundary"
    HISTORY = "history"
    LOG_PROBABILITY = "log_probability"
    MONITORED = "monitored"


@dataclass(frozen=True, slots=True)
class Policy:
    """Every threshold and switch of one answer; versioned and stored with it.

    Attributes:
        alpha: Hard refusal unless some verified piece of evidence has distance /
            confidence < alpha (L2R eq. 2, on Euclidean L2 of unit vectors), or some
            unverified piece has it < alpha_unverified too.
        alpha_unverified: The bound for evidence that nobody verified, where it is the
            lower one.
        horizon: Distance beyond which an entry counts as unrelated ("nothing known"
            instead of "too far"; no near miss).
        top_k: Pieces of evidence handed to the language model.
        verbatim_distance: Largest distance of the verbatim tier; 0 switches it off.
        unverified_floor: Least confidence of unverified evidence; 1 admits verified
            evidence alone.
        answer_from_enriched: Whether what a language model proposed may be evidence
            before a curator has reviewed it.
        enriched_floor: Least confidence of such evidence.
        hard_refusal: Whether the distance may refuse; if not, it is measured and
            stored (shadow). Without any evidence there is nothing to answer from.
        soft_refusal: Whether the model's own verdict may refuse, or is in shadow.
        support_check: Whether an answer that its evidence does not carry is refused, or
            the check is in shadow.
        min_verdict: Least probability of "can answer" in [0, 1] where the language
            model gives one.
        abstention: Whether too little confidence may refuse, or is in shadow.
        min_confidence: Least confidence in [0, 1] by the answer's own activations; 0
            lets all pass, and so do the next two.
        min_early_confidence: The same from the prompt alone; below it no answer is
            written.
        min_joint_confidence: The same from all signals together.
        answer_without_probe: Whether an answer is shown whose confidence abstention
            enforces and nothing in force can tell.
        sources_must_agree: Whether an answer is refused whose evidence another piece of
            evidence contradicts, or is shown with a notice.
        reveal_not_entitled: Whether a refusal may tell that knowledge exists which the
            asker may not see.
        refuse_when_stale: Whether a stale policy refuses everything or answers with a
            warning.
        scope: What may be answered from.
        retrieval_timing: When evidence is looked for.
        min_known: Least known_probability in [0, 1] at which the model answers by itself; CBDR's
            beta. Above 1 it never does.
        steering: How strongly activations are moved towards honesty while a monitored
            answer is written; 1 is half of what both instructions of the fit differ by.
        min_token_confidence: Least confidence of a monitored word, in the same unit; it
            holds for one model and its directions.
        rerank: Whether what was found is put in the order in which it helps the model.
        debias_verdict: Whether the model's verdict is corrected by what it says of past
            questions whose answer is known.
        calibrated_embedder: Fingerprint that alpha was set for.
        calibrated_language_model: Fingerprint that min_verdict was set for; several are
            separated by spaces.
        calibrated_retrieval: Way of searching, and its metric, that alpha was set for.
        calibrated_probes: Fingerprints, separated by spaces, of the probes that the
            least confidences were set for; such sets of several language models are
            separated by "|".
        calibrated_own_knowledge: Fingerprint of what tells whether the model knows, that
            min_known was set for; where another runs, evidence is always looked for.
        is_calibrated: Whether the thresholds come from labelled answers.
    """

    name: str
    version: int
    alpha: float
    alpha_unverified: float
    horizon: float
    top_k: int
    verbatim_distance: float
    unverified_floor: float
    answer_from_enriched: bool
    enriched_floor: float
    hard_refusal: bool
    soft_refusal: bool
    support_check: bool
    min_verdict: float
    abstention: bool
    min_confidence: float
    min_early_confidence: float
    min_joint_confidence: float
    answer_without_probe: bool
    sources_must_agree: bool
    reveal_not_entitled: bool
    refuse_when_stale: bool
    scope: Scope
    retrieval_timing: RetrievalTiming
    min_known: float
    steering: float
    min_token_confidence: float
    rerank: bool
    debias_verdict: bool
    calibrated_embedder: str
    calibrated_language_model: str
    calibrated_retrieval: str
    calibrated_probes: str
    calibrated_own_knowledge: str
    is_calibrated: bool

    @property
    def candidates(self) -> int:
        """How many pieces are looked for."""
        return self.top_k * (CANDIDATES_A_PIECE if self.rerank else 1)

    def alpha_of(self, piece: Evidence) -> float:
        """Return the bound that this piece's distance / confidence is held against."""
        if piece.is_verified:
            return self.alpha
        return min(self.alpha, self.alpha_unverified)

    @property
    def least_enriched(self) -> float | None:
        """Least confidence of unreviewed evidence; None where none of it may answer."""
        return self.enriched_floor if self.answer_from_enriched else None

    @property
    def least_early(self) -> float | None:
        """The early confidence below which no answer is written; None for no such one."""
        is_enforced = self.abstention and self.min_early_confidence > 0
        return self.min_early_confidence if is_enforced else None
