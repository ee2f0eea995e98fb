"""The figures of the comparison, by hand on questions that are made up."""

from typing import Any

import pytest

from qa.evaluation.report.tables import TextTable
from qa.exceptions import EvaluationDataError
from studies.cbdr.timing.asking import NOTHING, Cost
from studies.cbdr.timing.build import build_report
from studies.cbdr.timing.outcomes import as_published, behind_the_gates, outcomes_of
from studies.cbdr.timing.questions import Part
from studies.cbdr.timing.tables import tables, write_plots
from tests.studies.cbdr.timing.outcome_rows import make_asked, make_outcome

pytestmark = pytest.mark.slow

PUBLISHED = "as published"


def world(probability_of, *, cost=None, drafted=None):
    """Forty questions a part; the model knows the first ten, notes help the next ten."""
    return [
        make_outcome(
            100 * place + n,
            probability_of(n),
            alone=n < 10,
            with_notes=10 <= n < 20,
            part=part,
            decided=cost,
            drafted=drafted,
        )
        for place, part in enumerate((Part.CALIBRATION, Part.TEST))
        for n in range(40)
    ]


def clairvoyant(n):
    return 0.9 if n < 10 else 0.1


def mistaken(n):
    return 0.1 if n < 10 else 0.9


PLAIN = world(lambda _n: None, drafted=Cost(100.0, 0.0, 0.0, 4.0))


def report(**deciders):
    return build_report(deciders, PLAIN, within=0.0)


def line(account, name):
    return next(row for row in account["table"] if row["decider"] == name)


def test_a_threshold_is_chosen_on_one_part_and_judged_on_the_other():
    found = report(seer=world(clairvoyant))

    account = found["accounts"][PUBLISHED]
    assert (found["calibration"], found["test"]) == (40, 40)
    seer = line(account, "seer")
    assert seer["threshold"] == 0.9
    assert seer["retrieval_rate"] == pytest.approx(0.75)
    assert seer["accuracy"] == pytest.approx(0.5)
    assert line(account, "never")["accuracy"] == pytest.approx(0.25)
    assert line(account, "always")["accuracy"] == pytest.approx(0.25)
    assert account["oracle"]["accuracy"] == pytest.approx(0.5)
    assert account["oracle"]["retrieval_rate"] == pytest.approx(0.25)


def test_a_difference_has_its_interval_and_the_questions_that_only_one_got():
    against = line(report(seer=world(clairvoyant))["accounts"][PUBLISHED], "seer")[
        "against_never"
    ]

    assert against["difference"] == pytest.approx(0.25)
    assert (against["only_first"], against["only_second"]) == (0, 10)
    low, high = against["difference_95"]
    assert 0 < low < 0.25 < high
    assert against["p_value"] == pytest.approx(2 / 2**10)


def test_who_is_ahead_at_an_equal_rate_is_told_after_correction():
    found = report(seer=world(clairvoyant), fool=world(mistaken))

    pairs = found["accounts"][PUBLISHED]["equal_rates"]
    at = {(p["first"], p["second"], p["retrieval_rate"]): p for p in pairs}
    pair = at["seer", "fool", 0.75]
    assert pair["ahead"] == "seer"
    assert pair["p_holm"] >= pair["p_value"]
    assert len(pairs) == 9  # three pairs, chance among them, at three rates


def test_the_area_is_above_chance_for_who_knows_and_below_for_who_errs():
    areas = report(seer=world(clairvoyant), fool=world(mistaken))["accounts"][
        PUBLISHED
    ]["areas"]

    assert areas["seer"]["above_chance_95"][0] > 0
    assert areas["fool"]["above_chance_95"][1] < 0
    assert areas["chance"]["area"] == pytest.approx(0.25)
    assert areas["chance"]["above_chance"] == 0


def test_cost_is_what_deciding_takes_beyond_the_answer_itself():
    reading, writing = Cost(10.0, 1.0, 20.0, 0.0), Cost(100.0, 0.0, 0.0, 4.0)
    rows = world(clairvoyant, cost=reading, drafted=writing)

    cost = line(report(seer=rows)["accounts"][PUBLISHED], "seer")["cost"]

    # Three in four retrieve, and have read in vain; the fourth goes on for nothing more.
    assert cost["prompt_passes"] == pytest.approx(0.75)
    assert cost["prompt_tokens"] == pytest.approx(15.0)
    assert cost["milliseconds"] == pytest.approx(7.5)
    assert cost["steps"] == pytest.approx(0.0)


def test_behind_the_gates_a_refusal_is_right_where_nobody_can_answer():
    far = make_outcome(1, 0.5, alone=False, with_notes=True, passes=False)
    nonsense = make_outcome(
        2, 0.5, alone=False, with_notes=False, passes=False, is_answerable=False
    )

    assert as_published(far)
    assert not behind_the_gates(far)
    assert not as_published(nonsense)
    assert behind_the_gates(nonsense)


def test_an_entry_that_is_asked_is_answered_word_for_word_behind_the_gates():
    misread = make_outcome(1, 0.5, alone=False, with_notes=False, verbatim=True)
    other = make_outcome(2, 0.5, alone=False, with_notes=True, verbatim=False)

    assert not as_published(misread)
    assert behind_the_gates(misread)
    assert not behind_the_gates(other)


def test_rows_are_joined_by_id_and_what_was_not_tried_costs_nothing():
    asked = [make_asked(1), make_asked(2)]
    one, two = (question.case.id for question in asked)
    cost = {"milliseconds": 1.0, "prompt_passes": 1, "prompt_tokens": 9, "steps": 0}
    notes = {
        name: {"answer": "answer 1", "passes": True, "verbatim": None}
        for name in (two, one)
    }
    alone = {name: {"answer": "answer 2"} for name in (two, one)}
    considered: dict[str, dict[str, Any]] = {
        two: {"sureness": 0.5, "decided": cost, "answer": "x", "answered": cost}
    }

    first, second = outcomes_of(asked, notes, alone, considered)

    assert (first.alone, first.with_notes) == (False, True)
    assert (first.known_probability, first.decided, first.drafted) == (
        None,
        NOTHING,
        None,
    )
    assert (second.alone, second.with_notes) == (True, False)
    assert (second.known_probability, second.decided, second.drafted) == (
        0.5, Cost(**cost), Cost(**cost),
    )  # fmt: skip


def test_without_questions_to_choose_by_there_is_no_report():
    tested = [row for row in PLAIN if row.asked.part is Part.TEST]

    with pytest.raises(EvaluationDataError, match="too few"):
        build_report({"seer": tested}, tested, within=0.0)


def test_tables_and_pictures_show_every_decider(tmp_path):
    figures = report(seer=world(clairvoyant), fool=world(mistaken))

    shown: list[TextTable] = list(tables(figures))
    files = write_plots(figures, tmp_path)

    first = shown[0]
    assert [row[0] for row in first.rows] == [
        "never",
        "always",
        "seer",
        "fool",
        "oracle",
    ]
    assert {len(row) for row in first.rows} == {len(first.columns)}
    assert any(
        "fool" in cell for row in shown[3].rows for cell in row if row[0] == "seer"
    )
    svgs = [file.read_text() for file in files if file.suffix == ".svg"]
    assert len(svgs) == 2
    assert all("seer" in svg and "<desc" in svg for svg in svgs)
