"""Deciders of when to retrieve, with the probe or history that each one needs."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from kb.embedding.embedder import Embedder
from probes.abstention.probe import AbstentionProbe
from probes.cards import ProbeFiles
from probes.language_model import Context
from probes.services import load_probe
from qa.exceptions import EvaluationDataError
from qa.inference.closed_book_form import ClosedBookForm, write_draft
from qa.inference.known_by_probe import BoundaryProbe
from qa.pipeline.history import JudgedQuestion, KnownQuestion
from qa.pipeline.language_model import Generation
from qa.pipeline.monitored import Draft, SegmentWriter
from qa.pipeline.monitored_words import new_words, word_keys
from qa.pipeline.refusal_detector import is_refusal
from qa.pipeline.values import Question
from qa.training.boundary import BoundaryTraining, train_boundary
from qa.training.labelled_questions import LabelledQuestion
from qa.training.preferences import AnsweredPrompt
from studies.study import OnProgress

from .asking import Row
from .questions import TimedQuestion


@dataclass(frozen=True, slots=True, eq=False)
class JustRead:
    """`KnowledgeEstimate` without an estimate; measures the cost of just answering."""

    form: ClosedBookForm
    context: Context
    known_probability: float | None = None
    signals: tuple[tuple[str, float | None], ...] = ()
    examples: tuple[str, ...] = ()

    def answer(self) -> Generation:
        """Write the closed-book answer."""
        return write_draft(self.form, self.context)


class Undecided:
    """`SelfKnowledge` that estimates nothing and just answers."""

    def __init__(self, form: ClosedBookForm) -> None:
        """Answer with this closed-book form."""
        self._form = form

    @property
    def fingerprint(self) -> str:
        return self._form.fingerprint

    def consider(self, question: Question) -> JustRead:
        """Read the question."""
        return JustRead(self._form, self._form.open(question.text))


@dataclass(frozen=True, slots=True)
class Watched:
    """`KnowledgeEstimate` from the first sentence of a monitored answer."""

    question: str
    draft: Draft
    examples: tuple[str, ...] = ()

    @property
    def weakest(self) -> float | None:
        """The least confidence of a new word.

        None if there is no new word with a confidence, or the answer is a refusal.
        """
        draft, known = self.draft, word_keys([self.question])
        if is_refusal(draft.text):
            return None
        words = new_words(draft.text, draft.tokens, draft.confidences, known=known)
        return min(
            (word.confidence for word in words if word.confidence is not None),
            default=None,
        )

    @property
    def known_probability(self) -> float | None:
        """`weakest`, mapped monotonically to [0, 1]."""
        weakest = self.weakest
        return None if weakest is None else (1 + math.tanh(weakest / 2)) / 2

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        """`weakest` in the monitor's own unit, that of CtrlA's thresholds."""
        return (("least_token_confidence", self.weakest),)

    def answer(self) -> Generation:
        text = self.draft.text
        return Generation(
            can_answer=bool(text),
            answer=text,
            raw=text,
            answer_tokens=len(self.draft.tokens),
        )


class SelfKnowledgeByMonitor:
    """`SelfKnowledge` by CtrlA's monitor, deciding once.

    CtrlA itself goes on to form queries and to rewrite. Here its first sentence alone
    decides whether to retrieve, which makes it comparable with the other deciders.
    """

    def __init__(self, writer: SegmentWriter, *, steering: float) -> None:
        """Decide with this writer, steered towards honesty by `steering`."""
        self._writer, self._steering = writer, steering

    @property
    def fingerprint(self) -> str:
        """The writer's fingerprint and the steering."""
        return f"{self._writer.fingerprint} {self._steering:g}"

    def consider(self, question: Question) -> Watched:
        """Write and monitor the first sentence of an answer."""
        draft = self._writer.write(question.text, (), (), steering=self._steering)
        return Watched(question.text, draft)


# A boundary probe for CBDR, fitted during the run on questions that are not tested.


_WITH_NOTES_EACH: Final = 8


def with_notes_too(questions: Sequence[TimedQuestion]) -> list[TimedQuestion]:
    """Return the questions that the probe also sees with notes: one in eight."""
    return list(questions[::_WITH_NOTES_EACH])


def prompts_of(
    questions: Sequence[TimedQuestion],
    alone: Mapping[str, Row],
    with_notes: Mapping[str, Row],
) -> list[AnsweredPrompt]:
    rows = []
    for one in questions:
        for found in (alone, with_notes):
            if one.case.id in found:
                row = found[one.case.id]
                answer, notes = row["answer"], tuple(row.get("notes", ()))
                case = one.case
                prompt = LabelledQuestion(
                    case.question, case.references, notes, case.id
                )
                rows.append(AnsweredPrompt(prompt, answer, one.is_right(answer)))
    return rows


def taught_probe(
    form: ClosedBookForm,
    rows: Sequence[AnsweredPrompt],
    directory: Path,
    *,
    on_progress: OnProgress,
) -> BoundaryProbe:
    """Return a boundary probe fitted on these rows.

    It is fitted once: its files are kept below `directory`, named by a digest of the
    rows and the form.

    Raises:
        EvaluationDataError: The kept files do not hold a boundary probe.
    """
    content = "\n".join([form.fingerprint, *sorted(row.content for row in rows)])
    place = directory / f"boundary-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    if place.is_dir():
        files = ProbeFiles.read(place)
    else:
        training = BoundaryTraining()
        files = train_boundary(form, rows, training, on_progress=on_progress).files
        files.write(place)
    probe = load_probe(files, language_model=form.model.fingerprint)
    if not isinstance(probe, AbstentionProbe):
        raise EvaluationDataError(f"{place} is not a boundary probe; remove it.")
    return BoundaryProbe(files.fingerprint, probe)


# A history for DH-ICL: other questions, and whether the model alone is right on them.


class TaughtHistory:
    """`qa.pipeline.history.History` of training questions, held in memory."""

    def __init__(
        self,
        questions: Sequence[TimedQuestion],
        alone: Mapping[str, Row],
        embedder: Embedder,
    ) -> None:
        """Embed the questions; they are known if the closed-book answer is right."""
        self._embedder = embedder
        self._known = [
            KnownQuestion(
                one.case.question,
                one.is_right(alone[one.case.id]["answer"]),
                one.case.id,
            )
            for one in questions
        ]
        self._vectors = embedder.encode([one.question for one in self._known])

    def known(
        self, question: Question, *, own_model: str, limit: int
    ) -> Sequence[KnownQuestion]:
        """Return the nearest questions, nearest first; `own_model` is ignored."""
        vector = self._embedder.encode_question(question.text)
        near = np.argsort(-(self._vectors @ vector), kind="stable")[:limit]
        return [self._known[place] for place in near.tolist()]

    def judged(
        self, question: Question, *, language_model: str, limit: int
    ) -> Sequence[JudgedQuestion]:
        """Return nothing: there are no expert judgements here."""
        return ()
