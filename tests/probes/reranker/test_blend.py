"""A reranker of three weights learns what helps, and begins with the order found."""

import json

import numpy as np
import pytest

from probes.cards import ProbeKind
from probes.exceptions import ProbeFileError, TooFewLabelsError
from probes.reranker.blend import (
    Blend,
    Ranked,
    blend_files,
    blend_from,
    fit_blend,
    recall_at,
)
from tests.probes.probe_files import reranker_card


def ranked(count, *, by_logit=True, last=4):
    """Return questions of five notes whose last one helps, and has a logit if wanted."""
    random = np.random.default_rng(1)
    found = []
    for number in range(count):
        measured = random.normal(size=(5, 2))
        measured[last, 0] += 4.0 if by_logit else 0.0
        helps = np.arange(5) == last
        found.append(Ranked(measured, helps, f"g{number}"))
    return found


def test_what_the_verifier_prefers_is_learnt_and_raises_recall():
    questions = ranked(60)

    blend = fit_blend(questions)

    assert blend.logit > 0
    assert recall_at(None, questions, 3).mean() == 0.0
    assert recall_at(blend, questions, 3).mean() > 0.9


def test_the_order_found_stays_where_the_first_note_helps_anyway():
    blend = fit_blend(ranked(60, by_logit=False, last=0))
    random = np.random.default_rng(2)

    for _ in range(20):
        scores = blend.scores(random.normal(scale=0.1, size=(5, 2)))
        assert scores.argmax() == 0


def test_questions_whose_notes_are_all_alike_teach_nothing():
    alike = [
        Ranked(np.zeros((3, 2)), np.full(3, helps), "g")
        for helps in (True, False)
        for _ in range(40)
    ]

    with pytest.raises(TooFewLabelsError, match="19 questions have both helpful"):
        fit_blend([*alike, *ranked(19)])


def test_its_files_are_read_as_they_were_written_and_no_others():
    blend = Blend(1.5, -0.25, 0.75)
    card = reranker_card()
    files = blend_files(blend, card)

    assert blend_from(files, language_model=card.language_model) == blend
    assert files.checked().kind is ProbeKind.RERANKER
    assert json.loads(files.weights) == {"logit": 1.5, "nearness": -0.25, "order": 0.75}
    broken = blend_files(Blend(float(1), 0.0, 0.0), card)
    object.__setattr__(broken, "weights", b"{}")
    with pytest.raises(ProbeFileError, match="not those that were saved"):
        blend_from(broken, language_model=card.language_model)
