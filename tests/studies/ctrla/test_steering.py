"""Choices under steering, and how strengths are compared."""

import json

import pytest
from django.core.management import CommandError, call_command

from probes.models import Probe
from probes.services import promote, register
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.policy_models import load_closed_book_form
from studies.ctrla.steering import Command, chosen_under, steering_table, strengths_of
from studies.l2r.questions import ChoiceQuestion
from tests.probes import tiny_models
from tests.probes.direction_files import (
    direction_probe_files,
    made_directions,
    random_directions,
)

# Of one length: a longer one is less likely whatever it says.
OPTIONS = ("planet", "meteor", "galaxy")


def question(number: int) -> ChoiceQuestion:
    return ChoiceQuestion(
        str(number), "", f"What is it, {number}?", OPTIONS, (number % 3,),
        several=False, scored=(),
    )  # fmt: skip


def test_the_likeliest_option_in_sum_is_chosen():
    model = tiny_models.model("llama", 2_048)
    questions = [question(number) for number in range(6)]

    found = chosen_under(model, made_directions(), questions, [0.0, 3.0])

    form = ClosedBookForm(model)
    for place, asked in enumerate(questions):
        context = form.open(asked.question)
        options = [model.tokens.encode_text(f" {option}") for option in OPTIONS]
        totals = [scored.total for scored in model.score_all(options, context)]
        assert found[0.0][place] == (totals.index(max(totals)) in asked.correct)
    assert {len(right) for right in found.values()} == {6}


def test_steering_is_really_applied():
    model = tiny_models.model("llama", 2_048)
    questions = [question(number) for number in range(12)]

    found = chosen_under(model, made_directions(), questions, [0.0, 50.0, -50.0])

    assert found[-50.0] != found[50.0]


def test_strengths_are_compared_question_by_question():
    plain = [True] * 10 + [False] * 10
    better = [True] * 18 + [False] * 2

    none, more = strengths_of({0.5: better, 0.0: plain})

    assert (none.strength, none.right.count, none.p_value) == (0.0, 10, 1.0)
    assert more.difference.value == pytest.approx(0.4)
    assert more.difference.interval is not None
    assert more.difference.interval[0] > 0
    # Eight gained, none lost: 2 / 2^8.
    assert more.p_value == pytest.approx(2 / 256)
    rows = steering_table([none, more]).rows
    assert rows[0][:2] == ("+0", "50.0 %")
    assert rows[1][3] == "+40.0"


@pytest.mark.django_db
def test_the_command_prints_every_strength(tmp_path, capsys, settings):
    settings.LANGUAGE_MODEL = "bundled"
    file = tmp_path / "mc_task_random.json"
    rows = [
        {
            "question": f"What is the capital of France, {number}?",
            "mc1_targets": {"Paris": 1, "Rome": 0},
            "mc2_targets": {"Paris": 1, "Rome": 0},
        }
        for number in range(3)
    ]
    file.write_text(json.dumps(rows))
    with pytest.raises(CommandError, match="train directions"):
        call_command(Command(), "--data", str(file))
    probe = register(
        direction_probe_files(random_directions(load_closed_book_form().model))
    )
    promote(probe.pk, Probe.State.ACTIVE, by=None)

    call_command(Command(), "--data", str(file), "--strengths", "0.1", "--limit", "2")  # fmt: skip

    said = capsys.readouterr().out
    assert "+0.1" in said
    assert "100.0 %" in said
