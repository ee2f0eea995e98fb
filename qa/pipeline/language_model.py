"""What a language model and its probes are given and give back: plain values, no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kb.types import Evidence
from probes.taps import Activations, Tap

Watch = Callable[[Tap, Activations], bool]


@dataclass(frozen=True, slots=True)
class Capture:
    """What is to be kept while a language model answers.

    Attributes:
        answer: Places kept for every token of the answer.
        ends: Whether they are kept for its end token too, which takes a pass more.
        prompt: Places kept for the prompt's last token, before any answer token.
        watch: Called in mid-pass with what stands at each of the `prompt` places, shape
            (width,), in the order of their depth; False ends the answer there, and
            nothing behind it is computed.
    """

    answer: tuple[Tap, ...] = ()
    ends: bool = False
    prompt: tuple[Tap, ...] = ()
    watch: Watch | None = None


NO_CAPTURE = Capture()


@dataclass(frozen=True, slots=True, eq=False)
class KeptActivations:
    """What was kept; a model that keeps nothing (a server) gives none.

    Attributes:
        answer: float32 of shape (tokens, width): the answer's tokens.
        end: float32 of shape (1, width): its end token, where that was asked for and
            written.
        prompt: float32 of shape (width,).
        is_stopped: Whether the watch ended the answer before its first token.
    """

    answer: Mapping[Tap, Activations] = field(default_factory=dict)
    end: Mapping[Tap, Activations] = field(default_factory=dict)
    prompt: Mapping[Tap, Activations] = field(default_factory=dict)
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Confidence:
    """What the active probes made of one answer; every number in [0, 1].

    Attributes:
        answer: That the answer is right, from its own activations; None where no such
            probe is active or nothing was written.
        early: The same from the prompt alone, before any answer token.
        joint: The same from all signals together.
        along: `answer` as it stood after each of the generation's `tokens`; empty where
            `answer` is None.
        shadows: (signal name, confidence) of probes that run in shadow.
        probes: Fingerprints of the active probes that gave them, separated by spaces.
        missing: Why a number that the policy enforces could not be had; "" otherwise.
    """

    answer: float | None = None
    early: float | None = None
    joint: float | None = None
    along: tuple[float, ...] = ()
    shadows: tuple[tuple[str, float], ...] = ()
    probes: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model answers from; texts are data and can't break its structure.

    Attributes:
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
        examples: Ids of the past questions that decided it, the nearest first.
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

    cited: tuple[int, ...] = ()
    quotes: tuple[tuple[int, str], ...] = ()
    reasoning: str = ""
    can_answer: bool = False
    verdict_probability: float | None = None
    answer: str = ""
    malformed: bool = False
    repaired: bool = False
    log_probability: float | None = None
    raw: str = ""
    prompt_tokens: int = 0
    answer_tokens: int = 0
    milliseconds: float = 0.0
    short_answer: str = ""
    tokens: tuple[str, ...] = ()
    least_log_probability: float | None = None
    entropy: float | None = None
    willingness: float | None = None
    trace: KeptActivations | None = field(default=None, repr=False, compare=False)
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

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        """Return evidence, reasoning, verdict and answer, in that order of thought.

        A model that can't keep what `capture` asks for gives no trace.

        Raises:
            LanguageModelUnavailableError: The model's server is down or too slow.
        """


class Probes(Protocol):
    """The active probes for one language model; it may have none."""

    @property
    def fingerprints(self) -> str:
        """Of all that are active, separated by spaces; "" for none."""

    def capture(self, *, least_early: float | None) -> Capture:
        """Return what the language model is to keep.

        Args:
            least_early: Early confidence below which the answer ends before it begins;
                None measures it and ends nothing.
        """

    def read(
        self,
        prompt: Prompt,
        generation: Generation,
        signals: Mapping[str, float | None],
    ) -> Confidence:
        """Return how sure the probes are of an answer.

        Activations that the generation carries none of are read in a second pass.
        """


@dataclass(frozen=True, slots=True)
class NoProbes:
    """For a language model that no probe was fitted for; `why` is shown as missing."""

    why: str = "No probe is active for this language model."

    @property
    def fingerprints(self) -> str:
        return ""

    def capture(self, *, least_early: float | None) -> Capture:
        return NO_CAPTURE

    def read(
        self,
        prompt: Prompt,
        generation: Generation,
        signals: Mapping[str, float | None],
    ) -> Confidence:
        return Confidence(missing=self.why)
