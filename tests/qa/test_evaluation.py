"""Evaluating labelled questions: reading, counting, reporting, the demonstration."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from kb.demonstration.loader import load_demonstration
from qa.evaluation.cases import Case, read_cases
from qa.evaluation.demonstration import (
    QUESTIONS,
    Demonstration,
    ensure_demonstration_users,
)
from qa.evaluation.metrics import metrics_of, wilson_interval
from qa.evaluation.results import Result, evaluate
from qa.exceptions import EvaluationDataError
from qa.models import Answer
from qa.pipeline.types import Gate, Reason
from tests.factories import make_curator, make_entry, make_knowledge_base, make_user

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
        "asker": "agent",
    }
    return Case(**values | changes)


def make_result(is_answerable, is_answered, *, is_correct=None):
    return Result(
        case=make_case(is_answerable),
        answer_id="",
        is_answered=is_answered,
        gate="" if is_answered else "hard_refusal",
        reason="" if is_answered else "too_far",
        text="",
        cited=(),
        is_correct=is_correct,
        milliseconds={},
        seconds=0.1,
    )


def test_the_demonstration_shows_every_kind_of_outcome():
    cases = read_cases(QUESTIONS)

    gates = {(case.is_answerable, case.gate) for case in cases}
    assert gates >= {
        (True, None),
        (True, Gate.VERBATIM),
        (False, Gate.HARD_REFUSAL),
        (False, Gate.SOFT_REFUSAL),
    }
    assert {case.reason for case in cases} >= {
        Reason.NOTHING_KNOWN,
        Reason.TOO_FAR,
        Reason.UNVERIFIED_ONLY,
        Reason.EXPIRED_ONLY,
        Reason.NOT_ENTITLED,
    }


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["{"], "line 1"),
        ([json.dumps(LINE), json.dumps(LINE)], "line 2: the id 'a' stands twice"),
        ([json.dumps(LINE), "", "[]"], "line 3"),
        ([json.dumps(LINE | {"expect": "maybe"})], "expect must be"),
        ([json.dumps(LINE | {"gate": "none"})], "'none'"),
        ([json.dumps(LINE | {"question": " "})], "no text"),
        ([json.dumps(LINE | {"evidence": "fee"})], "no list"),
        ([json.dumps({"id": "a"})], "expect"),
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path, lines, told):
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(lines))

    with pytest.raises(EvaluationDataError, match="cases") as caught:
        read_cases(file)

    assert told in str(caught.value)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(counts):
    count, total = counts

    low, high = wilson_interval(count, total)

    reference = binomtest(count, total).proportion_ci(0.95, method="wilson")
    assert low == pytest.approx(reference.low, abs=1e-9)
    assert high == pytest.approx(reference.high, abs=1e-9)
    assert 0 <= low <= count / total <= high <= 1


@pytest.mark.parametrize(("count", "total"), [(0, 0), (2, 1), (-1, 3)])
def test_what_is_no_share_has_no_interval(count, total):
    with pytest.raises(ValueError, match="no share"):
        wilson_interval(count, total)


def test_the_rates_count_what_they_say():
    results = [
        make_result(True, True, is_correct=True),
        make_result(True, True, is_correct=True),
        make_result(True, True, is_correct=False),
        make_result(True, False),
        make_result(False, True, is_correct=False),
        make_result(False, False),
        make_result(False, False),
    ]

    metrics = metrics_of(results)

    def share(rate):
        return rate.count, rate.total

    assert share(metrics.false_answers) == (1, 3)
    assert share(metrics.false_refusals) == (1, 4)
    assert share(metrics.wrong_answers) == (2, 4)
    assert share(metrics.right) == (4, 7)
    assert share(metrics.correct) == (2, 3)


def test_nothing_counted_has_no_rate():
    metrics = metrics_of([make_result(True, False)])

    assert metrics.wrong_answers.value is None
    assert metrics.wrong_answers.interval is None
    assert metrics.false_refusals.value == 1.0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "is_right"),
    [
        ({}, True),
        ({"evidence": ("block",)}, True),
        ({"evidence": ("fee", "block")}, True),
        ({"evidence": ("fee",)}, False),
        ({"answer_contains": ("open CARDS,  block",)}, True),
        ({"answer_contains": ("12 euros",)}, False),
        ({"is_answerable": False}, False),
    ],
)
def test_an_answer_is_right_if_it_holds_and_cites_what_the_case_asks_for(
    changes, is_right
):
    entry = make_entry("Open Cards, Block.", question="How do I block a card?")
    case = make_case(question="How do I block a card?", **changes)

    (result,) = evaluate(
        [case], ask=asking_as(make_user()), key_of={entry.text: "block"}.__getitem__
    )

    assert result.is_answered
    assert result.cited == ("block",)
    assert result.is_right is is_right
    assert Answer.objects.get().channel == "evaluation"


def asking_as(user):
    from qa.services.asking import ask

    return lambda case: ask(case.question, asker=user, channel="evaluation")


@pytest.mark.django_db
def test_the_demonstration_wants_its_knowledge_base():
    make_knowledge_base("other")

    with pytest.raises(EvaluationDataError, match="load_demonstration"):
        Demonstration()


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
    suite = Demonstration()
    cases = [c for c in suite.cases if c.gate in {Gate.VERBATIM, Gate.HARD_REFUSAL}]

    results = list(evaluate(cases, ask=suite.ask, key_of=suite.key_of))

    # Thresholds are for all questions alike, so that a few may come out otherwise.
    right = [r for r in results if r.is_right and r.actual.startswith(r.expected)]
    assert len(right) >= 0.9 * len(results)
    assert all(r.is_right for r in results if r.case.is_answerable)


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
