"""A version's page says in words what is set elsewhere, and leads there."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.roles import Role
from qa.calibration.models import SelfCalibrationSettings
from qa.models import Policy, RefusalWording
from qa.pipeline.gates import Reason
from qa.policies.services import activate, ensure_default_policy, new_version
from tests.factories import make_audience, make_knowledge_base

pytestmark = pytest.mark.django_db


@pytest.fixture
def policy() -> Policy:
    return ensure_default_policy(make_knowledge_base())


def page_of(policy: Policy) -> str:
    return reverse("admin:qa_policy_change", args=[policy.pk])


def new_from(policy: Policy) -> str:
    return f"{reverse('admin:qa_policy_add')}?source={policy.pk}"


@pytest.mark.parametrize("address", [page_of, new_from])
def test_what_is_set_elsewhere_is_said_and_linked(enter, policy, address):
    base = policy.knowledge_base
    SelfCalibrationSettings.objects.create(knowledge_base=base, wrong_share_target=50)
    RefusalWording.objects.create(knowledge_base=base, language="en", text="Call us.")
    make_audience("everyone")

    page = enter(Role.ADMIN).get(address(policy)).content.decode()

    assert "at most 1 in 50 shown answers wrong" in page
    assert "Everyone (all who sign in)" in page
    assert "1 wording of your own, else the built-in words" in page
    assert "English; a refusal" in page
    for linked in (
        reverse("admin:qa_policy_calibrate", args=[base.pk]),
        reverse("admin:kb_audience_changelist"),
        f"{reverse('admin:qa_refusalwording_preview')}?knowledge_base={base.pk}",
        reverse("admin:kb_knowledgebase_change", args=[base.pk]),
    ):
        assert f'href="{linked}' in page


def test_the_words_of_a_policys_pages_are_explained_in_the_help(enter, policy):
    client = enter(Role.ADMIN)
    base = policy.knowledge_base.pk
    other = new_version(policy, min_verdict=0.9, by=None)
    explained = f"{reverse('help')}#policies"
    for address in (
        page_of(policy),
        reverse("admin:qa_policy_calibrate", args=[base]),
        reverse("admin:qa_policy_activate_this", args=[other.pk]),
    ):
        assert f'href="{explained}"' in client.get(address).content.decode(), address

    assert 'id="policies"' in client.get(explained).content.decode()
    assert 'id="policies"' in enter(Role.SME).get(explained).content.decode()
    assert 'id="policies"' not in enter(Role.AGENT).get(explained).content.decode()


def test_a_version_with_only_a_name_keeps_what_was_tuned(enter, policy):
    tuned = new_version(policy, by=None, alpha=0.7, min_entry_answer=0.9, top_k=6)
    activate(tuned, by=None)
    client, add = enter(Role.ADMIN), reverse("admin:qa_policy_add")

    form = client.get(add).context["adminform"].form
    values = {each.html_name: each.value() for each in form}
    sent = {n: v for n, v in values.items() if v is not None and v is not False}
    made = client.post(add, {**sent, "name": "named"})

    assert made.status_code == 302, made.context["adminform"].form.errors
    named = Policy.objects.get(name="named")
    assert (named.alpha, named.min_entry_answer, named.top_k) == (0.7, 0.9, 6)


def test_where_several_decide_a_version_is_chosen_first(enter, policy):
    travel = make_knowledge_base("travel")

    shown = enter(Role.ADMIN).get(reverse("admin:qa_policy_add"), follow=True)

    assert shown.redirect_chain == [
        (f"{reverse('admin:qa_policy_changelist')}?is_active__exact=1", 302)
    ]
    page = shown.content.decode()
    assert "Create a new version from this" in page
    for decides in (policy, Policy.objects.get(knowledge_base=travel)):
        assert page_of(decides) in page


def test_an_expert_reads_of_no_audience_but_their_own(enter, policy):
    make_audience("everyone")
    make_audience("vault", groups=["vault"])

    assert "Vault" not in enter(Role.SME).get(page_of(policy)).content.decode()
    assert "Vault" in enter(Role.ADMIN).get(page_of(policy)).content.decode()


def test_the_page_takes_the_same_queries_for_any_number(enter, policy):
    client = enter(Role.ADMIN)
    make_audience("everyone")
    client.get(page_of(policy))
    with CaptureQueriesContext(connection) as few:
        client.get(page_of(policy))
    for number in range(12):
        make_audience(f"team-{number}", groups=[f"team-{number}"])
    for reason in Reason:
        RefusalWording.objects.create(
            knowledge_base=policy.knowledge_base,
            language="en",
            reason=reason.value,
            text="Call us.",
        )

    with CaptureQueriesContext(connection) as many:
        page = client.get(page_of(policy)).content.decode()

    assert "and 8 more" in page
    assert len(many) == len(few)
