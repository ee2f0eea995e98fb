"""Versions made, activated and rolled back over REST; a knowledge base's own calibration."""

import pytest

from accounts.roles import Role
from accounts.services import set_knowledge_roles
from jobs.models import Job
from jobs.run import run_job
from qa.calibration.self_calibration_jobs import KIND
from qa.evaluation.runs import evaluate_in_background
from qa.evaluation.saved_cases import save_case
from qa.models import Policy, PolicyActivation, SelfCalibrationSettings
from qa.policies.services import activate, active_policy, new_version
from tests.clients import rest_client
from tests.factories import make_entries, make_entry, make_knowledge_base, make_user

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/policies"
QUESTION = "What does a replacement card cost?"


@pytest.fixture
def policy() -> Policy:
    return active_policy(make_knowledge_base())


@pytest.fixture
def boss():
    return make_user(Role.ADMIN, username="boss")


@pytest.fixture
def client(boss):
    return rest_client(boss)


def make(client, **given):
    return client.post(ADDRESS, given, format="json")


def own(slug: str, what: str = "self-calibration") -> str:
    return f"/api/v1/knowledge-bases/{slug}/{what}"


def test_a_version_is_made_activated_and_rolled_back(client, policy, boss):
    made = make(client, name="strict", alpha=0.7, horizon=1.1, top_k=3)

    assert made.status_code == 201
    shown = made.json()
    assert (shown["name"], shown["version"], shown["is_active"]) == ("strict", 1, False)
    assert (shown["alpha"], shown["top_k"]) == (0.7, 3)
    assert shown["min_entry_answer"] == policy.min_entry_answer
    assert (shown["is_calibrated"], shown["certificate"]) == (False, None)
    assert Policy.objects.get(pk=shown["id"]).created_by == boss

    on = client.post(f"{ADDRESS}/{shown['id']}/activate").json()
    assert (on["is_active"], on["lacking"]) == (True, "")
    assert PolicyActivation.objects.get().by == boss
    listed = client.get(f"{ADDRESS}?knowledge_base=cards&is_active=true").json()
    assert [row["id"] for row in listed["results"]] == [shown["id"]]

    back = client.post(f"{ADDRESS}/{shown['id']}/roll-back")
    assert back.json()["id"] == policy.pk
    assert active_policy(policy.knowledge_base) == policy
    assert client.post(f"{ADDRESS}/{shown['id']}/roll-back").status_code == 400


def test_a_version_is_made_from_the_one_that_is_named(client, policy):
    other = new_version(policy, by=None, name="other", min_verdict=0.9)

    made = make(client, based_on=other.pk, alpha=0.5).json()

    assert (made["name"], made["version"]) == ("other", 2)
    assert (made["min_verdict"], made["alpha"]) == (0.9, 0.5)


def test_of_several_knowledge_bases_one_is_named(client, policy):
    travel = active_policy(make_knowledge_base("travel"))

    assert make(client, alpha=0.5).status_code == 400
    made = make(client, knowledge_base="travel", alpha=0.5).json()
    assert made["knowledge_base"] == "travel"
    torn = make(client, knowledge_base="cards", based_on=travel.pk, alpha=0.5)
    assert "send one of the two" in str(torn.json())


@pytest.mark.parametrize(
    "fields",
    [
        {"alpha": 3},
        {"alpha": "0.5"},
        {"top_k": "3"},
        {"alpha": 1.2, "horizon": 1.0},
        {"scope": "adaptive"},
        {"scope": "everything"},
        {"is_active": True},
        {"is_calibrated": True},
        {"version": 7},
        {"based_on": 0},
        {"knowledge_base": "cards"},
    ],
)
def test_a_version_that_can_not_be_is_refused(client, policy, fields):
    refused = make(client, **fields)

    assert refused.status_code == 400
    assert Policy.objects.count() == 1


