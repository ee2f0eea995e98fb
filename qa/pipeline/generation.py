"""What a language model is given and what it gives back."""

from dataclasses import dataclass, field
from typing import Protocol

from .activations import NO_CAPTURE, Capture, Trace
from .evidence import Evidence


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model answers from; texts are data and can't break its structure.

    Attributes:
        question: The question's text.
        evidence: Pieces in order; piece i is called i + 1 in prompt and output.
        language: BCP 47 primary subtag of the answer.
    """

    question: str
    evidence: tuple[Evidence, ...]
    language: str


@dataclass(frozen=True, slots=True)
class Citation:
    """A piece of evidence that an answer rests on; `quote` stands in the entry."""

    entry_id: int
    revision_id: int
    quote: str


@dataclass(frozen=True, slots=True)
class DebiasedVerdict:
    """Whether the evidence answers the question, held against past verdicts.

    Attributes:
        probability: Of "can be answered" in [0, 1], without the model's leaning.
        uncorrected: The same with it.
        examples: Ids of the past questions that it was told by, the nearest first.
    """

    probability: float
    uncorrected: float
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Generation:
    """What a language model gave back, parsed.

    Attributes:
        cited: 1-based numbers of the pieces of evidence it says it used.
        quotes: (piece number, words it says it quotes).
        reasoning: One step from evidence to answer.
        can_answer: Its own verdict.
        verdict_probability: Probability of the verdict "can answer" in [0, 1]; None
            where the server does not tell.
        answer: Displayable text; empty if it can't answer.
        malformed: Whether the output could not be read even after one repair.
        repaired: Whether it took the one repair.
        log_probability: Mean natural-log probability of the answer's tokens, or None.
        raw: The output as it came, for the record.
        short_answer: The words of `answer` that answer the question; empty where the
            model does not tell them from the rest.
        tokens: `short_answer` (or else `answer`) as the model's tokens, for showing how
            sure it was along the way; joined they give the text.
        least_log_probability: Natural log of the answer's least likely token, or None.
        entropy: Mean entropy in nats of the distributions that the answer's tokens were
            taken from, or None.
        willingness: What the model gives in [0, 1] to writing an answer as against
            writing nothing, or None.
        trace: What was kept of the model's insides; never stored.
        debiased: The verdict that past ones correct; None where nobody was asked.
    """

    cited: tuple[int, ...]
    quotes: tuple[tuple[int, str], ...]
    reasoning: str
    can_answer: bool
    verdict_probability: float | None
    answer: str
    malformed: bool
    repaired: bool
    log_probability: float | None
    raw: str
    prompt_tokens: int
    answer_tokens: int
    milliseconds: float
    short_answer: str = ""
    tokens: tuple[str, ...] = ()
    least_log_probability: float | None = None
    entropy: float | None = None
    willingness: float | None = None
    trace: Trace | None = field(default=None, repr=False, compare=False)
    debiased: DebiasedVerdict | None = None

    @property
    def deciding_verdict(self) -> float | None:
        """The probability that soft refusal goes by, in [0, 1], if there is one."""
        return self.debiased.probability if self.debiased else self.verdict_probability

    @property
    def is_stopped(self) -> bool:
        """Whether the answer was ended before its first token."""
        return self.trace is not None and self.trace.is_stopped


class LanguageModel(Protocol):
    """Writes an answer from evidence alone."""

    @property
    def fingerprint(self) -> str:
        """What tells two models (weights, adapter, dtype, server) apart."""
        ...

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        """Return evidence, reasoning, verdict and answer, in that order of thought.

        A model that can't keep what `capture` asks for gives no trace.

        Raises:
            LanguageModelUnavailableError: The model's server is down or too slow.
        """
        ...
