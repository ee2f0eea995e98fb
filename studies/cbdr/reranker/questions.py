"""Questions with sentences that may answer them, split by article.

SQuAD's answerable questions retrieve the nearest sentences of their part's articles.
Questions of other files retrieve from the same sentences, which rarely answer them:
closed-book is better there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from kb.embedding.embedder import Embedder
from qa.evaluation.metrics.text import normalised
from qa.evaluation.suites.options import digest_of, find_file, misread
from qa.evaluation.suites.question_sets import (
    FILES,
    article_cases,
    read_articles,
    sentences_of,
)
from qa.exceptions import EvaluationDataError
from qa.training.labelled_questions import LabelledQuestion, questions_of_file


class Part(StrEnum):
    """The use of articles and questions; nothing is learnt from a later part."""

    BOUNDARY = "boundary"
    PREFERENCES = "preferences"
    CALIBRATION = "calibration"
    TEST = "test"


# Shares of the articles and of the questions.
_SHARES: Final[Mapping[Part, float]] = {
    Part.BOUNDARY: 0.4,
    Part.PREFERENCES: 0.25,
    Part.CALIBRATION: 0.1,
    Part.TEST: 0.25,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of questions and notes.

    Attributes:
        questions: Questions of SQuAD over all parts. The other files add up to as many
            in each part except `PREFERENCES`.
        notes: Sentences that each question retrieves.
    """

    questions: int = 1000
    notes: int = 8
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Parted:
    """The questions of each part, each with the sentences it retrieved, nearest first.

    Attributes:
        of_texts: SQuAD's questions, which the sentences answer.
        of_others: Questions that they rarely answer; none in `PREFERENCES`.
        data: Digest of the files, 64 hex digits.
    """

    of_texts: Mapping[Part, Sequence[LabelledQuestion]]
    of_others: Mapping[Part, Sequence[LabelledQuestion]]
    data: str

    def all_of(self, part: Part) -> list[LabelledQuestion]:
        """Return the questions of both kinds of a part."""
        return [*self.of_texts[part], *self.of_others[part]]


def parted_questions(
    data: Path, others: Sequence[Path], sizes: Sizes, *, embedder: Embedder
) -> Parted:
    """Draw the questions by seed and retrieve the sentences of each.

    Args:
        data: SQuAD's file, its directory, or a directory of data sets.
        others: JSON Lines files of labelled questions.

    Raises:
        EvaluationDataError: The file is missing, has another layout, or has too few
            articles.
    """
    file = find_file("squad2", data, *FILES)
    articles = read_articles(file)
    random = np.random.default_rng(sizes.seed)
    titles = [sorted(articles)[index] for index in random.permutation(len(articles))]
    if len(titles) < 2 * len(Part):
        raise EvaluationDataError(
            f"{file.name} has {len(titles)} articles; splitting them takes at least "
            f"{2 * len(Part)}."
        )
    pool = [asked for one in others for asked in questions_of_file(one)]
    pool = [pool[index] for index in random.permutation(len(pool))]
    of_texts, of_others = {}, {}
    for part, own in zip(Part, _cut(titles), strict=True):
        try:
            sentences = [text for t in own for text in _sentences(articles[t])]
            rows = [asked for t in own for asked in _questions(t, articles[t])]
        except (KeyError, TypeError) as error:
            raise misread(file, "SQuAD 2.0") from error
        count = round(_SHARES[part] * sizes.questions)
        drawn = [rows[index] for index in random.permutation(len(rows))[:count]]
        # Preferences need none of the other questions; no other part gets their share.
        other, pool = (
            ([], pool) if part is Part.PREFERENCES else (pool[:count], pool[count:])
        )
        found = _with_notes([*drawn, *other], sentences, sizes.notes, embedder)
        of_texts[part], of_others[part] = found[: len(drawn)], found[len(drawn) :]
    return Parted(of_texts, of_others, digest_of(file, *others))


def _cut(titles: Sequence[str]) -> list[list[str]]:
    ends = np.rint(np.cumsum([0.0, *_SHARES.values()]) * len(titles)).astype(int)
    return [list(titles[a:b]) for a, b in pairwise(ends)]


def _sentences(paragraphs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [text for row in paragraphs for text in sentences_of(row["context"])]


def _questions(
    title: str, paragraphs: Sequence[Mapping[str, Any]]
) -> list[LabelledQuestion]:
    return [
        LabelledQuestion(case.question, references, group=title)
        for case in article_cases(title, paragraphs)
        if (references := tuple(t for t in case.references if normalised(t)))
    ]


def _with_notes(
    questions: Sequence[LabelledQuestion],
    sentences: Sequence[str],
    count: int,
    embedder: Embedder,
) -> list[LabelledQuestion]:
    unique = list(dict.fromkeys(sentences))
    texts = embedder.encode(unique)
    found = []
    for asked in questions:
        near = np.argsort(-(texts @ embedder.encode_question(asked.question)))
        notes = tuple(unique[index] for index in near[:count])
        found.append(replace(asked, notes=notes))
    return found
