"""Every question is asked once, by a real model, and what it takes is counted."""

from dataclasses import dataclass, replace

import pytest

from qa.inference.closed_book_form import ClosedBookForm, SelfKnowledgeByDraft
from studies.cbdr.timing.asking import Asker, Record
from studies.cbdr.timing.deciders import Undecided
from tests.probes import tiny_models
from tests.qa.pipeline.values import (
    GivenRetriever,
    make_evidence,
    make_policy,
    make_retrieval,
)
from tests.studies.cbdr.timing.outcome_rows import make_asked

ASKED = [make_asked(number) for number in range(20)]
IDS = frozenset(one.case.id for one in ASKED)


@pytest.fixture(scope="module")
def form():
    return ClosedBookForm(tiny_models.model("llama", 2_048))


@dataclass
class Told:
    """Keeps what it is told of progress."""

    last: tuple[str, int, int] = ("", 0, 0)

    def __call__(self, what: str, done: int, total: int) -> None:
        self.last = (what, done, total)


@pytest.fixture
def record(tmp_path):
    return Record(tmp_path / "record.jsonl", {})


@pytest.fixture
def asker(form, record):
    return Asker(form, record, Told())


def test_answers_are_asked_once_and_read_from_the_record_afterwards(form, record):
    retriever = GivenRetriever(make_retrieval(make_evidence("Seven is a number.")))
    told = Told()
    asker = Asker(form, record, told)
    policy = make_policy(alpha=0.4)

    first = asker.with_notes(ASKED, retriever=retriever, policy=policy)
    again = asker.with_notes(ASKED, retriever=retriever, policy=policy)

    assert first == again
    assert len(retriever.looks) == len(first) == len(ASKED)
    assert first["nq-open:3"]["notes"] == ["Seven is a number."]
    assert first["nq-open:3"]["passes"] is False  # at a distance of 0.5
    assert first["nq-open:3"]["verbatim"] is None
    assert told.last == ("Asking: with notes", 20, 20)
    assert len(asker.alone(ASKED)) == len(ASKED)


def test_the_plain_answer_takes_one_pass_and_a_step_a_token(form, asker):
    rows = asker.considered("never", Undecided(form), ASKED[:3], tried=IDS)

    for row in rows.values():
        asked = len(form.prompt_ids(f"what is number {row['id'].split(':')[1]}"))
        assert row["decided"]["prompt_passes"] == 1
        assert row["decided"]["prompt_tokens"] == asked
        assert row["decided"]["steps"] == 0
        assert row["answered"]["prompt_passes"] == 0
        assert row["answered"]["steps"] > 0


def test_a_draft_is_paid_for_when_deciding_and_not_again(form, asker):
    drafting = SelfKnowledgeByDraft(form)

    rows = asker.considered("drafting", drafting, ASKED[:3], tried=IDS).values()

    assert len(rows) == 3
    for row in rows:
        assert 0 <= row["sureness"] <= 1
        assert row["decided"]["steps"] > 0
        assert row["answered"]["steps"] == 0


def test_going_on_is_tried_on_those_that_are_named(form, asker):
    rows = asker.considered(
        "reading", Undecided(form), ASKED[:4], tried={"nq-open:0", "nq-open:2"}
    )

    gone_on = [name for name, row in rows.items() if "answered" in row]
    assert gone_on == ["nq-open:0", "nq-open:2"]
    assert len(rows) == 4


def test_a_broken_off_run_asks_only_what_is_missing(form, tmp_path):
    path = tmp_path / "record.jsonl"
    undecided = Undecided(form)
    asker = Asker(form, Record(path, {}), Told())
    asker.considered("never", undecided, ASKED[:2], tried=IDS)
    before = path.read_text()

    again = Asker(form, Record(path, {}), Told())
    again.considered("never", undecided, ASKED[:3], tried=IDS)

    assert path.read_text().startswith(before)
    assert len(path.read_text().splitlines()) == len(before.splitlines()) + 1


def test_a_longer_question_costs_more_tokens(form, asker):
    long = replace(
        ASKED[1], case=replace(ASKED[1].case, question="what " * 20 + "is it")
    )

    rows = asker.considered("never", Undecided(form), [ASKED[0], long], tried=())

    short, longer = rows.values()
    assert longer["decided"]["prompt_tokens"] > short["decided"]["prompt_tokens"]


def test_answers_side_by_side_are_those_of_one_at_a_time(form):
    questions = [one.case.question for one in ASKED[:3]]
    notes = [["Seven is a number."], [], ["It is one.", "It is not two."]]

    together = form.write_each(questions, notes)

    alone = [
        form.write(form.model.read(form.prompt_ids(q, own), form.prefix())).text.strip()
        for q, own in zip(questions, notes, strict=True)
    ]
    assert together == alone
