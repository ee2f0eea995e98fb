"""Gold knowledge: one verified entry a question, made of the question and its answer."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from kb.models import KnowledgeBase
from qa.evaluation.cases import as_text, read_lines
from qa.evaluation.knowledge import EMPTY, Fact, Loading, Source, ensure_knowledge
from qa.evaluation.suites.files import digest_of
from qa.exceptions import EvaluationDataError

from .values import ChoiceQuestion

_SEED = 20240219  # any fixed number: the same share is the same questions for ever


def gold_knowledge(
    name: str,
    questions: Sequence[ChoiceQuestion],
    ratio: float,
    *,
    digest: str,
    loading: Loading | None = None,
) -> KnowledgeBase:
    """Return the knowledge base that knows a share of the questions' right answers.

    Args:
        questions: With one right option each.
        ratio: The share in [0, 1]; smaller shares are parts of larger ones.
        digest: Of the data; names the knowledge base with `ratio`.

    Raises:
        EvaluationDataError: The ratio is out of its range.
    """
    if not 0 <= ratio <= 1:
        raise EvaluationDataError(f"A share of {ratio} is not between 0 and 1.")
    known = gold_subset(questions, ratio)
    if not known:
        return ensure_knowledge(EMPTY, "Evaluation: nothing", ())
    facts = [Fact(_statement(question), key=question.id) for question in known]
    percent = f"{ratio * 100:g}".replace(".", "-")
    return ensure_knowledge(
        f"eval-{name}-gold-{percent}-{digest[:8]}",
        f"Evaluation: {name}, gold knowledge of {ratio:.0%}",
        [Source(key="gold", title=f"Gold knowledge of {name}", facts=facts)],
        loading=loading,
    )


def gold_subset(
    questions: Iterable[ChoiceQuestion], ratio: float
) -> list[ChoiceQuestion]:
    """Return a share of the questions, chosen by their ids; a larger one holds it."""
    ordered = sorted(questions, key=lambda question: _place(question.id))
    return ordered[: round(ratio * len(ordered))]


def corpus_knowledge(
    name: str, file: Path, *, loading: Loading | None = None
) -> KnowledgeBase:
    """Return a knowledge base of a corpus: JSON Lines of objects with a "text".

    Raises:
        EvaluationDataError: A line says nothing, or the file is missing.
    """
    if not file.is_file():
        raise EvaluationDataError(f"There is no corpus {file}.")
    digest = digest_of(file)
    facts = [
        Fact(text, key=str(number))
        for number, text in read_lines(file, lambda row: as_text(row["text"]))
    ]
    sources = [
        Source(
            key=f"{file.stem}-{begin}",
            title=f"{file.stem}, from entry {begin + 1}",
            facts=facts[begin : begin + 256],
        )
        for begin in range(0, len(facts), 256)
    ]
    return ensure_knowledge(
        f"eval-{name}-corpus-{digest[:8]}",
        f"Evaluation: {name}, corpus {file.stem}"[:100],
        sources,
        loading=loading,
    )


def _statement(question: ChoiceQuestion) -> str:
    answer = question.options[question.correct[0]].strip()
    return f"{question.question.strip()} {answer}"


def _place(question_id: str) -> bytes:
    return hashlib.sha256(f"{_SEED}:{question_id}".encode()).digest()
