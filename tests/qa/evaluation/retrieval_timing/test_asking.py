"""Every question is asked once, by a real model, and what it takes is counted."""

from dataclasses import dataclass, replace

import pytest

from qa.evaluation.retrieval_timing.asking import (
    answer_alone,
    answer_with_notes,
    consider_all,
)
from qa.evaluation.retrieval_timing.deciders import Undecided
from qa.evaluation.retrieval_timing.record import ALONE, WITH_NOTES, Record
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.own_knowledge.log_probability import OwnKnowledgeByDraft
from tests.probes import tiny_models
from tests.qa.evaluation.retrieval_timing.outcome_rows import make_asked
from tests.qa.values import GivenRetriever, make_evidence, make_policy, make_retrieval

ASKED = [make_asked(number) for number in range(20)]


@pytest.fixture(scope="module")
def form():
    return OwnKnowledgeForm(tiny_models.model("llama", 2_048))


@dataclass
class Told:
    """Keeps what it is told of progress."""

    last: tuple[str, int, int] = ("", 0, 0)

    def __call__(self, what: str, done: int, total: int) -> None:
        self.last = (what, done, total)


def test_answers_are_asked_once_and_read_from_the_record_afterwards(form, tmp_path):
    retriever = GivenRetriever(make_retrieval(make_evidence("Seven is a number.")))
    record = Record(tmp_path / "record.jsonl", {})
    told = Told()

    for _ in range(2):
        answer_with_notes(
            ASKED, form=form, retriever=retriever, policy=make_policy(alpha=0.4),
            record=record, on_progress=told,
        )  # fmt: skip
        answer_alone(ASKED, form=form, record=record, on_progress=told)

    rows = record.of(WITH_NOTES, form.fingerprint)
    assert len(retriever.looks) == len(rows) == len(ASKED)
    assert rows["nq-open:3"]["notes"] == ["Seven is a number."]
    assert rows["nq-open:3"]["passes"] is False  # at a distance of 0.5
    assert len(record.of(ALONE, form.fingerprint)) == len(ASKED)
    assert told.last[1:] == (20, 20)


def test_the_plain_answer_takes_one_pass_and_a_step_a_token(form, tmp_path):
    record = Record(tmp_path / "record.jsonl", {})
    undecided = Undecided(form)

    consider_all(
        "never", undecided, ASKED[:3], model=form.model, record=record,
        on_progress=Told(), answer_each=1,
    )  # fmt: skip

    for row in record.of("never", undecided.fingerprint).values():
        asked = len(form.prompt_ids(f"what is number {row['id'].split(':')[1]}"))
        assert row["decided"]["prompt_passes"] == 1
        assert row["decided"]["prompt_tokens"] == asked
        assert row["decided"]["steps"] == 0
        assert row["answered"]["prompt_passes"] == 0
        assert row["answered"]["steps"] > 0


def test_a_draft_is_paid_for_when_deciding_and_kept_for_every_question(form, tmp_path):
    record = Record(tmp_path / "record.jsonl", {})
    drafting = OwnKnowledgeByDraft(form)

    consider_all(
        "drafting", drafting, ASKED[:3], model=form.model, record=record,
        on_progress=Told(),
    )  # fmt: skip

    rows = record.of("drafting", drafting.fingerprint).values()
    assert len(rows) == 3
    for row in rows:
        assert 0 <= row["sureness"] <= 1
        assert row["decided"]["steps"] > 0
        assert row["answered"]["steps"] == 0
        assert "answer" in row


def test_going_on_is_tried_on_some_where_deciding_writes_nothing(form, tmp_path):
    record = Record(tmp_path / "record.jsonl", {})
    undecided = Undecided(form)

    consider_all(
        "reading", undecided, ASKED, model=form.model, record=record,
        on_progress=Told(),
    )  # fmt: skip

    rows = record.of("reading", undecided.fingerprint)
    assert [name for name, row in rows.items() if "answer" in row] == [
        "nq-open:0", "nq-open:8", "nq-open:16",
    ]  # fmt: skip


def test_a_broken_off_run_asks_only_what_is_missing(form, tmp_path):
    path = tmp_path / "record.jsonl"
    undecided = Undecided(form)
    consider_all(
        "never", undecided, ASKED[:2], model=form.model,
        record=Record(path, {}), on_progress=Told(),
    )  # fmt: skip
    before = path.read_text()

    consider_all(
        "never", undecided, ASKED[:3], model=form.model,
        record=Record(path, {}), on_progress=Told(),
    )  # fmt: skip

    assert path.read_text().startswith(before)
    assert len(path.read_text().splitlines()) == len(before.splitlines()) + 1


def test_a_longer_question_costs_more_tokens(form, tmp_path):
    record = Record(tmp_path / "record.jsonl", {})
    long = replace(
        ASKED[1], case=replace(ASKED[1].case, question="what " * 20 + "is it")
    )
    undecided = Undecided(form)

    consider_all(
        "never", undecided, [ASKED[0], long], model=form.model, record=record,
        on_progress=Told(),
    )  # fmt: skip

    short, longer = record.of("never", undecided.fingerprint).values()
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
