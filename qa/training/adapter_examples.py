"""Examples for the adapter: questions with the notes that the retriever finds for them.

What is taught is to answer in the words of a note, and to write nothing where no note
answers. Notes come from the project's own retriever, so that those which answer nothing
are the ones that will stand there in service: near misses.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kb.models import KnowledgeBase
from probes.adapter.examples import Example
from probes.language_model import Tokens
from qa.evaluation.knowledge import evaluation_user
from qa.evaluation.suites.files import find_file, misread, read_json
from qa.evaluation.suites.squad2 import FILES, NAME
from qa.language_models.evidence_text import flatten, sentence_spans
from qa.language_models.grounded_prompt import answer_ids, prompt_ids
from qa.pipeline.clean import clean_text
from qa.pipeline.evidence import Evidence
from qa.pipeline.generation import Prompt
from qa.pipeline.policy import Policy
from qa.services.retriever import KnowledgeRetriever, scope_of

# Mostly what a policy hands over, and now and then another number of notes.
_PIECES = (4, 4, 4, 4, 4, 2, 3, 6)
# Of the answerable questions whose note was not found, the share that is shown it.
_SHOWN_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question of the training data.

    Attributes:
        answers: What annotators marked; empty where nothing answers it.
        sentences: Of its own paragraph, those in which an answer is marked.
    """

    id: str
    article: str
    question: str
    answers: tuple[str, ...]
    sentences: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lessoned:
    """A lesson with its notes: the prompt and what is to be written."""

    article: str
    prompt: Prompt
    answer: str

    def example(self, tokens: Tokens) -> Example:
        """Return it as tokens."""
        return Example(prompt_ids(tokens, self.prompt), answer_ids(tokens, self.answer))


def read_lessons(
    data: Path | None, articles: Sequence[str], excluded: Sequence[str]
) -> list[Lesson]:
    """Return the questions of a file like SQuAD 2.0.

    Args:
        articles: On these alone; empty for all.
        excluded: On all but these.

    Raises:
        EvaluationDataError: The file is missing or laid out otherwise.
    """
    file = find_file(NAME, data, *FILES)
    try:
        return [
            _lesson(article["title"], paragraph["context"], asked)
            for article in read_json(file)["data"]
            if (not articles or article["title"] in articles)
            and article["title"] not in excluded
            for paragraph in article["paragraphs"]
            for asked in paragraph["qas"]
        ]
    except (KeyError, TypeError) as error:
        raise misread(file, "SQuAD 2.0") from error


def with_notes(
    lessons: Sequence[Lesson],
    knowledge_base: KnowledgeBase,
    policy: Policy,
    *,
    seed: int,
) -> Iterator[Lessoned | None]:
    """Yield each lesson with the notes that the retriever finds for its question.

    None for one that teaches nothing: the marked answer stands in a note that was not
    marked, so whether the notes answer it is not known.
    """
    scope = scope_of(evaluation_user(), knowledge_base, policy)
    for lesson in lessons:
        found = KnowledgeRetriever(scope).look(
            lesson.question, top_k=max(_PIECES), deep=False
        )
        chance = random.Random(f"{seed} {lesson.id}")  # noqa: S311  # nothing secret
        yield _lessoned(lesson, found.evidence, chance)


def balanced(
    lessoned: Sequence[Lessoned], *, answerable: float, seed: int
) -> list[Lessoned]:
    """Return as many as can be had with this share of them answerable.

    Args:
        answerable: In (0, 1).
    """
    chance = random.Random(seed)  # noqa: S311  # nothing secret
    with_answer = [row for row in lessoned if row.answer]
    without = [row for row in lessoned if not row.answer]
    size = min(len(with_answer) / answerable, len(without) / (1 - answerable))
    chosen = [
        *chance.sample(with_answer, round(size * answerable)),
        *chance.sample(without, round(size * (1 - answerable))),
    ]
    chance.shuffle(chosen)
    return chosen


def _lesson(article: str, paragraph: str, asked: Mapping[str, Any]) -> Lesson:
    marked = [] if asked.get("is_impossible", False) else asked["answers"]
    text = flatten(paragraph)
    spans = [
        (start, end)
        for start, end in sentence_spans(text)
        if any(start <= answer["answer_start"] < end for answer in marked)
    ]
    return Lesson(
        id=str(asked["id"]),
        article=article,
        question=asked["question"],
        answers=tuple(answer["text"] for answer in marked),
        sentences=frozenset(clean_text(text[start:end]) for start, end in spans),
    )


def _lessoned(
    lesson: Lesson, found: Sequence[Evidence], chance: random.Random
) -> Lessoned | None:
    pieces = list(found[: chance.choice(_PIECES)])
    if not pieces:
        return None
    if not lesson.answers:
        return Lessoned(lesson.article, _prompt(lesson, pieces), "")
    holding = [piece for piece in pieces if piece.text in lesson.sentences]
    if not holding and chance.random() < _SHOWN_SHARE:
        shown = replace(pieces[-1], text=chance.choice(sorted(lesson.sentences)))
        pieces[-1] = shown
        chance.shuffle(pieces)
        holding = [shown]
    if holding:
        answer = _answer(lesson, holding)
        return (
            Lessoned(lesson.article, _prompt(lesson, pieces), answer)
            if answer
            else None
        )
    stands = any(
        answer.casefold() in piece.text.casefold()
        for answer in lesson.answers
        for piece in pieces
    )
    return None if stands else Lessoned(lesson.article, _prompt(lesson, pieces), "")


def _answer(lesson: Lesson, holding: Sequence[Evidence]) -> str:
    """Return the answer that most annotators marked, of those that stand in a note."""
    counted = Counter(
        answer
        for answer in lesson.answers
        if any(answer in flatten(piece.text) for piece in holding)
    )
    most = counted.most_common(1)
    return most[0][0] if most else ""


def _prompt(lesson: Lesson, pieces: Sequence[Evidence]) -> Prompt:
    return Prompt(lesson.question, tuple(pieces), "en")
