"""Questions of both kinds are parted, and the monitor tells them on others."""

import json

import pytest
from django.core.management import CommandError, call_command

from probes.models import Probe
from probes.services import promote, register
from qa.evaluation.cases import Case
from qa.exceptions import EvaluationDataError
from qa.inference.policy_models import load_closed_book_form
from studies.ctrla.self_knowledge import Command, parted
from tests.probes.direction_files import direction_probe_files, random_directions

pytestmark = pytest.mark.slow


def test_both_parts_hold_as_many_of_each_kind_and_no_question_twice():
    cases = [Case(str(n), f"{n}?", is_answerable=n % 3 > 0) for n in range(18)]

    parts = parted(cases, 3, seed=1)

    for part in parts:
        assert [case.is_answerable for case in part] == [True] * 3 + [False] * 3
    assert len({case.id for part in parts for case in part}) == 12
    with pytest.raises(EvaluationDataError, match="at most 3"):
        parted(cases, 4, seed=1)


@pytest.mark.django_db
def test_the_command_runs_on_the_bundled_model(tmp_path, capsys, settings):
    settings.LANGUAGE_MODEL = "bundled"
    selfaware = tmp_path / "SelfAware.json"
    rows = [
        {"question_id": n, "question": f"What is {n}?", "answer": ["x"] if n % 2 else None, "answerable": bool(n % 2), "source": ""}
        for n in range(8)
    ]  # fmt: skip
    selfaware.write_text(json.dumps({"example": rows}))
    probe = register(
        direction_probe_files(random_directions(load_closed_book_form().model))
    )
    promote(probe.pk, Probe.State.ACTIVE, by=None)

    call_command(Command(), "--data", str(selfaware), "--questions", "2", "--steering", "0.1")  # fmt: skip
    said = capsys.readouterr().out
    with pytest.raises(CommandError, match="at most 2") as refused:
        call_command(Command(), "--data", str(selfaware), "--questions", "3")

    assert refused.value.returncode == 2
    assert "answerable let pass" in said
    assert "of 2 (" in said
