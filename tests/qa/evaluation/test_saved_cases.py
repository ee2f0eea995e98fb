"""Test cases: saved, brought from files, seen by whom, and asked before an activation."""

import json

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from jobs.services import request_cancel
from kb.entries.services import edit_entry
from qa.evaluation.activation import CaseState, activate_checked, ask_cases, check_of
from qa.evaluation.knowledge import evaluation_user
from qa.evaluation.runs import evaluate_in_background
from qa.evaluation.saved_cases import (
    as_lines,
    import_cases,
    save_case,
    visible_cases,
)
from qa.exceptions import EvaluationDataError, PolicyError
from qa.models import EvaluationRun, PolicyActivation, SavedCase
from qa.policies.services import activate, active_policy, new_version
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)

pytestmark = pytest.mark.django_db

QUESTION = "What does a replacement card cost?"


@pytest.fixture
def entry():
    return make_entry("A replacement card costs 12 euros.", question=QUESTION)


@pytest.fixture
def policy(entry):
    return active_policy(make_knowledge_base())


LIVE = {"HX-Request": "true"}


@pytest.fixture
def boss():
    return make_user(Role.ADMIN, username="boss")


def saved(by, question=QUESTION, *entries, answered=True, asker=None):
    return save_case(
        question,
        knowledge_base=make_knowledge_base(),
        expects_answer=answered,
        entries=[each.pk for each in entries],
        asker=asker or by,
        by=by,
    )


def ask_all(*policies):
    for each in policies:
        ask_cases(each, by=None)
    for job in Job.objects.filter(kind="qa.evaluate", state="queued"):
        run_job(job.pk, {"qa.evaluate": evaluate_in_background})


def test_a_question_that_is_saved_again_changes_what_is_saved(entry, boss):
    first = saved(boss, QUESTION, entry)

    again = saved(boss, f"  {QUESTION} ", answered=False)

    assert first.pk == again.pk
    assert SavedCase.objects.get().expect == "refused"
    assert not again.entries.exists()


def test_what_is_taken_as_a_file_is_what_is_brought(entry, boss, tmp_path):
    Group.objects.create(name="fraud-desk")
    row = {
        "id": "fee-1", "question": QUESTION, "expect": "answered",
        "evidence": [str(entry.pk)], "answer_contains": ["12 euros"],
        "references": ["12 euros", "twelve, exactly"], "gate": "verbatim",
        "as": "fraud-desk", "group": "fees",
    }  # fmt: skip
    other = {"id": "chess", "question": "Who won?", "expect": "refused", "reason": "nothing_known"}  # fmt: skip
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(row)}\n{json.dumps(other)}\n")
    base = make_knowledge_base()

    assert import_cases(file, knowledge_base=base, by=boss) == 2
    assert import_cases(file, knowledge_base=base, by=boss) == 2
    lines = as_lines(case for _, case in visible_cases(base, boss)).splitlines()

    assert [json.loads(line) for line in lines] == [row, other]


def test_a_group_with_a_plus_in_its_name_is_one_group(entry, boss, tmp_path):
    asker = make_user(Role.AGENT, username="rita", groups=["R+D", "lab"])
    case = saved(boss, QUESTION, entry, asker=asker)
    base = make_knowledge_base()
    ((_, taken),) = visible_cases(base, boss)
    file = tmp_path / "cases.jsonl"
    file.write_text(as_lines([taken]))
    case.delete()

    assert import_cases(file, knowledge_base=base, by=boss) == 1

    ((brought, again),) = visible_cases(base, boss)
    assert (again, again.asker) == (taken, ("R+D", "lab"))
    assert {group.name for group in brought.groups.all()} == {"R+D", "lab"}


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"evidence": ["999999"]}, "no entry '999999'"),
        ({"evidence": ["x"]}, "no entry 'x'"),
        ({"as": "nobody"}, "'nobody' is not a group"),
        ({"as": "vault"}, "'vault' is not a group"),
        ({"as": "admin"}, "'admin' is not a group"),
        ({"expect": "refused", "answer_contains": ["x"]}, "leave evidence"),
        ({"question": "?!"}, "Type a question first"),
        ({"question": "a\u0000b"}, "U\\+0000"),
        ({"references": ["x" * 501]}, "500 characters"),
    ],
)
def test_a_file_with_a_line_that_can_not_be_is_refused_whole(
    entry, tmp_path, claim, said
):
    make_audience("vault", groups=["vault"])
    good = {"id": "a", "question": QUESTION, "expect": "answered"}
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(good)}\n{json.dumps(good | {'id': 'b'} | claim)}\n")

    with pytest.raises(EvaluationDataError, match=said):
        import_cases(file, knowledge_base=make_knowledge_base(), by=make_user(Role.SME))

    assert not SavedCase.objects.exists()


