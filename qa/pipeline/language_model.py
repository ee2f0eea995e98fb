"""Inputs and outputs of a language model and its probes: plain values, no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kb.types import Evidence
from probes.taps import Activations, Tap

Watch = Callable[[Tap, Activations], bool]


@dataclass(frozen=True, slots=True)
class Capture:
    """What to keep of a language model's activations while it answers.

    Attributes:
        answer: Taps kept for every token of the answer.
        ends: Whether they are kept for its end token too, which takes one more pass.
        prompt: Taps kept for the prompt's last token, before any answer token.
        watch: Called during the pass with the activations at each of the `prompt` taps,
            shape (width,), in order of depth. If it returns False, the answer ends
            there and no deeper layer is computed.
    """

    answer: tuple[Tap, ...] = ()
    ends: bool = False
    prompt: tuple[Tap, ...] = ()
    watch: Watch | None = None


NO_CAPTURE = Capture()


@dataclass(frozen=True, slots=True, eq=False)
class KeptActivations:
    """The activations that were kept; a model that cannot keep any (a server) has none.

    Attributes:
        answer: float32 of shape (tokens, width): the answer's tokens.
        end: float32 of shape (1, width): its end token, if requested and written.
        prompt: float32 of shape (width,): the prompt's last token.
        is_stopped: Whether the watch ended the answer before its first token.
    """

    answer: Mapping[Tap, Activations] = field(default_factory=dict)
    end: Mapping[Tap, Activations] = field(default_factory=dict)
    prompt: Mapping[Tap, Activations] = field(default_factory=dict)
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Confidence:
    """The active probes' confidence in one answer; every number is in [0, 1].

    Attributes:
        answer: Confidence that the answer is right, from its own activations; None if
            no such probe is active or nothing was written.
        early: The same from the prompt alone, before any answer token.
        joint: The same from all signals combined.
        along: `answer` as it stood after each of the generation's `tokens`; empty if
            `answer` is None.
        shadows: (signal name, confidence) of probes in shadow.
        probes: Fingerprints of the active probes that were read, separated by spaces.
        missing: Why confidences are missing; "" if none is.
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
        evidence: Pieces in order; piece i has the number i + 1 in prompt and output.
        language: BCP 47 primary subtag of the answer's language.
    """

    question: str
    evidence: tuple[Evidence, ...]
    language: str


@dataclass(frozen=True, slots=True)
class Citation:
    """A piece of evidence that an answer rests on; `quote` occurs in the entry."""

    entry_id: int
    revision_id: int
    quote: str


@dataclass(frozen=True, slots=True)
class DebiasedVerdict:
    """Whether the evidence answers the question, corrected by past verdicts.

    Attributes:
        probability: Probability in [0, 1] of "can be answered", corrected for the
            model's bias.
        uncorrected: The same without the correction.
        examples: Ids of the past questions that decided it, nearest first.
    """

    probability: float
    uncorrected: float
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Generation:
    """A language model's output, parsed.

    Attributes:
        cited: 1-based numbers of the pieces of evidence that the model says it used.
        quotes: (piece number, words that the model says it quotes).
        verdict_probability: Probability of the verdict "can answer" in [0, 1]; None if
            the server does not report it.
        answer: Displayable text; empty if the model can't answer.
        malformed: Whether the output was unreadable even after one repair.
        repaired: Whether it took the one repair.
        log_probability: Mean natural-log probability of the answer's tokens, or None.
        raw: The unparsed output, for the record.
        short_answer: The words of `answer` that answer the question; empty if the model
            does not single them out.
        tokens: `short_answer` (or else `answer`) as the model's tokens, for showing its
            confidence along the way; joined they give the text.
        least_log_probability: Natural-log probability of the answer's least likely
            token, or None.
        entropy: Mean entropy in nats of the distributions that the answer's tokens were
            taken from, or None.
        willingness: Probability in [0, 1] of writing an answer rather than nothing, or
            None.
        trace: The activations that were kept; never stored.
        debiased: The verdict corrected by past ones; None if it was not corrected.
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
        """The probability in [0, 1] that soft refusal goes by, if there is one."""
        return self.debiased.probability if self.debiased else self.verdict_probability

    @property
    def is_stopped(self) -> bool:
        """Whether the answer was ended before its first token."""
        return self.trace is not None and self.trace.is_stopped


class LanguageModel(Protocol):
    """A model that writes an answer from evidence alone."""

    @property
    def fingerprint(self) -> str:
        """Identifier that differs between models (weights, adapter, dtype, server)."""

    def generate(self, prompt: Prompt, capture: Capture = NO_CAPTURE) -> Generation:
        """Generate evidence, reasoning, verdict and answer, in that order.

        A model that can't keep what `capture` asks for returns no trace.

        Raises:
            LanguageModelUnavailableError: The model's server is down or too slow.
        """


class Probes(Protocol):
    """The active probes for one language model; it may have none."""

    @property
    def fingerprints(self) -> str:
        """Fingerprints of all active probes, separated by spaces; "" for none."""

    def capture(self, *, least_early: float | None) -> Capture:
        """Return what the language model must keep.

        Args:
            least_early: Early confidence below which the answer ends before its first
                token; None measures it and ends nothing.
        """

    def read(
        self,
        prompt: Prompt,
        generation: Generation,
        signals: Mapping[str, float | None],
    ) -> Confidence:
        """Return the probes' confidence in an answer.

        Activations that the generation does not carry are read in a second pass.
        """


@dataclass(frozen=True, slots=True)
class NoProbes:
    """The probes of a model that none was fitted for; `why` is reported as missing."""

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
