"""Answers, votes, policies and wordings in the admin."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from qa.models import Answer, Policy, RefusalWording, Vote
from qa.policies.services import ensure_default_policy, new_version
from tests.factories import (
    make_document,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

SIGNALS = [
    {
        "gate": "hard_refusal", "name": "distance_over_confidence",
        "value": 0.512345, "threshold": 0.85, "passed": True,
    },
    {
        "gate": "hard_refusal", "name": "visible_entries",
        "value": None, "threshold": None, "passed": None,
    },
]  # fmt: skip


def change_url(row) -> str:
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])


def test_an_answer_shows_question_gates_evidence_times_and_votes(enter):
    entry = make_entry("A card <b>costs</b> 12 euros.", document=make_document())
    answer = make_answer(make_user(), cited=(entry,), signals=SIGNALS)
    voter = make_user(username="berta")
    Vote.objects.create(answer=answer, user=voter, is_up=False, comment="Too dear.")

    page = enter(Role.SME).get(change_url(answer)).content.decode()

    for shown in (
        "What does a new card cost?", "distance over confidence", "0.512", "0.85",
        "Price list", "A card &lt;b&gt;costs&lt;/b&gt; 12 euros.", "Searched",
        "berta", "Too dear.",
    ):  # fmt: skip
        assert shown in page
    assert "<b>costs</b>" not in page
    assert 'name="_save"' not in page


@pytest.mark.parametrize("role", [Role.SME, Role.ADMIN])
def test_nobody_changes_or_deletes_an_answer(enter, role):
    answer = make_answer(make_user())
    client = enter(role)

    changed = client.post(change_url(answer), {"question": "Another?"})
    deleted = client.post(reverse("admin:qa_answer_delete", args=[answer.pk]), {"post": "yes"})  # fmt: skip
    added = client.get(reverse("admin:qa_answer_add"))

    assert {changed.status_code, deleted.status_code, added.status_code} == {403}
    assert Answer.objects.get().question == answer.question


def test_the_list_of_answers_costs_the_same_for_any_number(
    enter, django_assert_max_num_queries
):
    asker = make_user()
    for _ in range(20):
        make_answer(asker)
    client = enter(Role.SME)
    client.get(reverse("admin:qa_answer_changelist"))

    with django_assert_max_num_queries(40):
        page = client.get(reverse("admin:qa_answer_changelist"))

    assert page.content.decode().count("What does a new card cost?") >= 20


def test_an_answers_page_shows_how_sure_it_was_along_the_draft(enter):
    answer = make_answer(
        make_user(),
        generation={"tokens": ["twelve", " euros"]},
        confidence={"along": [0.125, 0.25], "missing": ""},
    )
    untold = make_answer(
        make_user(), confidence={"along": [], "missing": "No probe fits."}
    )
    client = enter(Role.SME)

    page = client.get(change_url(answer)).content.decode()

    assert "confidence after it" in page
    assert "twelve" in page
    assert "0.125" in page
    assert "No probe fits." in client.get(change_url(untold)).content.decode()


def test_votes_are_listed_and_never_edited(enter):
    vote = Vote.objects.create(
        answer=make_answer(make_user()), user=make_user(), is_up=True, comment="Good."
    )
    client = enter(Role.SME)

    assert "Good." in client.get(reverse("admin:qa_vote_changelist")).content.decode()
    page = client.get(change_url(vote)).content.decode()
    assert "handled at" in page.lower()
    assert "&#x27;open&#x27;" not in page
    assert client.post(change_url(vote), {"comment": "Bad."}).status_code == 403


def version_of(policy: Policy, **changes) -> dict[str, object]:
    names = (
        "name", "alpha", "alpha_unverified", "horizon", "top_k", "verbatim_distance", "unverified_floor",
        "verification", "min_entry_answer", "min_answerability", "min_sentence_support",
        "enriched_floor", "scope", "retrieval_timing", "min_known", "steering",
        "min_token_confidence",
        "min_verdict", "min_confidence", "min_early_confidence", "min_joint_confidence",
    )  # fmt: skip
    return {
        "knowledge_base": policy.knowledge_base_id,
        "hard_refusal": "on",
        "soft_refusal": "on",
        "support_check": "on",
        "answer_without_probe": "on",
        **{name: getattr(policy, name) for name in names},
        **changes,
    }


def test_a_timing_that_its_scope_does_not_have_is_refused_in_the_form(enter):
    first = ensure_default_policy(make_knowledge_base())

    shown = enter(Role.ADMIN).post(
        reverse("admin:qa_policy_add"), version_of(first, scope="adaptive")
    )

    assert shown.status_code == 200
    errors = shown.context["adminform"].form.errors
    assert "always does not go with the scope adaptive" in str(errors)
    assert Policy.objects.count() == 1


def test_a_new_version_is_made_from_another_and_activated(enter):
    first = ensure_default_policy(make_knowledge_base())
    client = enter(Role.ADMIN)
    add = reverse("admin:qa_policy_add")

    offered = client.get(add, {"source": first.pk}).content.decode()
    changes = {"alpha": 0.7, "abstention": "on", "min_confidence": 0.6}
    made = client.post(add, version_of(first, **changes))

    assert 'value="0.85"' in offered
    assert made.status_code == 302
    second = Policy.objects.get(version=2)
    assert (second.alpha, second.is_active) == (0.7, False)
    assert (second.abstention, second.min_confidence) == (True, 0.6)
    assert second.answer_without_probe
    assert second.created_by is not None
    activated = client.post(reverse("admin:qa_policy_activate_this", args=[second.pk]))
    assert activated.status_code == 302
    assert Policy.objects.get(is_active=True) == second


def test_a_version_made_from_another_is_for_the_models_that_that_one_is_for(enter):
    active = ensure_default_policy(make_knowledge_base())
    old = new_version(active, by=None, calibrated_embedder="e" * 64)
    travel = ensure_default_policy(make_knowledge_base("travel"))
    other = new_version(travel, by=None, calibrated_embedder="f" * 64)
    add = reverse("admin:qa_policy_add")
    client = enter(Role.ADMIN)

    for name, source in (("from old", old), ("from travel", other)):
        made = version_of(active, name=name)
        assert client.post(f"{add}?source={source.pk}", made).status_code == 302

    of = dict(Policy.objects.values_list("name", "calibrated_embedder"))
    assert of["from old"] == "e" * 64
    assert of["from travel"] == active.calibrated_embedder


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"horizon": 0.5}, "below alpha"),
        ({"alpha": 3, "horizon": 3}, "less than or equal to 2"),
        ({"top_k": 0}, "greater than or equal to 1"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(enter, changes, said):
    first = ensure_default_policy(make_knowledge_base())

    page = enter(Role.ADMIN).post(
        reverse("admin:qa_policy_add"), version_of(first, **changes)
    )

    assert said in page.content.decode()
    assert Policy.objects.count() == 1


def test_a_version_is_never_changed(enter):
    policy = ensure_default_policy(make_knowledge_base())

    enter(Role.ADMIN).post(change_url(policy), version_of(policy, alpha=0.1))

    policy.refresh_from_db()
    assert policy.alpha == 0.85


def test_a_policy_is_activated_only_from_where_it_is_not_active(enter):
    active = ensure_default_policy(make_knowledge_base())
    other = Policy.objects.create(
        knowledge_base=active.knowledge_base, name="strict", version=1
    )
    client = enter(Role.ADMIN)

    offered = {
        policy: reverse("admin:qa_policy_activate_this", args=[policy.pk])
        in client.get(change_url(policy)).content.decode()
        for policy in (active, other)
    }

    assert offered == {active: False, other: True}


def test_who_may_not_make_policies_is_not_offered_it(enter):
    policy = ensure_default_policy(make_knowledge_base())
    other = Policy.objects.create(
        knowledge_base=policy.knowledge_base, name="strict", version=1
    )
    client = enter(Role.SME)

    shown = client.get(change_url(policy))
    activated = client.post(reverse("admin:qa_policy_activate_this", args=[other.pk]))
    added = client.get(reverse("admin:qa_policy_add"))

    assert shown.status_code == 200
    assert "Activate" not in shown.content.decode()
    assert activated.status_code == 403
    assert added.status_code == 403
    assert Policy.objects.get(is_active=True) == policy


@pytest.mark.parametrize("source", ["x", "-1", "999999", "99999999999999999999999"])
def test_a_source_that_is_none_starts_from_the_defaults(enter, source):
    page = enter(Role.ADMIN).get(reverse("admin:qa_policy_add"), {"source": source})

    assert page.status_code == 200


def test_an_admin_writes_the_words_of_refusals(enter):
    knowledge_base = make_knowledge_base()

    made = enter(Role.ADMIN).post(
        reverse("admin:qa_refusalwording_add"),
        {
            "knowledge_base": knowledge_base.pk,
            "language": "en",
            "reason": "too_far",
            "text": "Ask Berta.",
        },
    )

    assert made.status_code == 302
    assert RefusalWording.objects.get().text == "Ask Berta."


def test_an_admin_starts_one_evaluation_at_a_time_from_the_policies(enter):
    ensure_default_policy(make_knowledge_base())
    client = enter(Role.ADMIN)
    url = reverse("admin:qa_policy_evaluate")

    pages = [client.post(url, follow=True) for _ in range(2)]

    job = Job.objects.get()
    assert (job.kind, job.parameters) == ("qa.evaluate", {"suite": "demo"})
    link = reverse("admin:jobs_job_change", args=[job.pk])
    assert all(link in page.content.decode() for page in pages)


def test_a_curator_starts_no_evaluation(enter):
    done = enter(Role.CURATOR).post(reverse("admin:qa_policy_evaluate"))

    assert done.status_code == 403
    assert not Job.objects.exists()


def test_a_version_offers_no_saving(enter):
    policy = ensure_default_policy(make_knowledge_base())

    page = enter(Role.ADMIN).get(change_url(policy)).content.decode()

    assert 'name="_save"' not in page
    assert "Create a new version from this" in page


def found(client, query: str) -> list[str]:
    """Return the questions of the list that a query of its address leaves."""
    shown = client.get(f"{reverse('admin:qa_answer_changelist')}?{query}")
    return sorted(answer.question for answer in shown.context["cl"].result_list)


def test_answers_are_found_by_how_words_of_the_question_begin_or_by_their_asker(enter):
    berta = make_user(username="berta")
    make_answer(berta, question="What does a gold card cost?")
    make_answer(make_user(), question="Who blocks cards?")
    make_answer(make_user(), question="Is Bertaville insured?")
    client = enter(Role.SME)

    assert found(client, "q=card") == [
        "What does a gold card cost?",
        "Who blocks cards?",
    ]
    assert found(client, "q=Card+gold") == ["What does a gold card cost?"]
    assert found(client, "q=berta") == [
        "Is Bertaville insured?", "What does a gold card cost?",
    ]  # fmt: skip
    assert found(client, "q=ard") == []
    assert found(client, "q=%26+%7C+%21+%3A*+%27") == []


def test_more_rows_than_are_counted_are_estimated_and_all_can_be_paged_to(
    enter, monkeypatch
):
    monkeypatch.setattr("accounts.admin_parts._COUNTED", 3)
    monkeypatch.setattr("qa.answers.admin.AnswerAdmin.list_per_page", 2)
    for number in range(5):
        make_answer(make_user(), question=f"Question {number}?")
    client = enter(Role.SME)
    page = reverse("admin:qa_answer_changelist")

    first = client.get(page).context["cl"]
    assert first.result_count >= 4
    shown = [found(client, f"p={number}") for number in (1, 2, 3, 4)]
    assert [len(rows) for rows in shown] == [2, 2, 1, 0]


def test_a_refusals_wording_is_previewed_before_it_is_saved(enter):
    base = make_knowledge_base()
    RefusalWording.objects.create(knowledge_base=base, language="en", text="Ask Berta.")
    address = reverse("admin:qa_refusalwording_preview")
    chosen = {"knowledge_base": base.pk, "language": "en", "reason": "too_far"}
    client = enter(Role.ADMIN)

    now = client.get(address, chosen).content.decode()
    tried = client.get(address, chosen | {"text": "Ask <b>Carla</b>."}).content.decode()
    kept = RefusalWording.objects.count()
    client.post(address, chosen | {"text": "Ask Carla."})

    assert "own wording for every reason" in now
    assert "built in" not in now
    assert "Ask &lt;b&gt;Carla&lt;/b&gt;." in tried
    assert "Save this wording" in tried
    assert kept == 1
    assert RefusalWording.objects.get(reason="too_far").text == "Ask Carla."
    reader = enter(Role.SME)
    assert "Save this wording" not in reader.get(address, chosen | {"text": "x"}).content.decode()  # fmt: skip
    assert reader.post(address, chosen | {"text": "x"}).status_code == 403
    assert reader.get(address, {"reason": "\0", "language": "xx"}).status_code == 200
