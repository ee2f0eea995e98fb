"""Training examples for the adapter: questions with the notes retrieved for them.

The adapter learns to answer in the words of a note, and to write nothing if no note
answers; the retriever's near misses teach the latter.
"""

import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from django.conf import settings

from accounts.ids import digest
from kb.documents.models import KnowledgeBase
from kb.types import Evidence
from probes.adapter.fitting import (
    AdapterSettings,
    Example,
    Step,
    fit_adapter,
    save_adapter,
)
from probes.adapter.merging import AdapterCard
from probes.language_model import Tokens
from probes.language_model.loading import (
    choose_device,
    choose_dtype,
    find_model_directory,
    load_network,
    weights_sha256,
)
from qa.answers.sources import KnowledgeRetriever, evidence_scope
from qa.evaluation.knowledge import evaluation_user
from qa.evaluation.suites.options import find_file, misread
from qa.evaluation.suites.question_sets import FILES, NAME, open_squad2, read_articles
from qa.inference.evidence_text import flatten, sentence_spans
from qa.inference.grounded_form import FORM, answer_ids, prompt_ids
from qa.pipeline.language_model import Prompt
from qa.pipeline.policy import Policy
from qa.pipeline.values import clean_text

logger = logging.getLogger(__name__)

# Numbers of notes to draw from: mostly the policy's, sometimes another.
_PIECES = (4, 4, 4, 4, 4, 2, 3, 6)
# The share of answerable questions whose note was not found that are given it anyway.
_SHOWN_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Lesson:
    id: str
    article: str
    question: str
    answers: tuple[str, ...]
    sentences: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lessoned:
    article: str
    prompt: Prompt
    answer: str

    def example(self, tokens: Tokens) -> Example:
        return Example(prompt_ids(tokens, self.prompt), answer_ids(tokens, self.answer))


def read_lessons(
    data: Path | None, articles: Sequence[str], excluded: Sequence[str]
) -> list[Lesson]:
    file = find_file(NAME, data, *FILES)
    try:
        return [
            _lesson(title, paragraph["context"], asked)
            for title, paragraphs in read_articles(file).items()
            if (not articles or title in articles) and title not in excluded
            for paragraph in paragraphs
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

    Yields None where an unmarked note contains a marked answer, as it is unknown
    whether the notes answer the question.
    """
    scope = evidence_scope(evaluation_user(), knowledge_base, policy)
    for lesson in lessons:
        found = KnowledgeRetriever(scope).look(
            lesson.question, top_k=max(_PIECES), deep=False
        )
        chance = random.Random(f"{seed} {lesson.id}")  # noqa: S311  # nothing secret
        yield _lessoned(lesson, found.evidence, chance)


def balanced(
    lessoned: Sequence[Lessoned], *, answerable: float, seed: int
) -> list[Lessoned]:
    """Return a shuffled sample, as large as possible, with this share answerable.

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
        prompt = _prompt(lesson, pieces)
        return Lessoned(lesson.article, prompt, answer) if answer else None
    is_there = any(
        answer.casefold() in piece.text.casefold()
        for answer in lesson.answers
        for piece in pieces
    )
    return None if is_there else Lessoned(lesson.article, _prompt(lesson, pieces), "")


def _answer(lesson: Lesson, holding: Sequence[Evidence]) -> str:
    counted = Counter(
        answer
        for answer in lesson.answers
        if any(answer in flatten(piece.text) for piece in holding)
    )
    most = counted.most_common(1)
    return most[0][0] if most else ""


def _prompt(lesson: Lesson, pieces: Sequence[Evidence]) -> Prompt:
    return Prompt(lesson.question, tuple(pieces), "en")


OnProgress = Callable[[str, int, int], None]
"""Called with the step's name, the amount done and the total."""


@dataclass(frozen=True, slots=True)
class AdapterTraining:
    """The training data and settings of an adapter.

    Attributes:
        data: A data set's file or directory; `articles` and `exclude_articles` select
            from it.
        answerable: In (0, 1): the share of examples whose notes answer the question.
        threads: Number of threads, for fitting only.
    """

    data: Path | None
    articles: tuple[str, ...] = ()
    exclude_articles: tuple[str, ...] = ()
    answerable: float = 0.5
    limit: int | None = None
    threads: int = 1
    settings: AdapterSettings = field(default_factory=AdapterSettings)


def train_adapter(
    model: str, training: AdapterTraining, output: Path, *, on_progress: OnProgress
) -> AdapterCard:
    lessons = lessons_of(training, on_progress)
    directory = find_model_directory(model)
    device = choose_device(settings.MODEL_DEVICE)
    network, tokens = load_network(directory, name=model, dtype=choose_dtype(device))
    network.to(device)  # type: ignore[arg-type]  # a decorator hides the real signature
    examples = [lesson.example(tokens) for lesson in lessons]
    losses: list[float] = []
    # Set only now, because what was loaded for looking up notes sets its own number.
    torch.set_num_threads(training.threads)

    def stepped(step: Step) -> None:
        losses.append(step.loss)
        on_progress("Fitting", step.number, step.total)

    adapted = fit_adapter(network, examples, training.settings, on_step=stepped)
    return save_adapter(
        output,
        adapted,
        AdapterCard(
            base=model,
            base_sha256=weights_sha256(directory),
            form=FORM,
            data_sha256=digest(json.dumps([[e.prompt, e.answer] for e in examples])),
            groups=tuple(sorted({lesson.article for lesson in lessons})),
            settings=asdict(training.settings),
            metrics={
                "examples": len(examples),
                "answerable": sum(bool(lesson.answer) for lesson in lessons),
                "last_loss": sum(losses[-50:]) / len(losses[-50:]),
            },
        ),
    )


def lessons_of(training: AdapterTraining, on_progress: OnProgress) -> list[Lessoned]:
    suite = open_squad2(
        data=training.data,
        articles=training.articles,
        exclude_articles=training.exclude_articles,
        loading=lambda done, total: on_progress("Loading knowledge", done, total),
    )
    if suite.knowledge_base is None or suite.policy is None:
        raise TypeError("The suite squad2 needs a knowledge base and a policy")
    lessons = read_lessons(training.data, training.articles, training.exclude_articles)
    found: list[Lessoned] = []
    rows = with_notes(
        lessons,
        suite.knowledge_base,
        suite.policy.as_value(),
        seed=training.settings.seed,
    )
    for number, row in enumerate(rows, start=1):
        found += [row] if row else []
        on_progress("Looking up notes", number, len(lessons))
    chosen = balanced(
        found, answerable=training.answerable, seed=training.settings.seed
    )
    logger.info(
        "%d of %d questions make examples on %d articles, %s",
        len(chosen), len(lessons), len({row.article for row in chosen}),
        dict(Counter("answerable" if row.answer else "not" for row in chosen)),
    )  # fmt: skip
    return chosen[: training.limit]
