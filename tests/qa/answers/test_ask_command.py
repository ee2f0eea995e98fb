"""`manage.py ask`: what it prints, and its exit codes."""

import json
import logging
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from qa.management.commands import ask as command
from qa.models import Answer
from tests.factories import make_audience, make_entry, make_knowledge_base, make_user

pytestmark = pytest.mark.django_db

BLOCK = "How do I block a card?"


def run(*arguments, monkeypatch=None):
    out = StringIO()
    code: object = 0
    try:
        call_command("ask", *arguments, stdout=out, no_color=True)
    except SystemExit as stop:
        code = stop.code
    return code, out.getvalue()


@pytest.fixture
def knowledge(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    make_entry("Open Cards, Block.", question=BLOCK)
    return User.objects.create_superuser("root")


def test_an_answer_is_printed_with_its_evidence_and_gates(knowledge):
    code, printed = run(BLOCK)

    assert code == 0
    for part in ("answered (verbatim)", "Open Cards, Block.", "cited", "question_distance", "0.35", "asked as root"):  # fmt: skip
        assert part in printed
    assert Answer.objects.get().channel == "command"


def test_notes_of_models_that_load_are_printed_on_request_alone(caplog):
    for unless in (False, True):
        with command._quiet(unless=unless):
            logging.getLogger("kb").info("A model is loaded.")
        assert bool(caplog.records) is unless


def test_a_refusal_exits_with_1(knowledge):
    code, printed = run("Why is the sky blue?")

    assert code == 1
    assert "refused (hard_refusal: nothing_known)" in printed
    assert "distance_over_confidence" in printed


def test_a_follow_up_is_asked_as_a_question_of_its_own(knowledge):
    run(BLOCK)
    first = Answer.objects.get()

    _, printed = run("And a stolen phone?", "--follows", str(first.pk))

    followed = Answer.objects.exclude(pk=first.pk).get()
    assert followed.conversation == first.pk
    assert f"Asked as: {followed.question}" in printed
    assert followed.typed == "And a stolen phone?"


def test_json_is_the_answer_as_rest_returns_it(knowledge):
    code, printed = run(BLOCK, "--json")

    answer = json.loads(printed)
    assert code == 0
    assert answer["answered"] is True
    assert answer["text"] == "Open Cards, Block."
    assert [c["quote"] for c in answer["citations"]] == ["Open Cards, Block."]
    assert answer["id"] == str(Answer.objects.get().pk)


def test_the_asker_decides_what_is_seen(knowledge):
    make_entry("Call 7.", question="What is the fraud number?", audience=make_audience("fraud", groups=["fraud"]))  # fmt: skip
    make_user(username="anna")
    make_user(username="frank", groups=["fraud"])

    assert run("What is the fraud number?", "--as", "anna")[0] == 1
    assert run("What is the fraud number?", "--as", "frank")[0] == 0


def test_a_hidden_reason_is_not_printed(knowledge):
    make_entry("Call 7.", question="What is the fraud number?", audience=make_audience("fraud", groups=["fraud"]))  # fmt: skip
    make_user(username="anna")

    printed = run("What is the fraud number?", "--as", "anna")[1]

    assert "entitled" not in printed


def test_the_knowledge_base_can_be_named(knowledge):
    make_entry("Elsewhere.", question=BLOCK, knowledge_base=make_knowledge_base("b"))

    assert "Elsewhere." in run(BLOCK, "--knowledge-base", "b")[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((BLOCK, "--as", "nobody"), "'nobody'"),
        ((BLOCK, "--knowledge-base", "nowhere"), "'nowhere'"),
        (("?!",), "no words"),
        ((BLOCK, "--language", "fr"), "'fr'"),
    ],
)
def test_bad_input_exits_with_2_and_keeps_nothing(knowledge, arguments, told):
    with pytest.raises(CommandError, match=told) as caught:
        run(*arguments)

    assert caught.value.returncode == 2
    assert not Answer.objects.exists()


def test_without_a_superuser_the_asker_must_be_named():
    make_entry()

    with pytest.raises(CommandError, match="--as USER"):
        run(BLOCK)


def test_a_model_that_is_down_exits_with_3_and_the_question_is_kept(
    knowledge, settings
):
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:9/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0
    make_entry("A replacement card costs 12 euros.")

    with pytest.raises(CommandError) as caught:
        run("How much does a replacement card cost?")

    assert caught.value.returncode == 3
    assert Answer.objects.get().outcome == "failed"
