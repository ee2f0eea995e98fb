"""Evaluating labelled questions: reading, counting, reporting, the demonstration."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from kb.demonstration import load_demonstration
from qa.evaluation.cases import Case, read_cases
from qa.evaluation.judging import Draft, by_expectation
from qa.evaluation.report.build import build_report
from qa.evaluation.suites.own import QUESTIONS, ensure_demonstration_users
from qa.evaluation.suites.registry import open_suite
from qa.exceptions import EvaluationDataError
from qa.models import Answer
from qa.pipeline.gates import Gate, Reason
from tests.factories import make_curator, make_knowledge_base
from tests.qa.evaluation.opening import asked_suite

pytestmark = pytest.mark.slow

LINE = {"id": "a", "question": "Why?", "expect": "refused", "as": "agent"}


def make_case(is_answerable=True, **changes):
    values = {
        "id": "a",
        "question": "Why?",
        "is_answerable": is_answerable,
        "gate": None,
        "reason": None,
        "evidence": (),
        "answer_contains": (),
        "asker": ("agent",),
    }
    return Case(**values | changes)


def test_the_demonstration_shows_every_kind_of_outcome():
    cases = read_cases(QUESTIONS)

    gates = {(case.is_answerable, case.gate) for case in cases}
    assert gates >= {
        (True, None),
        (True, Gate.VERBATIM),
        (False, Gate.HARD_REFUSAL),
        (False, Gate.ENTRY),
    }
    assert {case.reason for case in cases} >= {
        Reason.NOTHING_KNOWN,
        Reason.NOT_ANSWERED,
        Reason.UNVERIFIED_ONLY,
        Reason.EXPIRED_ONLY,
        Reason.NOT_ENTITLED,
    }


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["{"], "line 1"),
        ([json.dumps(LINE), json.dumps(LINE)], "line 2: the id 'a' occurs twice"),
        ([json.dumps(LINE), "", "[]"], "line 3"),
        ([json.dumps(LINE | {"expect": "maybe"})], "expect must be"),
        ([json.dumps(LINE | {"gate": "none"})], "'none'"),
        ([json.dumps(LINE | {"question": " "})], "not a text"),
        ([json.dumps(LINE | {"evidence": "fee"})], "not a list"),
        ([json.dumps({"id": "a"})], "expect"),
        (
            [json.dumps(LINE), json.dumps(LINE | {"id": "a" * 201})],
            "line 2: ValueError('id has 201 characters and may have 200",
        ),
        ([json.dumps(LINE | {"group": "a" * 5_000})], "group has 5,000 characters"),
        ([json.dumps(LINE | {"group": "a\0"})], "group contains characters"),
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path, lines, told):
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(lines))

    with pytest.raises(EvaluationDataError, match="cases") as caught:
        read_cases(file)

    assert told in str(caught.value)


@pytest.mark.django_db
def test_a_key_of_a_fact_that_is_too_long_is_named_with_its_line(tmp_path):
    questions, facts = tmp_path / "questions.jsonl", tmp_path / "facts.jsonl"
    questions.write_text(json.dumps({**LINE, "as": ""}))
    rows = [{"text": "A card costs 12 euros."}, {"text": "Open.", "key": "a" * 201}]
    facts.write_text("\n".join(map(json.dumps, rows)))

    with pytest.raises(
        EvaluationDataError, match=r"facts.jsonl, line 2: .*key has 201"
    ):
        open_suite("own", data=questions, knowledge=facts)


@pytest.mark.parametrize(
    ("changes", "is_correct"),
    [
        ({}, True),
        ({"evidence": ("block",)}, True),
        ({"evidence": ("fee", "block")}, True),
        ({"evidence": ("fee",)}, False),
        ({"answer_contains": ("open CARDS,  block",)}, True),
        ({"answer_contains": ("12 euros",)}, False),
        ({"references": ("the block",)}, True),
        ({"references": ("12 euros",)}, False),
        ({"is_answerable": False}, False),
    ],
)
def test_an_answer_is_right_if_it_holds_and_cites_what_the_case_asks_for(
    changes, is_correct
):
    draft = Draft("Open Cards, Block.", ("block",))

    assert by_expectation(make_case(**changes), draft).is_correct is is_correct


@pytest.mark.django_db
def test_the_demonstration_wants_its_knowledge_base():
    make_knowledge_base("other")

    with pytest.raises(EvaluationDataError, match="load_demonstration"):
        open_suite("demo")


@pytest.mark.django_db
def test_the_demonstration_users_see_what_their_desk_sees():
    users = ensure_demonstration_users()

    assert users == ensure_demonstration_users()
    assert {name: sorted(user.groups.values_list("name", flat=True)) for name, user in users.items()} == {
        "agent": ["agent"],
        "fraud": ["agent", "fraud-desk"],
        "lead": ["agent", "team-leads"],
    }  # fmt: skip
    assert not any(user.has_usable_password() for user in users.values())


@pytest.mark.django_db
def test_the_verbatim_and_the_hard_refused_questions_of_the_demonstration_are_right():
    load_demonstration(author=make_curator())
    suite = asked_suite("demo")
    cases = [c for c in suite.cases if c.gate in {Gate.VERBATIM, Gate.HARD_REFUSAL}]

    judged = [suite.judge(case.id) for case in cases]

    # Thresholds are for all questions alike, so that a few may come out otherwise.
    assert sum(row.measures["expected_gate"] for row in judged) >= 0.9 * len(cases)
    due = [row for row in judged if row.is_answerable]
    assert due
    assert all(row.is_answered and row.is_correct for row in due)
    assert {a.channel for a in Answer.objects.all()} == {"evaluation"}
    assert Answer.objects.count() == len(cases)


@pytest.mark.django_db
def test_a_report_does_not_tell_of_what_its_asker_may_not_see():
    load_demonstration(author=make_curator())
    suite = asked_suite("demo")
    hidden = [case.id for case in suite.cases if case.reason is Reason.NOT_ENTITLED]

    rows = [suite.judge(case_id) for case_id in hidden]

    found = Answer.objects.in_bulk([row.answer_id for row in rows])
    assert "not_entitled" in {answer.reason for answer in found.values()}
    report = json.dumps(build_report(rows, policy=suite.policy.as_value()))
    assert "not_entitled" not in report
    assert "expected_reason" not in report
    assert {row.reason for row in rows} == {a.shown_reason for a in found.values()}


def run_command(*arguments):
    out = StringIO()
    call_command("evaluate", "demo", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


@pytest.mark.django_db
def test_the_command_prints_and_writes_the_rates(tmp_path):
    load_demonstration(author=make_curator())
    file = tmp_path / "report.json"

    printed = run_command("--limit", "3", "--json", str(file))

    report = json.loads(file.read_text())
    assert report["questions"] == 3
    assert set(report["results"]) == {"demo-01", "demo-02", "demo-03"}
    assert report["rates"]["right"] == {
        "count": 3,
        "of": 3,
        "rate": 1.0,
        "wilson_95": pytest.approx([0.4385, 1.0], abs=1e-4),
    }
    assert "false answers" in printed
    assert "false refusals" in printed


@pytest.mark.django_db
def test_fail_over_turns_rates_into_an_exit_code():
    # The knowledge base knows nothing, so every answerable question is refused.
    make_knowledge_base("cards")

    run_command("--limit", "2", "--fail-over", "1")
    with pytest.raises(CommandError, match=r"false refusals 1\.000") as caught:
        run_command("--limit", "2", "--fail-over", "0.5")

    assert caught.value.returncode == 1


@pytest.mark.django_db
def test_a_suite_that_cannot_be_run_is_an_error_of_its_own():
    with pytest.raises(CommandError, match="load_demonstration") as caught:
        run_command()

    assert caught.value.returncode == 2
