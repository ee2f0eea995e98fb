"""Every question once: answered with notes, then considered by each decider.

Answers are written side by side, for what they are worth is all that is wanted of them.
Deciders consider one question after the other, as a deployment does, and what they cost is
counted where the model runs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Final, TypeVar

from probes.language_model import WhiteBoxModel
from qa.language_models.evidence_text import note_of
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.pipeline.evidence import Retriever
from qa.pipeline.hard_gate import passes
from qa.pipeline.outcome import Question
from qa.pipeline.own_knowledge import OwnKnowledge
from qa.pipeline.policy import Policy

from .questions import Asked
from .record import ALONE, WITH_NOTES, Record

TOP_K: Final = 3
_AT_ONCE: Final = 16
_ALONE: Final = "Answering alone"
_WITH_NOTES: Final = "Answering with notes"

OnProgress = Callable[[str, int, int], None]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a piece of work took: time, and what went through the model.

    Attributes:
        prompt_passes: Passes over several tokens.
        prompt_tokens: Tokens that these read.
        steps: Tokens that were read one at a time, as written ones are.
    """

    milliseconds: float
    prompt_passes: float
    prompt_tokens: float
    steps: float

    def plus(self, other: "Cost", times: float = 1.0) -> "Cost":
        """Return this and so many times the other."""
        return Cost(
            self.milliseconds + times * other.milliseconds,
            self.prompt_passes + times * other.prompt_passes,
            self.prompt_tokens + times * other.prompt_tokens,
            self.steps + times * other.steps,
        )


NOTHING: Final = Cost(0.0, 0.0, 0.0, 0.0)


def answer_with_notes(
    questions: Sequence[Asked],
    *,
    form: OwnKnowledgeForm,
    retriever: Retriever,
    policy: Policy,
    record: Record,
    on_progress: OnProgress,
) -> None:
    """Keep for each question what the model says with the best notes.

    A row holds the `answer`, the `notes`' texts, the ids of their `entries`, and whether
    the hard gate of the policy `passes` them. Notes are used whatever it says, so that
    both accounts can be drawn up.
    """
    done = record.of(WITH_NOTES, form.fingerprint)
    missing = [one for one in questions if one.case.id not in done]
    count = len(questions) - len(missing)
    on_progress(_WITH_NOTES, count, len(questions))
    for batch in _batches(missing):
        found = [
            retriever.look(one.case.question, top_k=TOP_K, deep=False) for one in batch
        ]
        notes = [[note_of(piece) for piece in looked.evidence] for looked in found]
        asked = [one.case.question for one in batch]
        answers = form.write_each(asked, notes)
        rows = {
            one.case.id: {
                "answer": answer,
                "notes": pieces,
                "entries": [piece.entry_id for piece in looked.evidence],
                "passes": passes(looked, policy),
            }
            for one, answer, pieces, looked in zip(
                batch, answers, notes, found, strict=True
            )
        }
        record.keep(WITH_NOTES, form.fingerprint, rows)
        count += len(batch)
        on_progress(_WITH_NOTES, count, len(questions))


def answer_alone(
    questions: Sequence[Asked],
    *,
    form: OwnKnowledgeForm,
    record: Record,
    on_progress: OnProgress,
) -> None:
    """Keep for each question the `answer` of the model alone."""
    done = record.of(ALONE, form.fingerprint)
    missing = [one for one in questions if one.case.id not in done]
    count = len(questions) - len(missing)
    on_progress(_ALONE, count, len(questions))
    for batch in _batches(missing):
        answers = form.write_each([one.case.question for one in batch])
        rows = zip(batch, answers, strict=True)
        record.keep(
            ALONE,
            form.fingerprint,
            {one.case.id: {"answer": answer} for one, answer in rows},
        )
        count += len(batch)
        on_progress(_ALONE, count, len(questions))


def consider_all(
    name: str,
    decider: OwnKnowledge,
    questions: Sequence[Asked],
    *,
    model: WhiteBoxModel,
    record: Record,
    on_progress: OnProgress,
    answer_each: int = 8,
) -> None:
    """Keep what a decider says of each question, and what that and going on took.

    A row holds `sureness` in [0, 1] or None, the `signals`, and the cost `decided`. Where
    the decider has drafted an answer, and of one question in `answer_each`, it holds the
    `answer` and the cost `answered` too: the others' would be the one that the model
    writes alone.
    """
    done = record.of(name, decider.fingerprint)
    missing = [
        (place, one) for place, one in enumerate(questions) if one.case.id not in done
    ]
    count = len(questions) - len(missing)
    on_progress(f"Deciding by {name}", count, len(questions))
    for _, one in missing[:1]:  # what is read once for all questions is no question's
        decider.consider(Question(one.case.question)).answer()
    for place, one in missing:
        is_answered = place % answer_each == 0
        row = _considered_row(decider, one.case.question, model, is_answered)
        record.keep(name, decider.fingerprint, {one.case.id: row})
        count += 1
        on_progress(f"Deciding by {name}", count, len(questions))


def _considered_row(
    decider: OwnKnowledge,
    text: str,
    model: WhiteBoxModel,
    is_answered: bool,
) -> Mapping[str, Any]:
    question = Question(text)
    considered, decided = _costed(model, lambda: decider.consider(question))
    row: dict[str, Any] = {
        "sureness": considered.sureness,
        "signals": dict(considered.signals),
        "decided": asdict(decided),
    }
    if decided.steps or is_answered:
        generation, answered = _costed(model, considered.answer)
        row |= {"answer": generation.answer.strip(), "answered": asdict(answered)}
    return row


def _costed(model: WhiteBoxModel, work: Callable[[], Item]) -> tuple[Item, Cost]:
    with model.metered() as meter:
        began = perf_counter()
        done = work()
        taken = (perf_counter() - began) * 1000
    return done, Cost(taken, meter.prompt_passes, meter.prompt_tokens, meter.steps)


def _batches(rows: Sequence[Asked]) -> Iterator[Sequence[Asked]]:
    for first in range(0, len(rows), _AT_ONCE):
        yield rows[first : first + _AT_ONCE]