def test_test_cases_are_asked_and_a_failing_one_needs_a_reason(client, policy, boss):
    entry = make_entry("A replacement card costs 12 euros.", question=QUESTION)
    save_case(
        QUESTION, knowledge_base=policy.knowledge_base, expects_answer=True,
        entries=[entry.pk], asker=boss, by=boss,
    )  # fmt: skip
    strict = make(client, alpha=0.0, horizon=0.0, verbatim_distance=0.0).json()
    cases = f"{ADDRESS}/{strict['id']}/test-cases"
    assert client.get(cases).json()["state"] == "unasked"

    asked = client.post(cases)
    assert asked.status_code == 202
    for job in Job.objects.filter(state="queued"):
        run_job(job.pk, {"qa.evaluate": evaluate_in_background})
    told = client.get(cases).json()

    assert (told["state"], told["failed"], told["total"]) == ("failed", 1, 1)
    assert (told["needs_reason"], told["is_blocked"]) == (True, False)
    at = f"{ADDRESS}/{strict['id']}/activate"
    refused = client.post(at, {"reason": " "}, format="json")
    assert refused.json()["error"]["code"] == "invalid_policy"
    on = client.post(at, {"reason": "The fee is withdrawn."}, format="json")
    assert on.json()["is_active"]
    assert PolicyActivation.objects.get().reason == "The fee is withdrawn."


def test_a_policy_that_must_pass_is_blocked_over_rest(client, policy, boss):
    save_case(
        QUESTION, knowledge_base=policy.knowledge_base, expects_answer=False,
        entries=[], asker=boss, by=boss,
    )  # fmt: skip
    activate(new_version(policy, by=None, test_cases_must_pass=True))
    made = make(client, test_cases_must_pass=False).json()

    assert client.get(f"{ADDRESS}/{made['id']}/test-cases").json()["is_blocked"]
    on = client.post(
        f"{ADDRESS}/{made['id']}/activate", {"reason": "I want it."}, format="json"
    )
    assert "requires them to pass" in on.json()["error"]["message"]


def test_self_calibration_is_read_set_and_begun(client, policy, boss, settings):
    settings.VERIFIER = "bundled"
    assert client.get(own("cards")).json() == {
        "wrong_share_target": 20, "calibrates_itself": "activate",
        "uses_evaluations": False, "is_due": False, "last": None,
    }  # fmt: skip
    make_entries([f"Locker {number} is for guests." for number in range(20)])
    assert client.get(own("cards")).json()["is_due"]

    kept = client.patch(own("cards"), {"wrong_share_target": 50}, format="json")
    assert kept.json()["wrong_share_target"] == 50
    off = client.patch(own("cards"), {"calibrates_itself": "off"}, format="json")
    assert (off.json()["wrong_share_target"], off.json()["is_due"]) == (50, False)
    for wrong in ({"wrong_share_target": 30}, {"calibrates_itself": "x"}, {"mode": 1}):
        assert client.patch(own("cards"), wrong, format="json").status_code == 400

    begun = client.post(own("cards", "calibrate"))
    assert begun.status_code == 202
    job = Job.objects.get()
    assert (begun.json()["id"], job.kind, job.owner) == (str(job.pk), KIND, boss)
    assert client.post(own("cards", "calibrate")).json()["id"] == str(job.pk)
    assert client.get(own("nothing")).status_code == 404


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME, Role.CURATOR, "elsewhere"])
def test_who_is_no_admin_reads_and_changes_nothing(policy, role):
    user = make_user(None if role == "elsewhere" else role)
    if role == "elsewhere":
        set_knowledge_roles(user, {make_knowledge_base("travel").pk: "curator"})
    client, made = rest_client(user), new_version(policy, by=None, alpha=0.5)

    answers = [
        make(client, knowledge_base="cards", alpha=0.4),
        client.post(f"{ADDRESS}/{made.pk}/activate"),
        client.post(f"{ADDRESS}/{policy.pk}/roll-back"),
        client.get(f"{ADDRESS}/{made.pk}/test-cases"),
        client.post(f"{ADDRESS}/{made.pk}/test-cases"),
        client.patch(own("cards"), {"calibrates_itself": "off"}, format="json"),
        client.post(own("cards", "calibrate")),
    ]

    assert {answer.status_code for answer in answers} == {403}
    assert client.get(f"{ADDRESS}/{made.pk}").status_code == 200
    assert client.get(own("cards")).status_code == 200
    assert active_policy(policy.knowledge_base) == policy
    assert not Job.objects.exists()
    assert not SelfCalibrationSettings.objects.exists()