def test_other_groups_are_another_asker():
    long = "x" * 140
    lists = [["a-b"], ["a", "b"], ["a+b"], [long, "vault-1"], [long, "vault-2"]]
    for name in {name for names in lists for name in names}:
        Group.objects.create(name=name)

    askers = [evaluation_user(names) for names in lists]

    for asker, names in zip(askers, lists, strict=True):
        own = set(asker.groups.values_list("name", flat=True))
        assert own == {"agent", "evaluation", *names}


def test_a_case_of_what_is_hidden_is_hidden_itself(entry, boss):
    vault = make_audience("vault", groups=["vault"])
    secret = make_entry("The vault code is 4711.", audience=vault)
    insider = make_user(Role.CURATOR, username="insider", groups=["vault"])
    root = make_user(Role.ADMIN, username="root")
    root.is_superuser = True
    root.save()
    saved(insider, "What is the vault code?", secret)
    saved(insider, "Is there a vault?", answered=False)
    saved(root, "Which code opens the vault?", secret)
    saved(boss, QUESTION, entry)

    seen = {
        user.username: SavedCase.objects.visible_to(user).count()
        for user in (insider, root, boss, make_user(Role.AGENT, username="agent"))
    }

    assert seen == {"insider": 4, "root": 4, "boss": 1, "agent": 0}
    with pytest.raises(EvaluationDataError, match="no entry"):
        saved(boss, "What is hidden?", secret)


def test_an_erased_entry_leaves_its_cases(entry, boss):
    case = saved(boss, QUESTION, entry)

    entry.delete()

    assert SavedCase.objects.get() == case
    assert not case.entries.exists()


def test_cases_are_asked_and_a_failing_one_needs_a_reason(policy, entry, boss):
    saved(boss, QUESTION, entry)
    saved(boss, "Who won the chess game?", answered=False)
    strict = new_version(policy, by=None, alpha=0.0, verbatim_distance=0.0)
    assert check_of(strict).state is CaseState.UNASKED
    with pytest.raises(PolicyError, match="state the reason"):
        activate_checked(strict, by=boss)

    ask_all(strict)
    check = check_of(strict)

    assert check_of(policy).state is CaseState.PASSED
    assert (check.state, check.failed) == (CaseState.FAILED, 1)
    assert [each.has_changed for each in check.cases] == [True, False]
    with pytest.raises(PolicyError, match="1 of 2 test cases fail"):
        activate_checked(strict, by=boss, reason=" ")
    assert active_policy(policy.knowledge_base) == policy

    activate_checked(strict, by=boss, reason="The fee is withdrawn.")

    kept = PolicyActivation.objects.get()
    assert (kept.reason, kept.failed_cases, kept.by) == ("The fee is withdrawn.", 1, boss)  # fmt: skip
    audited = AuditEntry.objects.get(kind="policy activation")
    assert audited.changes["reason"] == [None, "The fee is withdrawn."]


def test_cases_that_pass_need_no_reason(policy, entry, boss):
    saved(boss, QUESTION, entry)
    made = new_version(policy, by=None, alpha=0.9)
    ask_all(made)

    activate_checked(made, by=boss)

    kept = PolicyActivation.objects.get()
    assert (kept.reason, kept.failed_cases) == ("", 0)


def test_a_policy_that_says_so_is_not_replaced_by_what_fails(policy, entry, boss):
    saved(boss, QUESTION, entry)
    firm = activate(new_version(policy, by=None, test_cases_must_pass=True))
    lax = new_version(firm, by=None, test_cases_must_pass=False, alpha=0.9)

    with pytest.raises(PolicyError, match="requires them to pass"):
        activate_checked(lax, by=boss, reason="I want it.")

    ask_all(lax)
    edit_entry(
        entry_id=entry.pk,
        author=boss,
        may_verify=True,
        text="A replacement card costs 13 euros.",
    )
    with pytest.raises(PolicyError, match="Entries have changed since"):
        activate_checked(lax, by=boss)

    ask_all(lax)
    assert activate_checked(lax, by=boss).is_active


def test_a_changed_case_is_asked_again(policy, entry, boss):
    saved(boss, QUESTION, entry)
    made = new_version(policy, by=None, alpha=0.9)
    ask_all(made)
    assert check_of(made).state is CaseState.PASSED

    saved(boss, QUESTION, answered=False)

    assert check_of(made).state is CaseState.UNASKED


