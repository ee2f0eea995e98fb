"""The calibration pages: who may do what, what they say, and what they cost."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.roles import Role
from qa.evaluation.cases import LabelledAnswer
from qa.models import Certificate, DriftReading, Policy, PolicyActivation
from qa.policies.services import activate, new_version
from tests.factories import make_knowledge_base, make_staff, make_user
from tests.qa.evaluated import (
    kept_from_the_model,
    labelled,
    make_logged,
    make_run,
    measured,
    policy_of_default_base,
)
from tests.qa.pipeline.values import PROBES

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

TRIED = {"alpha": "0.7", "alpha_unverified": "2", "min_verdict": "0.6"}
REFUSED = {"reason": "too_far", "shown_reason": "too_far"}


@pytest.fixture
def policy() -> Policy:
    return policy_of_default_base()


@pytest.fixture
def run():
    return make_run(
        labelled("right", measured(0.5), answerable=True, correct=True),
        labelled("far", measured(0.8), answerable=True, correct=True),
        labelled("false", measured(0.75), answerable=False, correct=None),
    )


def address(name: str, **query: object) -> str:
    base = reverse(f"admin:qa_policy_{name}", args=[make_knowledge_base().pk])
    return f"{base}?{'&'.join(f'{k}={v}' for k, v in query.items())}"


def text_of(response) -> str:
    """The page as it reads."""
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", response.content.decode()))


READS = ["calibrate", "try_on_labelled", "try_on_traffic", "compare"]
WRITES = ["save_tried", "certify"]


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("role", [Role.SME, Role.CURATOR, Role.ADMIN])
def test_who_may_see_policies_may_try_thresholds(enter, policy, run, name, role):
    assert enter(role).get(address(name, **TRIED)).status_code == 200


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_an_agent_and_a_stranger_see_nothing(enter, client, policy, name):
    method = "get" if name in READS else "post"

    stranger = getattr(client, method)(address(name))
    agent = getattr(enter(Role.AGENT), method)(address(name), TRIED)

    assert stranger.status_code == agent.status_code == 302
    assert "login" in stranger["Location"]
    assert "login" in agent["Location"]


def test_a_staff_user_without_the_permission_is_forbidden(client, policy, run):
    user = make_staff(role=None)
    client.force_login(user)

    answers = [client.get(address(name)) for name in READS]
    answers += [client.post(address(name), TRIED) for name in WRITES]
    answers.append(client.get(reverse("admin:qa_policy_calibration")))

    assert {answer.status_code for answer in answers} == {403}


@pytest.mark.parametrize("role", [Role.SME, Role.CURATOR])
def test_who_may_not_steer_makes_no_version_and_rolls_nothing_back(
    enter, policy, run, role
):
    activate(new_version(policy, by=None, alpha=0.6))
    client = enter(role)

    page = client.get(address("calibrate")).content.decode()
    posts = [client.post(address(name), {**TRIED, "run": run.pk}) for name in WRITES]
    posts.append(
        client.post(reverse("admin:qa_policy_roll_back_this", args=[policy.pk]))
    )

    assert {post.status_code for post in posts} == {403}
    assert Policy.objects.count() == 2
    for offered in ("Save as a new version", "Certify", "Roll back"):
        assert offered not in page


@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_written_by_following_a_link(enter, policy, name):
    assert enter(Role.ADMIN).get(address(name)).status_code == 405


@pytest.mark.parametrize("query", [{"run": 999_999}, {"base": "x"}, {"run": "1;"}])
def test_what_is_not_there_is_not_found(enter, policy, query):
    assert enter(Role.ADMIN).get(address("calibrate", **query)).status_code == 404


def test_the_only_knowledge_base_is_gone_on_to_and_several_are_offered(enter, policy):
    client, index = enter(Role.SME), reverse("admin:qa_policy_calibration")

    alone = client.get(index)
    make_knowledge_base("loans")
    several = text_of(client.get(index))

    assert alone["Location"] == address("calibrate").rstrip("?")
    assert "Loans" in several
    assert "Cards" in several


def test_the_effect_on_labelled_answers_is_shown_beside_the_version(enter, policy, run):
    shown = text_of(enter(Role.SME).get(address("try_on_labelled", **TRIED)))

    assert "Of 3 labelled questions 1 are answered, 0 of them wrongly" in shown
    assert "0 false answers, 1 false refusals" in shown
    assert "1 of 3 (33.3\u00a0%) 3 of 3 (100.0\u00a0%)".replace("\u00a0", " ") in shown


def test_the_address_of_the_whole_page_follows_what_is_tried(enter, policy, run):
    client = enter(Role.SME)
    response = client.get(address("try_on_labelled", **TRIED))

    kept = response["HX-Replace-Url"]
    whole = text_of(client.get(kept))

    assert kept.startswith(address("calibrate"))
    assert "Of 3 labelled questions 1 are answered" in whole


def test_the_effect_on_traffic_is_told_in_sentences(enter, policy):
    for down in (True, False):
        answer = make_logged(measured(0.8))
        if down:
            answer.votes.create(user=make_user(), is_up=False)
    make_logged(kept_from_the_model(1.0), **REFUSED)
    make_logged(measured(0.5, 0.62), **REFUSED)
    client = enter(Role.SME)

    strict = text_of(client.get(address("try_on_traffic", **TRIED)))
    lax = text_of(client.get(address("try_on_traffic", **TRIED | {"alpha": "1.1"})))

    assert "2 more refused, 1 of them had thumbs down" in strict
    assert "1 more answered, 0 of them had thumbs down" in strict
    assert "1 are unknown, because an enforced gate kept them" in lax.replace("&#x27;", "'")  # fmt: skip
    assert "4 questions of the last 30 days, evaluations left out." in strict


def test_a_gate_in_shadow_refuses_nothing(enter, policy, run):
    query = TRIED | {"hard_shadow": "on"}

    shown = text_of(enter(Role.SME).get(address("try_on_labelled", **query)))

    assert "Of 3 labelled questions 3 are answered, 1 of them wrongly" in shown


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"alpha": "1.5"}, "horizon"),
        ({"alpha": "-1"}, "greater than or equal to 0"),
        ({"min_verdict": "2"}, "less than or equal to 1"),
        ({"alpha": "nan"}, "Enter a number"),
        ({"alpha": ""}, "required"),
    ],
)
def test_thresholds_that_make_no_sense_are_said_to(enter, policy, run, changes, told):
    client = enter(Role.ADMIN)
    query = TRIED | changes

    for name in ("calibrate", "try_on_labelled"):
        shown = text_of(client.get(address(name, **query)))
        assert told in shown
        assert "Save as a new version" not in shown
    assert text_of(client.get(address("try_on_traffic", **query)))
    saved = client.post(address("save_tried"), query)
    assert "nothing is saved" in text_of(saved)
    assert Policy.objects.count() == 1


def test_what_was_tried_is_saved_as_a_version_that_waits(enter, policy, run):
    form = TRIED | {"run": run.pk, "base": policy.pk, "soft_shadow": "on"}

    saved = enter(Role.ADMIN).post(address("save_tried"), form, follow=True)

    made = Policy.objects.get(version=2)
    assert (made.alpha, made.min_verdict, made.soft_refusal) == (0.7, 0.6, False)
    assert (made.hard_refusal, made.is_active, made.is_calibrated) == (
        True,
        False,
        False,
    )
    assert made.calibrated_embedder == run.embedder
    assert made.created_by is not None
    assert "default v2 is created, set by hand" in text_of(saved)


def test_confidences_are_tried_and_saved_with_the_probes_that_gave_them(enter, policy):
    sure, unsure = (
        measured(0.5, answer_confidence=0.9),
        measured(0.5, answer_confidence=0.2),
    )
    run = make_run(
        labelled("sure", sure, answerable=True, correct=True),
        labelled("unsure", unsure, answerable=True, correct=False),
        probes=PROBES,
    )
    query = TRIED | {"min_confidence": "0.5", "run": run.pk, "base": policy.pk}
    client = enter(Role.ADMIN)

    page = text_of(client.get(address("calibrate", run=run.pk)))
    tried = text_of(client.get(address("try_on_labelled", **query)))
    shadow = text_of(client.get(address("try_on_labelled", **query, abstention_shadow="on")))  # fmt: skip
    client.post(address("save_tried"), query)

    assert "By minimum confidence by activations" in page
    assert "By minimum joint confidence" not in page
    assert "Of 2 labelled questions 1 are answered, 0 of them wrongly" in tried
    assert "Of 2 labelled questions 2 are answered, 1 of them wrongly" in shadow
    made = Policy.objects.get(version=2)
    assert (made.abstention, made.min_confidence) == (True, 0.5)
    assert (made.min_early_confidence, made.calibrated_probes) == (0.0, PROBES)


def many(count: int, *, wrong_every: int) -> list[LabelledAnswer]:
    return [
        labelled(
            str(i),
            measured(0.3 + 0.5 * (i % wrong_every == 0), 0.9),
            answerable=True,
            correct=i % wrong_every != 0,
        )
        for i in range(count)
    ]


def test_a_promise_that_is_earned_becomes_a_version_with_its_certificate(enter, policy):
    run = make_run(*many(400, wrong_every=5), embedder="", language_model="")
    form = {"run": run.pk, "base": policy.pk, "epsilon": "0.05", "delta": "0.1"}

    page = text_of(enter(Role.ADMIN).post(address("certify"), form, follow=True))

    made = Policy.objects.get(version=2)
    assert (made.is_active, made.is_calibrated) == (False, True)
    assert (made.certificate.epsilon, made.certificate.delta) == (0.05, 0.1)
    assert made.certificate.bound <= 0.05
    assert "at most 5.0% wrong, 90% certain" in page
    assert "learn then test" in page
    assert "certified" in page


def test_a_promise_that_is_not_earned_is_said_not_to_be_and_what_is_missing(
    enter, policy, run
):
    form = {"run": run.pk, "base": policy.pk, "epsilon": "0.05", "delta": "0.05"}
    type(run).objects.update(embedder="", language_model="")

    page = text_of(enter(Role.ADMIN).post(address("certify"), form))

    assert "No thresholds earn at most 5.0% wrong with 95% certainty." in page
    assert "it takes 59 shown ones" in page
    assert not Certificate.objects.exists()


def test_a_promise_on_another_models_numbers_is_refused_with_the_reason(enter, policy):
    run = make_run(*many(50, wrong_every=5), retrieval="another way")
    form = {"run": run.pk, "base": policy.pk, "epsilon": "0.05", "delta": "0.05"}

    page = text_of(enter(Role.ADMIN).post(address("certify"), form))

    assert "were measured by the way of searching another way" in page


def test_a_promise_out_of_range_is_refused_beside_its_field(enter, policy, run):
    form = {"run": run.pk, "base": policy.pk, "epsilon": "7", "delta": "0.05"}

    page = text_of(enter(Role.ADMIN).post(address("certify"), form))

    assert "Ensure this value is less than or equal to 0.5" in page
    assert Policy.objects.count() == 1


def test_two_versions_are_compared_value_by_value_and_by_effect(enter, policy, run):
    strict = new_version(policy, by=None, alpha=0.6, soft_refusal=False)
    make_logged(measured(0.8))

    response = enter(Role.ADMIN).get(address("compare", base=policy.pk, new=strict.pk))
    page = text_of(response)

    rows = {row.name: row for row in response.context["values"]}
    assert [name for name, row in rows.items() if row.differs] == [
        "maximum distance",
        "soft refusal",
    ]
    assert rows["maximum distance"].cells == ("0.85", "0.6")
    assert "3 of 3 (100.0 %) 1 of 3 (33.3 %)" in page
    assert "1, 0 of them had thumbs down" in page
    assert "soft refusal in shadow" in page
    assert f"Activate {strict}" in page


def test_a_version_is_promoted_and_rolled_back_and_the_page_tells_when(enter, policy):
    strict = new_version(policy, by=None, alpha=0.6)
    client = enter(Role.ADMIN)
    back = reverse("admin:qa_policy_roll_back_this", args=[strict.pk])

    client.post(reverse("admin:qa_policy_activate_this", args=[strict.pk]))
    promoted = text_of(client.get(address("calibrate")))
    asked = client.get(back)
    still = Policy.objects.get(is_active=True)
    rolled = text_of(client.post(back, follow=True))

    assert f"activated {strict} in place of {policy}, by" in promoted
    assert f"Roll back to {policy}" in promoted
    assert 'id="confirm-action"' in asked.content.decode()
    assert still == strict
    assert f"{policy} decides again, in place of {strict}" in rolled
    assert f"rolled back to {policy}" in rolled
    assert Policy.objects.get(is_active=True) == policy
    assert PolicyActivation.objects.filter(by__isnull=False).count() == 2


def test_rolling_back_what_does_not_decide_says_so(enter, policy):
    strict = new_version(policy, by=None, alpha=0.6)
    back = reverse("admin:qa_policy_roll_back_this", args=[strict.pk])

    page = text_of(enter(Role.ADMIN).post(back, follow=True))

    assert "is not active any more" in page
    assert Policy.objects.get(is_active=True) == policy


def test_the_list_tells_each_versions_standing(enter, policy, run):
    certified, drifted = (
        for_any_models(policy, name) for name in ("certified", "drifted")
    )
    new_version(policy, by=None, name="shadow", hard_refusal=False)
    new_version(policy, by=None, name="stale", calibrated_retrieval="another way")
    for version in (certified, drifted):
        promise = make_certificate(version)
        DriftReading.objects.create(
            certificate=promise,
            answers=500,
            signals={"verified_ratio": {}},
            has_drifted=version == drifted,
        )

    response = enter(Role.SME).get(reverse("admin:qa_policy_changelist"))

    listed = {
        str(row.name): response.context["cl"].model_admin.thresholds(row)[1]
        for row in response.context["cl"].result_list
    }
    assert listed == {
        "default": "hand-set",
        "certified": "certified",
        "drifted": "certified, drifted",
        "shadow": "hand-set",
        "stale": "stale",
    }
    assert "Calibration" in text_of(response)


def for_any_models(policy: Policy, name: str) -> Policy:
    """Make a version that holds for whatever models run."""
    return new_version(
        policy, by=None, name=name, calibrated_embedder="",
        calibrated_language_model="", calibrated_retrieval="",
    )  # fmt: skip


def make_certificate(policy: Policy) -> Certificate:
    return Certificate.objects.create(
        policy=policy, method="learn_then_test", epsilon=0.05, delta=0.05,
        labelled=400, shown=300, wrong=3, bound=0.03, coverage=0.75,
        labels_sha256="a" * 64, labels_source="made up", embedder="",
    )  # fmt: skip


def test_a_look_that_had_too_few_answers_is_no_sign_of_steadiness(enter, policy):
    promise = make_certificate(for_any_models(policy, "new"))
    looks: list[tuple[dict[str, object], bool]] = [
        ({"verified_ratio": {}}, True),
        ({}, False),
    ]
    for signals, has_drifted in looks:
        DriftReading.objects.create(
            certificate=promise, answers=3, signals=signals, has_drifted=has_drifted
        )

    page = text_of(enter(Role.SME).get(address("calibrate")))

    assert "drifted" in page


CURVES = ["refusals", "risk-coverage", "precision-recall", "reliability"]


def curve(name: str, **query: object) -> str:
    base = reverse("admin:qa_policy_curve", args=[make_knowledge_base().pk, name])
    return f"{base}?{'&'.join(f'{k}={v}' for k, v in query.items())}"


@pytest.mark.parametrize("name", CURVES)
def test_every_curve_is_drawn_and_told_in_words_and_numbers(enter, policy, run, name):
    client = enter(Role.SME)

    page = client.get(address("calibrate"))
    drawn = client.get(curve(name, run=run.pk, base=policy.pk))

    figures = {figure.name: figure for figure in page.context["figures"]}
    assert list(figures) == CURVES
    figure = figures[name]
    assert {len(row) for row in figure.rows} == {len(figure.heads)}
    html = page.content.decode()
    assert f'alt="{figure.alternative}"' in html
    assert curve(name, run=run.pk, base=policy.pk).replace("&", "&amp;") in html
    assert drawn["Content-Type"] == "image/svg+xml"
    assert drawn.content.startswith(b"<svg ")
    assert drawn["Cache-Control"] == "private, max-age=3600"


def test_the_numbers_of_the_curves_are_those_of_the_answers(enter, policy, run):
    page = enter(Role.SME).get(address("calibrate"))

    rows = {figure.name: figure.rows for figure in page.context["figures"]}
    assert ("0.85 (own)", "0", "66.7\u00a0%", "0", "66.7\u00a0%") in rows["refusals"]
    assert ("0.6", "2", "100.0\u00a0%", "2", "100.0\u00a0%") in rows["refusals"]
    verdict = "Probability that the model can answer"
    assert rows["reliability"] == (
        (verdict, "0.90 to 0.90", "3", "0.90", "66.7\u00a0%"),
    )
    (risk,) = [
        row for row in rows["risk-coverage"] if row[0].startswith("Best verified")
    ]
    # Shown first: right (0.5), then the false one (0.75), then right (0.8).
    assert (risk[2], risk[5], risk[-1]) == ("0.0\u00a0%", "50.0\u00a0%", "33.3\u00a0%")


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_of_nothing_is_not_found(enter, policy, name):
    assert enter(Role.SME).get(curve(name)).status_code == 404


def test_an_unknown_curve_is_not_found_and_a_stranger_is_sent_away(
    enter, client, policy, run
):
    stranger = client.get(curve("reliability"))
    unknown = enter(Role.SME).get(curve("beauty"))

    assert stranger.status_code == 302
    assert unknown.status_code == 404


def test_the_curve_of_an_unfinished_run_is_not_kept(enter, policy, run):
    type(run).objects.update(state="running", finished_at=None)

    drawn = enter(Role.SME).get(curve("reliability"))

    assert "no-store" in drawn["Cache-Control"]


def test_the_list_counts_each_versions_answers(enter, policy):
    other = new_version(policy, by=None, name="other")
    for _ in range(3):
        make_logged(measured(0.5))

    response = enter(Role.SME).get(reverse("admin:qa_policy_changelist"))

    rows = response.context["cl"].result_list
    assert {row.pk: row.answers_count for row in rows} == {policy.pk: 3, other.pk: 0}


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("calibrate", 18),  # two of them count the inbox, as on every page
        ("try_on_labelled", 14),
        ("try_on_traffic", 12),
        ("compare", 17),
    ],
)
def test_a_page_costs_the_same_for_any_number(
    enter, policy, name, most, django_assert_max_num_queries
):
    for number in range(12):
        make_run(*many(5, wrong_every=2), key=str(number))
        activate(new_version(policy, by=make_user(), alpha=0.1 + number / 20))
        make_logged(measured(0.5))
    client = enter(Role.ADMIN)

    with django_assert_max_num_queries(most):
        assert client.get(address(name, **TRIED)).status_code == 200


def test_a_page_without_anything_labelled_or_logged_says_so(enter, policy):
    page = text_of(enter(Role.ADMIN).get(address("calibrate")))

    assert "No labelled answers of this knowledge base yet" in page
    assert "No question of this period can be replayed." in page


def test_a_form_from_another_site_makes_nothing(policy, run):
    user = make_staff(Role.ADMIN)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)

    forged = [client.post(address(name), TRIED) for name in WRITES]

    assert {each.status_code for each in forged} == {403}
    assert Policy.objects.count() == 1
