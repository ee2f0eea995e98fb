"""A boundary probe that is fitted in the run, once."""

import pytest

from probes.exceptions import TooFewLabelsError
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.known_by_probe import SelfKnowledgeByProbe
from qa.pipeline.values import Question
from studies.cbdr.timing.deciders import prompts_of, taught_probe, with_notes_too
from tests.probes import tiny_models
from tests.studies.cbdr.timing.outcome_rows import make_asked

pytestmark = pytest.mark.slow

TAUGHT = [make_asked(number) for number in range(400)]


def ignore(_what: str, _done: int, _total: int) -> None:
    """Tell nobody."""


@pytest.fixture(scope="module")
def form():
    return ClosedBookForm(tiny_models.model("llama", 2_048))


@pytest.fixture(scope="module")
def prompts():
    alone = {
        one.case.id: {"answer": f"answer {n}" if n % 2 else "no idea"}
        for n, one in enumerate(TAUGHT)
    }
    helped = {
        one.case.id: {"answer": "answer 0", "notes": ["It is answer 0."]}
        for one in with_notes_too(TAUGHT)
    }
    return prompts_of(TAUGHT, alone, helped)


def test_some_of_the_questions_are_there_with_notes_too(prompts):
    with_notes = [row for row in prompts if row.prompt.notes]

    assert len(with_notes) == len(TAUGHT) / 8
    assert len(prompts) - len(with_notes) == len(TAUGHT)
    rights = [row.is_right for row in prompts if not row.prompt.notes]
    assert rights == [number % 2 == 1 for number in range(len(TAUGHT))]
    assert sum(row.is_right for row in with_notes) == 1
    groups = {row.prompt.group for row in prompts}
    assert len(groups) == len(
        TAUGHT
    )  # with notes or without, one question is one group


def test_a_probe_is_fitted_once_tells_a_number_and_is_of_its_answers(
    form, prompts, tmp_path
):
    first = taught_probe(form, prompts, tmp_path, on_progress=ignore)
    card = next(tmp_path.glob("boundary-*/probe.json"))
    written = card.stat().st_mtime_ns

    again = taught_probe(form, prompts, tmp_path, on_progress=ignore)
    other = taught_probe(form, prompts[:-1], tmp_path, on_progress=ignore)

    assert again.fingerprint == first.fingerprint != other.fingerprint
    assert card.stat().st_mtime_ns == written
    considered = SelfKnowledgeByProbe(form, again).consider(Question("what is it"))
    assert considered.known_probability is not None
    assert 0 <= considered.known_probability <= 1


def test_too_few_answers_are_refused_and_leave_nothing(form, prompts, tmp_path):
    with pytest.raises(TooFewLabelsError):
        taught_probe(form, prompts[:10], tmp_path, on_progress=ignore)

    assert list(tmp_path.iterdir()) == []
