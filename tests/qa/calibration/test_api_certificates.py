"""Certificates and drift over REST, and drift in the admin."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from kb.embedding.services import active_model
from qa.calibration.drift import check_drift
from qa.models import DriftReading, Policy
from qa.policies.services import ensure_default_policy, new_version
from tests.clients import rest_client
from tests.factories import make_knowledge_base, make_staff, make_user
from tests.qa.answer_rows import make_answer
from tests.qa.calibration.runs import MODEL, certified_version

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def certified() -> Policy:
    return certified_version(ensure_default_policy(make_knowledge_base()))


def test_a_policy_shows_its_certificate_and_that_it_holds(certified):
    client = rest_client(make_user(Role.AGENT))

    shown = client.get(f"/api/v1/policies/{certified.pk}").json()

    assert (shown["id"], shown["calibration"]) == (certified.pk, "current")
    kept = shown["certificate"]
    assert kept["promise"] == "at most 15.0% wrong, 95% certain"
    assert kept["bound"] == certified.certificate.bound
    assert kept["thresholds"]["alpha"] == certified.alpha
    assert kept["run"] == certified.certificate.run_id


def test_a_version_without_a_certificate_shows_none(certified):
    made = new_version(certified, by=None, alpha=0.3)

    shown = rest_client(make_user(Role.AGENT)).get(f"/api/v1/policies/{made.pk}").json()

    assert (shown["certificate"], shown["calibration"]) == (None, "hand_set")
    assert not shown["is_calibrated"]


def test_a_stale_version_says_so(certified):
    make_answer(make_user(), language_model="another" * 9)

    shown = (
        rest_client(make_user(Role.AGENT))
        .get(f"/api/v1/policies/{certified.pk}")
        .json()
    )

    assert shown["calibration"] == "stale"
    assert shown["certificate"]["language_model"] == MODEL


def test_no_such_version_is_404():
    answer = rest_client(make_user(Role.AGENT)).get("/api/v1/policies/0")

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "policy_not_found"


def test_the_list_takes_as_many_queries_for_many_versions(
    certified, django_assert_num_queries
):
    client = rest_client(make_user(Role.AGENT))
    active_model()
    for alpha in (0.1, 0.2, 0.3):
        new_version(certified, by=None, alpha=alpha)

    # The role, what runs (two) and the rows with their certificates.
    with django_assert_num_queries(5):
        listed = client.get("/api/v1/policies").json()["results"]

    assert len(listed) == Policy.objects.count() == 6
    assert sum(row["certificate"] is not None for row in listed) == 1


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME, Role.CURATOR])
def test_drift_is_for_admins(role):
    assert rest_client(make_user(role)).get("/api/v1/drift").status_code == 403


def test_an_admin_reads_the_checks_newest_first(certified, django_assert_num_queries):
    first, second = (check_drift(certified.certificate) for _ in range(2))
    DriftReading.objects.filter(pk=second.pk).update(has_drifted=True)
    client = rest_client(make_user(Role.ADMIN))

    with django_assert_num_queries(2):
        listed = client.get("/api/v1/drift").json()["results"]
    drifted = client.get("/api/v1/drift", {"has_drifted": "true"}).json()["results"]

    assert [row["id"] for row in listed] == [second.pk, first.pk]
    assert [row["id"] for row in drifted] == [second.pk]
    assert listed[0]["policy"] == certified.pk
    assert client.get("/api/v1/drift", {"has_drifted": "x"}).status_code == 400


def test_an_admin_sees_drift_in_the_admin_and_changes_nothing(certified, client):
    reading = check_drift(certified.certificate)
    DriftReading.objects.filter(pk=reading.pk).update(
        has_drifted=True, signals={"verified_ratio": {"has_drifted": True}}
    )
    boss = make_staff(Role.ADMIN)
    client.force_login(boss)

    listed = client.get(reverse("admin:qa_driftreading_changelist"))
    shown = client.get(reverse("admin:qa_driftreading_change", args=[reading.pk]))

    assert listed.status_code == shown.status_code == 200
    assert "verified_ratio" in listed.content.decode()
    assert client.get(reverse("admin:qa_driftreading_add")).status_code == 403
