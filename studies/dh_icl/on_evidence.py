"""Verdicts on whether a sentence answers a question, with and without history.

The sentence is the one of the question's own paragraph that is nearest to the question,
as search would find it; it answers if it contains a marked answer. The history is of
other articles. No article that the language model's adapter was fitted on is used.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.embedding.embedder import Embedder
from qa.evaluation.cases import Case, sample
from qa.evaluation.metrics.text import contains_gold
from qa.evaluation.report.tables import TextTable
from qa.evaluation.suites.options import find_file, misread
from qa.evaluation.suites.question_sets import FILES, NAME, article_cases, read_articles
from qa.inference.by_history import VERDICTS_SHOWN, VerdictForm
from qa.inference.evidence_text import flatten, sentence_spans
from qa.inference.label_judge import LabelJudgement, LabelPair
from qa.pipeline.history import JudgedQuestion
from qa.pipeline.language_model import LanguageModel, Prompt
from qa.training.labels import piece_of
from studies.study import Claim, OnProgress

from .figures import MIDDLE, accuracy_gained, area_of, difference, figures
from .judging import nearest_of


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceVerdicts:
    """The verdicts on each question and its sentence, each a probability in [0, 1].

    Attributes:
        is_right: Whether the sentence answers the question.
        own: The language model's own verdict.
        by_form: Verdicts by the examples shown and whether they were corrected.
    """

    is_right: NDArray[np.bool_]
    own: NDArray[np.float64]
    by_form: dict[tuple[str, bool], NDArray[np.float64]]


def draw_on_evidence(
    data: Path,
    embedder: Embedder,
    *,
    asked: int,
    history: int,
    seed: int,
    without: Collection[str],
) -> tuple[list[JudgedQuestion], list[JudgedQuestion]]:
    """Return questions to judge, and questions on other articles as their history.

    Args:
        without: Articles to leave out.
    """
    file = find_file(NAME, data, *FILES)
    articles = {t: r for t, r in read_articles(file).items() if t not in without}
    rows: dict[str, tuple[Case, str]] = {}
    try:
        for title, paragraphs in articles.items():
            for paragraph in paragraphs:
                for case in article_cases(title, [paragraph]):
                    rows[case.id] = case, paragraph["context"]
    except (KeyError, TypeError) as error:
        raise misread(file, "SQuAD 2.0") from error
    titles = sorted(articles)
    parts = []
    for part, count in ((titles[::2], asked), (titles[1::2], history)):
        cases = [case for case, _ in rows.values() if case.group in part]
        drawn = sample(cases, count, seed=seed)
        parts.append(_judged(drawn, [rows[c.id][1] for c in drawn], embedder))
    return parts[0], parts[1]


def judge_on_evidence(
    language_model: LanguageModel,
    form: VerdictForm,
    embedder: Embedder,
    asked: Sequence[JudgedQuestion],
    history: Sequence[JudgedQuestion],
    progress: OnProgress,
) -> EvidenceVerdicts:
    """Have the language model and the form judge each question and its sentence."""
    nearest = nearest_of(
        embedder.encode([each.question for each in asked]),
        embedder.encode([each.question for each in history]),
    )[:, :VERDICTS_SHOWN]
    own: list[float] = []
    found: dict[str, list[LabelJudgement]] = {"fixed examples": [], "past verdicts": []}
    for number, (each, places) in enumerate(zip(asked, nearest, strict=True)):
        progress("verdicts on evidence", number, len(asked))
        prompt = Prompt(each.question, (piece_of("", each.note),), "en")
        own.append(language_model.generate(prompt).verdict_probability or 0.0)
        past = [history[place] for place in places]
        found["fixed examples"].append(form.judge(each.question, each.note))
        found["past verdicts"].append(form.judge(each.question, each.note, past))
    progress("verdicts on evidence", len(asked), len(asked))
    by_form: dict[tuple[str, bool], NDArray[np.float64]] = {}
    for shown, judged in found.items():
        by_form[shown, False] = np.array([each.uncorrected for each in judged])
        by_form[shown, True] = np.array([each.known for each in judged])
    right = np.array([each.can_be_answered for each in asked])
    return EvidenceVerdicts(right, np.array(own), by_form)


def evidence_tables(
    verdicts: EvidenceVerdicts, labels: LabelPair
) -> tuple[TextTable, ...]:
    """Return the tables of every verdict and of the paired differences."""
    ways = {"the model's own verdict": verdicts.own}
    for (shown, is_corrected), scores in verdicts.by_form.items():
        ways[f"{shown}, {'corrected' if is_corrected else 'as they are'}"] = scores
    right, last = verdicts.is_right, [*ways.values()][-1]
    return (
        TextTable(
            f"Does the evidence answer? {len(right)} questions, "
            f"{right.mean():.0%} answered by their sentence; labels {labels}",
            ("verdict by", "says yes", "accuracy", "balanced", "AUROC"),
            tuple(
                (name, f"{(scores >= MIDDLE).mean():.2f}", *figures(scores, right))
                for name, scores in ways.items()
            ),
        ),
        TextTable(
            "Past verdicts, corrected, against the others",
            ("against", "accuracy", "p", "AUROC"),
            tuple(
                (name, *difference(scores, last, right))
                for name, scores in ways.items()
                if scores is not last
            ),
        ),
    )


def evidence_claim(verdicts: EvidenceVerdicts) -> Claim:
    """Return the accuracy gain of corrected past verdicts over the model's own."""
    last = [*verdicts.by_form.values()][-1]
    found = accuracy_gained(verdicts.own, last, verdicts.is_right)
    return Claim(
        "DH-ICL: past verdicts, corrected, against the model's own, on evidence",
        "section 3.3",
        found.value,
        found.interval,
        len(verdicts.is_right),
        f"AUROC {area_of(last, verdicts.is_right)} against "
        f"{area_of(verdicts.own, verdicts.is_right)} of the model's own verdict.",
    )


def _judged(
    cases: Sequence[Case], paragraphs: Sequence[str], embedder: Embedder
) -> list[JudgedQuestion]:
    """Pair each question with the sentence of its paragraph that is nearest to it."""
    vectors = embedder.encode([case.question for case in cases])
    found = []
    for case, paragraph, vector in zip(cases, paragraphs, vectors, strict=True):
        text = flatten(paragraph)
        sentences = [text[start:end] for start, end in sentence_spans(text)]
        note = sentences[int((embedder.encode(sentences) @ vector).argmax())]
        answers = contains_gold(note, case.references) == 1.0
        found.append(JudgedQuestion(case.question, note, answers, case.id))
    return found
