"""A knowledge base calibrates itself: what is made, when, and what is never replaced."""

from functools import cache

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from kb.entries.bulk import Action, BulkChange, change_visible, enqueue_change
from kb.entries.models import Entry
from nescio.celery import schedules
from probes.verifier.scoring import Verifier
from qa.calibration import self_calibration
from qa.calibration import self_calibration_jobs as jobs
from qa.calibration.own_questions.drawing import draw_questions
from qa.calibration.self_calibration import (
    NAME,
    Mode,
    calibrate_itself,
    is_set_by_hand,
    last_of,
    running,
    set_settings,
)
from qa.calibration.wording import LABELLED, words_of
from qa.evaluation.models import SavedCase
from qa.evaluation.saved_cases import save_case
from qa.exceptions import CalibrationError
from qa.models import Policy, Review, SelfCalibration, SelfCalibrationSettings
from qa.pipeline.policy import default
from qa.policies.services import activate, active_policy, new_version
from tests.clients import rest_client
from tests.factories import (
    make_curator,
    make_entries,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer
from workers.registry import HANDLERS

pytestmark = [pytest.mark.django_db, pytest.mark.verifier]

FACTS = """\
A replacement card costs twelve euros.
Sailing times are posted at the pier each morning.
The museum shop closes an hour before the galleries.
Dogs must be kept on a lead in the orchard.
Parcels above thirty kilograms travel as freight.
The greenhouse tour begins at the southern gate.
Umbrellas can be borrowed from the cloakroom.
Concert tickets are refunded until noon of the day before.
The archive keeps newspapers since the year of its founding.
Bread is baked on weekdays only.
The ferry carries bicycles for a small fee.
Membership ends with the calendar year.
Swimming lessons for children need a parent nearby.
The observatory opens when the sky is clear.
Broken skis are repaired in the cellar workshop.
Choir rehearsals take place on Thursdays.
The vineyard sells juice from last autumn.
Locker keys are handed out against a deposit.
The night bus stops on request.
Beehives may be visited in protective clothing.
Chess boards lie ready in the reading room.
The tower has three hundred steps and no lift.
Firewood is delivered by the stack.
The bakery uses flour from the watermill.""".splitlines()


@pytest.fixture(scope="module", autouse=True)
def _the_same_is_read_once():
    """Let the verifier read a question with its passages once for all tests here.

    It says the same of the same each time, which was three quarters of what they took.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("log_odds", "joint_log_odds"):
            once = cache(getattr(Verifier, name))

            def remembered(verifier, question, passages, once=once):
                return list(once(verifier, question, tuple(passages)))

            patch.setattr(Verifier, name, remembered)
        yield


@pytest.fixture
def base():
    knowledge_base = make_knowledge_base()
    make_entries(FACTS)
    return knowledge_base


@pytest.fixture
def no_worker(monkeypatch):
    monkeypatch.setattr("jobs.services.notify_worker", lambda *_: True)


@pytest.mark.slow
def test_it_makes_a_version_with_what_it_was_measured_on_and_lets_it_decide(base):
    before = active_policy(base)
    kept = calibrate_itself(base, target=0.1)

    assert kept == last_of(base)
    assert (kept.entries, kept.own, kept.foreign) == (24, 24, 60)
    assert kept.curve
    assert len(kept.verifier) == len(kept.embedder) == 64
    made = kept.policy
    assert (made.name, made.is_calibrated) == (NAME, False)
    assert made.min_entry_answer == kept.min_entry_answer
    assert made.min_answerability == kept.min_entry_answer  # nobody lowered it
    assert (made.alpha, made.top_k) == (before.alpha, before.top_k)
    assert made.is_active is (kept.not_activated == "")
    assert kept.is_earned
    assert made.is_active
    assert not is_set_by_hand(made)
    # The same again is no new version.
    assert calibrate_itself(base, target=0.1).policy == made


@pytest.mark.slow
def test_it_asks_the_test_cases_before_it_lets_a_version_decide(base):
    person = make_user(Role.ADMIN)
    question = "Who won the chess game of 1974?"
    kept = {"knowledge_base": base, "entries": [], "asker": person, "by": person}
    case = save_case(question, expects_answer=True, **kept)
    failed = calibrate_itself(base, target=0.1)
    save_case(question, expects_answer=False, **kept)
    passed = calibrate_itself(base, target=0.1)

    assert failed.not_activated == "1 of 1 test cases fail."
    assert not failed.policy.is_active
    assert (passed.not_activated, passed.policy.is_active) == ("", True)
    assert SavedCase.objects.get().pk == case.pk


@pytest.mark.slow
def test_made_questions_alone_do_not_lower_the_default_for_a_target_that_it_keeps(base):
    lax = calibrate_itself(base, target=0.1, mode=Mode.PROPOSE)
    strict = calibrate_itself(base, target=0.06, mode=Mode.PROPOSE)
    assert lax.min_entry_answer < default("min_entry_answer") <= strict.min_entry_answer
    assert strict.min_entry_answer < 1


@pytest.mark.slow
def test_what_a_person_set_is_never_replaced_by_itself(base):
    person = make_user(Role.ADMIN)
    by_hand = activate(
        new_version(active_policy(base), by=person, min_entry_answer=0.93)
    )
    assert is_set_by_hand(by_hand)

    kept = calibrate_itself(base, target=0.1)

    assert active_policy(base) == by_hand
    assert "A person set the thresholds" in kept.not_activated
    assert not kept.policy.is_active
    assert calibrate_itself(base, target=0.1, mode=Mode.ACTIVATE).policy.is_active


def test_a_version_that_keeps_the_thresholds_is_not_set_by_hand(base):
    first = active_policy(base)
    assert not is_set_by_hand(first)
    switched = new_version(first, by=make_user(), reveal_not_entitled=True)
    assert not is_set_by_hand(switched)
    assert is_set_by_hand(new_version(first, by=None, alpha=0.7))


@pytest.mark.slow
def test_it_only_proposes_where_it_is_told_to_and_where_there_are_too_few(base):
    set_settings(base, wrong_share_target=10, calibrates_itself=Mode.PROPOSE)
    kept = calibrate_itself(base)
    assert kept.target == 0.1
    assert not kept.policy.is_active

    set_settings(base, wrong_share_target=100, calibrates_itself=Mode.ACTIVATE)
    few = calibrate_itself(base)
    assert few.policy.min_entry_answer == 1.01
    assert not few.policy.is_active
    assert "too few" in few.not_activated


@pytest.mark.slow
def test_without_a_verifier_or_anything_verified_it_says_so(settings, base):
    Entry.objects.all().delete()
    with pytest.raises(CalibrationError, match="verify some entries"):
        calibrate_itself(base)
    settings.VERIFIER = "none"
    with pytest.raises(CalibrationError, match="no verifier"):
        calibrate_itself(base)


def test_it_is_due_after_enough_verified_entries_changed(base):
    assert jobs.is_due(base)
    SelfCalibration.objects.create(
        knowledge_base=base, policy=active_policy(base), target=0.05, unanswerable=0.5,
        min_entry_answer=0.8, entries=1, own=1, foreign=1, shown=1, wrong=0,
        answered_share=1.0, **dict(zip(
            ("verifier", "embedder", "retrieval"), running(), strict=True)),
    )  # fmt: skip
    assert not jobs.is_due(base)
    make_entries([f"{text} Since spring." for text in FACTS[:20]])
    assert jobs.is_due(base)


def test_it_is_due_again_when_another_verifier_runs(base):
    SelfCalibration.objects.create(
        knowledge_base=base, policy=active_policy(base), target=0.05, unanswerable=0.5,
        min_entry_answer=0.8, entries=1, own=1, foreign=1, shown=1, wrong=0,
        answered_share=1.0, **dict(zip(
            ("verifier", "embedder", "retrieval"), running(), strict=True)),
    )  # fmt: skip
    assert not jobs.is_due(base)
    SelfCalibration.objects.update(verifier="0" * 64)
    assert jobs.is_due(base)


@pytest.mark.parametrize("why", ["off", "calibrated", "shadow", "evaluation", "none"])
def test_it_is_never_due(settings, base, why):
    policy = active_policy(base)
    match why:
        case "off":
            set_settings(base, wrong_share_target=20, calibrates_itself=Mode.OFF)
        case "calibrated":
            activate(new_version(policy, by=None, is_calibrated=True))
        case "shadow":
            activate(new_version(policy, by=None, verification=False))
        case "evaluation":
            base.slug = "eval-cards"
        case "none":
            settings.VERIFIER = "none"
    assert not jobs.is_due(base)


def test_verifying_many_lets_it_look_whether_it_is_due(no_worker):
    made = make_entries(FACTS, verify=False)
    ids, carla = [entry.pk for entry in made], make_curator()

    change_visible(ids, BulkChange(Action.MARK), by=carla)
    assert not Job.objects.filter(kind=jobs.CHECK_KIND).exists()
    for some in (ids[:2], ids[2:]):
        change_visible(some, BulkChange(Action.VERIFY), by=carla)
    run_job(Job.objects.get(kind=jobs.CHECK_KIND).pk, HANDLERS)

    assert Job.objects.filter(kind=jobs.KIND).count() == 1


def test_a_job_that_verifies_many_does_so_at_its_end(no_worker):
    made = make_entries(FACTS, verify=False)
    ids, verify = [entry.pk for entry in made], BulkChange(Action.VERIFY)
    job = enqueue_change(ids, verify, by=make_curator())

    run_job(job.pk, HANDLERS)
    run_job(
        enqueue_change(ids[:1], BulkChange(Action.MARK), by=make_curator()).pk, HANDLERS
    )

    job.refresh_from_db()
    assert job.result["changed"] == len(FACTS)
    assert Job.objects.filter(kind=jobs.CHECK_KIND).count() == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_what_is_due_is_enqueued_once_and_done_by_a_job(base, no_worker):
    for _ in range(2):
        run_job(jobs.enqueue_check().pk, HANDLERS)
    job = Job.objects.get(kind=jobs.KIND)

    run_job(job.pk, HANDLERS)

    job.refresh_from_db()
    assert job.state == Job.State.SUCCEEDED, job.error
    assert job.result["calibrated"]
    assert (job.done, job.total) == (84, 84)
    assert job.result["policy"] == SelfCalibration.objects.get().policy.pk
    assert "calibrate_where_due" in schedules()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_what_is_imported_while_it_measures_is_measured_too(
    base, no_worker, monkeypatch
):
    """A threshold from a part of the files would stand until the next look."""

    def draw_before_an_import(*args, **options):
        found = draw_questions(*args, **options)
        if not SelfCalibration.objects.exists():
            make_entries([f"{text} Since spring." for text in FACTS])
        return found

    monkeypatch.setattr(self_calibration, "draw_questions", draw_before_an_import)
    run_job(jobs.enqueue_calibration(base).pk, HANDLERS)

    counts = SelfCalibration.objects.order_by("pk").values_list("entries", flat=True)
    assert list(counts) == [24, 48]
    assert not jobs.is_due(base)


@pytest.mark.slow
def test_the_command_prints_thresholds_counts_shares_and_that_they_are_synthetic(
    base, capsys
):
    call_command("calibrate", "itself", knowledge_base="cards", target=0.1)
    said = capsys.readouterr().out
    assert "At most 10.0% of the shown answers wrong" in said
    assert "min_entry_answer = " in said
    assert "24 own questions about 24 entries" in said
    assert "95 % interval" in said
    assert "These questions are made from the entries themselves, so this is an" in said
    assert "on questions made from the knowledge base itself" in said
    assert "waits to be activated" in said
    assert not Policy.objects.get(name=NAME).is_active


def test_the_page_says_where_no_verifier_reads_the_language(client: Client):
    client.force_login(make_staff(Role.ADMIN))
    town = make_knowledge_base("town", language="de")

    said = client.get(reverse("admin:qa_policy_calibrate", args=[town.pk]))

    assert "no verifier reads its language" in said.content.decode()
    assert 'value="calibrate"' not in said.content.decode()


@pytest.mark.slow
def test_the_page_and_rest_show_it(base, client: Client, no_worker):
    admin = make_staff(Role.ADMIN)
    client.force_login(admin)
    page = reverse("admin:qa_policy_calibrate", args=[base.pk])
    assert "has not calibrated itself yet" in client.get(page).content.decode()
    kept = calibrate_itself(base, target=0.1, mode=Mode.PROPOSE)

    shown = client.get(page).content.decode()
    assert "this is an upper limit: people ask in other words" in shown
    assert f'href="{reverse("admin:qa_review_changelist")}">Reviews</a>' in shown
    curve = client.get(
        reverse("admin:qa_policy_curve", args=[base.pk, "own-questions"]),
        {"of": kept.pk},
    )
    answer = client.post(
        reverse("admin:qa_policy_itself", args=[base.pk]),
        {
            "wrong_share_target": "50",
            "calibrates_itself": "propose",
            "uses_evaluations": "on",
            "then": "calibrate",
        },
    )

    assert "At most 10.0% of the shown answers wrong" in shown
    assert "Calibrate again" in shown
    assert reverse("admin:qa_policy_activate_this", args=[kept.policy.pk]) in shown
    assert not any(text in shown for text in FACTS)
    assert b"<svg" in curve.content
    assert answer.status_code == 302
    assert SelfCalibrationSettings.objects.get().target == 0.02
    assert SelfCalibrationSettings.objects.get().uses_evaluations
    assert Job.objects.filter(kind=jobs.KIND).exists()

    api = rest_client(admin)
    body = api.get(f"/api/v1/policies/{kept.policy.pk}").json()
    assert body["self_calibration"]["own"] == 24
    assert body["self_calibration"]["curve"]
    assert body["calibration"] == "self_calibrated"
    plain = api.get(f"/api/v1/policies/{Policy.objects.earliest('pk').pk}").json()
    assert plain["self_calibration"] is None


@pytest.mark.slow
def test_questions_judged_in_reviews_take_the_place_of_made_ones(base):
    asker = make_user()
    for number in range(20):
        answer = make_answer(asker, question=f"How deep is lake number {number}?")
        Review.objects.create(
            answer=answer, state="done", reviewed_at=timezone.now(),
            should_be_answered=False,
        )  # fmt: skip
    assert jobs.is_due(base)

    kept = calibrate_itself(base, target=0.1)

    assert (kept.reviewed, kept.evaluated, kept.own, kept.entries) == (20, 0, 24, 24)
    assert kept.foreign <= 56  # of 60, as 20 of 300 places are taken
    said = words_of(kept)
    assert said.counts.startswith("20 questions judged by experts in reviews")
    assert said.origin == LABELLED
    assert said.upper_end.startswith("24 of these questions are made from the entries")
    assert not jobs.is_due(base)
    Review.objects.update(reviewed_at=timezone.now())
    assert jobs.is_due(base)


@pytest.mark.slow
def test_what_one_expert_alone_calls_wrong_makes_no_stricter_version_decide(base):
    asker = make_user()
    wrong = {"completeness": 2, "correctness": 0, "truthfulness": 2}
    called_wrong = {**wrong, "state": "done", "reviewed_at": timezone.now()}
    signal = {"gate": "entry", "name": "entry_answers", "value": 0.97}
    for entry in Entry.objects.order_by("pk")[:12]:
        answer = make_answer(
            asker, question=entry.text, cited=(entry,),
            signals=[{**signal, "threshold": 0.8, "passed": True}],
        )  # fmt: skip
        Review.objects.create(answer=answer, **called_wrong)

    doubted = calibrate_itself(base, target=0.1)

    assert "12 reviews by a single expert" in doubted.not_activated
    assert not doubted.policy.is_active
    assert doubted.policy.min_entry_answer > active_policy(base).min_entry_answer

    for first in list(Review.objects.all()):
        Review.objects.create(answer=first.answer, round=2, **called_wrong)
    confirmed = calibrate_itself(base, target=0.1)

    assert confirmed.min_entry_answer == doubted.min_entry_answer
    assert (confirmed.not_activated, confirmed.policy.is_active) == ("", True)


def test_who_may_not_steer_changes_nothing(base, client: Client):
    expert = make_staff(Role.SME)
    client.force_login(expert)
    address = reverse("admin:qa_policy_itself", args=[base.pk])
    assert client.post(address, {"calibrates_itself": "off"}).status_code == 403
    assert client.get(address).status_code == 405
