"""`manage.py replay`: a stored answer decided again, then and now, and what was changed."""

import json
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.acting import acting_for
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry
from qa.answers.asking import ask
from qa.models import Answer
from qa.policies.models import RefusalWording
from qa.policies.services import activate, active_policy, new_version
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

BLOCK = "How do I block a card?"


def asked(text=BLOCK, asker=None) -> Answer:
    asker = asker or make_user()
    with acting_for(asker):
        return ask(text, asker=asker, channel="api")


def run(answer_id, *options):
    out, code = StringIO(), 0
    try:
        call_command("replay", str(answer_id), *options, stdout=out, no_color=True)
    except CommandError as error:
        code = error.returncode
        out.write(str(error))
    return code, out.getvalue()


def replayed(answer):
    code, printed = run(answer.pk, "--json")
    assert code == 0, printed
    return json.loads(printed)


def test_an_answer_is_decided_again_as_it_was_and_what_was_edited_since_is_named(
    monkeypatch,
):
    monkeypatch.setenv("COLUMNS", "200")
    entry = make_entry("Open Cards, Block.", question=BLOCK)
    answer = asked()
    edit_entry(
        entry_id=entry.pk, author=make_curator(), may_verify=True,
        text="Call the desk.", reason="The app has changed.",
    )  # fmt: skip

    code, printed = run(answer.pk)

    assert code == 0
    for part in (
        "The decision as of then is the same",
        "Today differs: text, evidence.",
        f"entry {entry.pk}: {BLOCK} Call the desk.",
        f"entry {entry.pk}: revision 1, verified",
        "revision 2, verified",
        "The app has changed. (curator,",
    ):
        assert part in printed


def test_a_retired_entry_a_policy_and_a_wording_are_named():
    entry = make_entry("Open Cards, Block.", question=BLOCK)
    answer, refused = asked(), asked("Why is the sky blue?")
    retire_entry(entry_id=entry.pk, by=make_curator(), reason="No such button.")
    base = make_knowledge_base()
    made = new_version(active_policy(base), by=None, horizon=1.3)
    activate(made)
    RefusalWording.objects.create(
        knowledge_base=base, language="en", reason="", text="Ask the desk."
    )

    changed = replayed(answer)["changed"]
    told = replayed(refused)

    assert changed[0]["what"] == "entry"
    assert "No such button." in changed[0]["now"]
    assert {
        "what": "policy",
        "name": "horizon",
        "then": "1.25",
        "now": "1.3",
    } in changed
    assert told["differs_today"] == ["text"]
    assert told["changed"][-1]["what"] == "wording"
    assert told["now"]["text"] == "Ask the desk."


def test_nothing_changed_is_nothing_otherwise():
    make_entry("Open Cards, Block.", question=BLOCK)

    found = replayed(asked())

    assert found["equal"]
    assert list(found["entries"].values()) == [f"{BLOCK} Open Cards, Block."]
    assert (found["differs_today"], found["changed"], found["limits"]) == ([], [], [])


def test_what_its_asker_could_see_then_counts_and_not_what_they_see_now():
    make_entry(
        "Open Cards, Block.",
        question=BLOCK,
        audience=make_audience("vault", groups=["vault"]),
    )
    asker = make_user(groups=["vault"])
    answer = asked(asker=asker)
    asker.groups.clear()

    found = replayed(answer)

    assert (found["stored"]["outcome"], found["then"]["outcome"]) == ("answered",) * 2
    assert found["now"]["outcome"] == "refused"
    assert found["changed"][0]["name"] == "audiences"


def test_an_answer_of_before_says_what_is_reckoned():
    make_entry("Open Cards, Block.", question=BLOCK)
    answer = asked()
    Answer.objects.filter(pk=answer.pk).update(scope={})

    found = replayed(answer)

    assert found["equal"]
    assert found["limits"][0].startswith("It was decided before moment and audiences")


def test_another_embedding_model_or_verifier_is_named():
    make_entry("Open Cards, Block.", question=BLOCK)
    answer = asked()
    Answer.objects.filter(pk=answer.pk).update(embedder="other", probes="gone")

    limits = replayed(answer)["limits"]

    assert limits[0].startswith("Another embedding model runs now:")
    assert limits[1] == (
        "Other probes or another verifier run now: none in place of gone."
    )


def test_what_differs_from_the_stored_answer_is_said_with_exit_code_1():
    make_entry("Open Cards, Block.", question=BLOCK)
    answer = asked()
    Answer.objects.filter(pk=answer.pk).update(text="Something else.")

    code, printed = run(answer.pk)

    assert code == 1
    assert "The decision as of then differs from the stored one in: text." in printed


def test_erased_undecided_and_missing_answers_are_refused():
    make_entry("Open Cards, Block.", question=BLOCK)
    erased, failed = asked(), asked()
    Answer.objects.filter(pk=erased.pk).update(erased_at=timezone.now())
    Answer.objects.filter(pk=failed.pk).update(outcome="failed", gate="")

    for answer_id, message in (
        (erased.pk, "were erased on"),
        (failed.pk, "is failed: it has no decision"),
        (uuid4(), "There is no answer"),
    ):
        code, printed = run(answer_id)
        assert code == 2
        assert message in printed
