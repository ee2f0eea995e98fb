"""`manage.py calibrate thresholds`: the certificate or why none, and the exit code."""

import json

import pytest
from django.core.management import CommandError, call_command

from qa.management.commands.calibrate import with_default
from qa.models import Certificate, Policy
from qa.policies.services import active_policy, ensure_default_policy, new_version
from tests.factories import make_knowledge_base
from tests.qa.calibration.runs import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def policy() -> Policy:
    return ensure_default_policy(make_knowledge_base())


def test_it_prints_the_promise_and_keeps_the_version(policy, capsys, tmp_path):
    run, path = make_run(policy), tmp_path / "found.json"

    call_command(
        "calibrate", "thresholds", run=run.pk, epsilon=0.15, name="careful", json=path
    )

    kept = Certificate.objects.get()
    said = capsys.readouterr().out
    assert "At most 15.0% wrong, 95% certain" in said
    assert f"alpha = {kept.policy.alpha:g}" in said
    assert "by question, and" in said
    assert "by group of questions" in said
    assert "Warning:" in said
    assert "careful v1" in said
    assert "waits to be activated" in said
    assert active_policy(policy.knowledge_base) == policy
    written = json.loads(path.read_text())
    assert written["certified"]
    assert written["thresholds"] == kept.thresholds
    assert written["bound"] == kept.bound


def test_it_activates_where_it_is_told_to(policy, capsys):
    call_command(
        "calibrate", "thresholds", run=make_run(policy).pk, epsilon=0.15, activate=True
    )

    assert active_policy(policy.knowledge_base).certificate.epsilon == 0.15
    assert "is active now" in capsys.readouterr().out


def test_none_earned_is_exit_code_3_with_the_reason(policy, capsys, tmp_path):
    run, path = make_run(policy, 60), tmp_path / "found.json"
    before = Policy.objects.count()

    with pytest.raises(CommandError, match="No certificate was earned") as raised:
        call_command("calibrate", "thresholds", run=run.pk, activate=True, json=path)

    assert raised.value.returncode == 3
    assert "it takes 59 shown ones" in capsys.readouterr().out
    assert Policy.objects.count() == before
    written = json.loads(path.read_text())
    assert (written["certified"], written["needed"]) == (False, 59)


def test_chosen_signals_alone_are_calibrated(policy):
    call_command(
        "calibrate",
        "thresholds",
        "--run", str(make_run(policy).pk),
        "--epsilon", "0.2",
        "--signals", "verified_ratio",
    )  # fmt: skip

    kept = Certificate.objects.get()
    assert kept.thresholds.keys() == {"alpha"}
    assert kept.policy.min_verdict == policy.min_verdict


def test_costs_make_a_version_without_a_promise(policy, capsys, tmp_path):
    path = tmp_path / "found.json"
    call_command(
        "calibrate",
        "thresholds",
        run=make_run(policy).pk,
        cost_wrong=5.0,
        cost_refused=1.0,
        json=path,
    )

    assert "Nothing is promised" in capsys.readouterr().out
    assert not Certificate.objects.exists()
    made = Policy.objects.get(is_calibrated=True)
    assert json.loads(path.read_text())["thresholds"]["alpha"] == made.alpha


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"run": 0}, "no run 0"),
        ({"policy": 0}, "no policy version 0"),
        ({"cost_wrong": 1.0}, "both"),
        ({"epsilon": 1.5}, "epsilon 1.5"),
    ],
)
def test_what_can_not_be_tried_is_exit_code_2(policy, options, said):
    run = make_run(policy, 30)

    with pytest.raises(CommandError, match=said) as raised:
        call_command("calibrate", "thresholds", **{"run": run.pk, **options})

    assert raised.value.returncode == 2


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--run", "3"], ["thresholds", "--run", "3"]),
        (["thresholds", "--run", "3"], ["thresholds", "--run", "3"]),
        (["monitor", "questions.jsonl"], ["monitor", "questions.jsonl"]),
        (["--help"], ["--help"]),
        ([], []),
    ],
)
def test_without_what_it_is_thresholds(given, meant):
    argv = ["manage.py", "calibrate"]

    assert with_default([*argv, *given]) == [*argv, *meant]


def test_another_version_may_be_the_base(policy):
    base = new_version(policy, by=None, refuse_when_stale=True)

    call_command(
        "calibrate", "thresholds", run=make_run(policy).pk, epsilon=0.15, policy=base.pk
    )

    assert Certificate.objects.get().policy.refuse_when_stale