def test_what_no_job_asks_any_more_is_not_waited_for(policy, entry, boss):
    saved(boss, QUESTION, entry)
    made = new_version(policy, by=None, alpha=0.9)
    ask_all(made)

    job = ask_cases(made, by=None)
    waiting = check_of(made)
    assert (waiting.state, waiting.asked) == (CaseState.RUNNING, 0)

    request_cancel(job.pk, by=make_user(Role.ADMIN, username="chief"))
    EvaluationRun.objects.filter(policy=made).update(state="running")
    stopped = check_of(made)
    assert (stopped.state, stopped.needs_reason) == (CaseState.STOPPED, True)


@pytest.fixture
def page(client):
    user = make_staff(Role.ADMIN, username="admin of pages")
    client.force_login(user)
    return client


@pytest.mark.slow
def test_the_activation_page_shows_what_changes_and_what_fails(policy, entry, boss, page):  # fmt: skip
    vault = make_audience("vault", groups=["vault"])
    secret = make_entry("The vault code is 4711.", audience=vault)
    insider = make_user(Role.CURATOR, groups=["vault"])
    saved(insider, "What is the vault code?", secret)
    saved(boss, QUESTION, entry)
    strict = new_version(policy, by=None, alpha=0.0, verbatim_distance=0.0)
    address = reverse("admin:qa_policy_activate_this", args=[strict.pk])

    itself = 'hx-trigger="load"'
    assert itself in page.get(address).content.decode()
    assert itself not in page.get(address, headers=LIVE).content.decode()
    page.post(address, {"then": "ask"})
    waiting = page.get(address).content.decode()
    assert "HX-Refresh" not in page.get(address, headers=LIVE)
    ask_all(strict)
    assert page.get(address, headers=LIVE)["HX-Refresh"] == "true"
    shown = page.get(address).content.decode()
    assert itself not in waiting + shown
    refused = page.post(address, {"reason": ""}).content.decode()

    assert "wait for a worker" in waiting
    assert "2 of 2 test cases fail" in shown
    assert "1 more is asked for audiences that you do not belong to; 1 of them fails" in shown  # fmt: skip
    assert QUESTION in shown
    assert "vault code" not in shown
    assert "<td>1.2</td><td>0</td>" in shown or "<td>0.85</td><td>0</td>" in shown
    assert "state the reason" in refused

    page.post(address, {"reason": "Asked for."})
    assert active_policy(policy.knowledge_base) == strict


@pytest.mark.slow
def test_cases_are_edited_brought_and_taken_in_the_admin(policy, entry, page, tmp_path):
    listed = reverse("admin:qa_savedcase_changelist")
    form = {
        "knowledge_base": policy.knowledge_base_id, "question": QUESTION,
        "expect": "answered", "entries": [entry.pk], "groups": [], "gate": "",
        "answer_contains": "12 euros\n\n twelve, exactly ", "references": "", "reason": "",
        "group": "",
    }  # fmt: skip
    page.post(reverse("admin:qa_savedcase_add"), form)
    case = SavedCase.objects.get()
    change = reverse("admin:qa_savedcase_change", args=[case.pk])

    assert case.answer_contains == ["12 euros", "twelve, exactly"]
    assert "12 euros" in page.get(change).content.decode()
    wrong = page.post(change, form | {"expect": "refused"}).content.decode()
    assert "leave evidence" in wrong
    page.post(change, form | {"question": "And a lost one?"})
    case.refresh_from_db()
    assert case.question == "And a lost one?"
    assert str(case.created_by) == "admin of pages"

    taken = page.get(reverse("admin:qa_savedcase_take"))
    file = tmp_path / "test-cases.jsonl"
    file.write_bytes(taken.content)
    SavedCase.objects.all().delete()
    bring = reverse("admin:qa_savedcase_bring")
    for wrong, said in ((b"\xff", "UTF-8"), (b"[" * 9999, "line 1")):
        bad = tmp_path / "bad.jsonl"
        bad.write_bytes(wrong)
        with bad.open("rb") as sent:
            answered = page.post(bring, {"knowledge_base": policy.knowledge_base_id, "file": sent})  # fmt: skip
        assert said in answered.content.decode()
    with file.open("rb") as sent:
        page.post(bring, {"knowledge_base": policy.knowledge_base_id, "file": sent})

    assert SavedCase.objects.get().question == "And a lost one?"
    assert "And a lost one?" in page.get(listed).content.decode()
