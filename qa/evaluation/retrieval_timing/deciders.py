"""Whoever decides when to retrieve, each with all it needs to decide here."""

import math
from dataclasses import dataclass

from probes.language_model import Context
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.own_knowledge.draft import write_draft
from qa.pipeline.generation import Generation
from qa.pipeline.monitored import Draft, SegmentWriter
from qa.pipeline.monitoring import keys_of, new_words
from qa.pipeline.outcome import Question
from qa.pipeline.refusal_detector import is_refusal


@dataclass(frozen=True, slots=True, eq=False)
class JustRead:
    """`qa.pipeline.own_knowledge.Considered` by nobody: what answering takes by itself."""

    form: OwnKnowledgeForm
    context: Context
    sureness: float | None = None
    signals: tuple[tuple[str, float | None], ...] = ()
    examples: tuple[str, ...] = ()

    def answer(self) -> Generation:
        """Write the answer.

        Raises:
            TooManyTokensError: It grew longer than the model's context.
        """
        return write_draft(self.form, self.context)


class Undecided:
    """`qa.pipeline.own_knowledge.OwnKnowledge` that tells nothing and just answers."""

    def __init__(self, form: OwnKnowledgeForm) -> None:
        """Take over the form that questions are asked in."""
        self._form = form

    @property
    def fingerprint(self) -> str:
        """The form's."""
        return self._form.fingerprint

    def consider(self, question: Question) -> JustRead:
        """Read the question.

        Raises:
            TooManyTokensError: It does not fit the model's context.
        """
        return JustRead(self._form, self._form.open(question.text))


@dataclass(frozen=True, slots=True)
class Watched:
    """`qa.pipeline.own_knowledge.Considered` by the first sentence of a watched answer."""

    question: str
    draft: Draft
    examples: tuple[str, ...] = ()

    @property
    def weakest(self) -> float | None:
        """The least confidence of a word that says something new.

        None where there is none, or where the model declines.
        """
        draft, known = self.draft, keys_of([self.question])
        if is_refusal(draft.text):
            return None
        words = new_words(draft.text, draft.tokens, draft.confidences, known=known)
        return min(
            (word.confidence for word in words if word.confidence is not None),
            default=None,
        )

    @property
    def sureness(self) -> float | None:
        """That, brought into [0, 1] in its own order."""
        weakest = self.weakest
        return None if weakest is None else (1 + math.tanh(weakest / 2)) / 2

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        """It in the monitor's own unit, which thresholds of CtrlA are in."""
        return (("least_token_confidence", self.weakest),)

    def answer(self) -> Generation:
        """Return the sentence."""
        return Generation(
            cited=(),
            quotes=(),
            reasoning="",
            can_answer=bool(self.draft.text),
            verdict_probability=None,
            answer=self.draft.text,
            malformed=False,
            repaired=False,
            log_probability=None,
            raw=self.draft.text,
            prompt_tokens=0,
            answer_tokens=len(self.draft.tokens),
            milliseconds=0.0,
        )


class OwnKnowledgeByMonitor:
    """`qa.pipeline.own_knowledge.OwnKnowledge` by CtrlA's monitor, as one that decides once.

    CtrlA itself goes on to form queries and to write again; as a decider among others it
    says by its first sentence whether evidence is to be looked for.
    """

    def __init__(self, writer: SegmentWriter, *, steering: float) -> None:
        """Take over a writer, and how strongly it is moved towards honesty."""
        self._writer, self._steering = writer, steering

    @property
    def fingerprint(self) -> str:
        """The writer's, with the steering behind it."""
        return f"{self._writer.fingerprint} {self._steering:g}"

    def consider(self, question: Question) -> Watched:
        """Write the first sentence of an answer, and watch it.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """
        draft = self._writer.write(question.text, (), (), steering=self._steering)
        return Watched(question.text, draft)
