"""Retraining: by itself when reviews came, decided by an administrator, reversible."""

from dataclasses import replace

import pytest
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from probes.cards import ANSWER_KINDS, ProbeKind
from probes.models import Probe
from probes.services import promote, register
from qa.exceptions import (
    RetrainingNotFoundError,
    RetrainingStateError,
    TrainingDataError,
)
from qa.models import Retraining
from qa.policies.services import activate, active_policy, new_version
from qa.training.retraining import (
    KIND,
    Comparison,
    approve,
    begin,
    conclude,
    decline,
    enqueue_due,
    enqueue_retraining,
    equally_strict,
    fail,
    take_back,
)
from tests.factories import make_knowledge_base, make_staff, make_user
from tests.probes.probe_files import activation_files, joint_probe_files
from workers.registry import HANDLERS

pytestmark = pytest.mark.django_db

BETTER = Comparison(90, 50, 0.7, 0.8, 0.02, 0.18)
NOT_BETTER = Comparison(90, 50, 0.7, 0.71, -0.05, 0.07)


@pytest.fixture
def admin():
    return make_user(Role.ADMIN)


@pytest.fixture
def champion():
    probe = register(activation_files(seed=1))
    return promote(probe.pk, Probe.State.ACTIVE, by=None)


@pytest.fixture
def challenger():
    return register(activation_files(seed=2))


def concluded(comparison, champion, challenger):
    job = Job.objects.create(kind=KIND)
    retraining = begin(ProbeKind.ABSTENTION, job_id=job.pk, by=None)
    conclude(
        retraining, comparison, champion=champion, challenger=challenger,
        labels=420, labels_right=200,
    )  # fmt: skip
    return retraining


def states(*probes):
    return [Probe.objects.get(pk=probe.pk).state for probe in probes]


class TestWhatComesByItself:
    def test_nothing_before_there_are_enough_reviews_to_train_on(self):
        assert enqueue_due(reviewed=399) == []

    def test_every_kind_once_there_are(self):
        jobs = enqueue_due(reviewed=400)

        assert [job.parameters["kind"] for job in jobs] == [*ANSWER_KINDS]
        assert enqueue_due(reviewed=400) == jobs

    def test_again_after_enough_new_ones(self, settings):
        settings.RETRAIN_AFTER = 50
        for kind in ANSWER_KINDS:
            Retraining.objects.create(kind=kind, state="shadow", reviewed=500)

        assert enqueue_due(reviewed=549) == []
        assert len(enqueue_due(reviewed=550)) == len(ANSWER_KINDS)

    def test_also_after_enough_were_taken_back(self, settings):
        settings.RETRAIN_AFTER = 50
        for kind in ANSWER_KINDS:
            Retraining.objects.create(kind=kind, state="shadow", reviewed=500)

        assert len(enqueue_due(reviewed=450)) == len(ANSWER_KINDS)

    def test_not_while_one_waits_for_approval(self):
        for kind in ANSWER_KINDS:
            Retraining.objects.create(kind=kind, state="waiting", reviewed=0)

        assert enqueue_due(reviewed=5_000) == []

    def test_one_whose_job_was_cancelled_blocks_nothing(self):
        job = Job.objects.create(kind=KIND, state=Job.State.CANCELLED)
        begin(ProbeKind.EARLY, job_id=job.pk, by=None)

        kinds = [job.parameters["kind"] for job in enqueue_due(reviewed=400)]

        assert ProbeKind.EARLY in kinds

    def test_nothing_where_it_is_switched_off(self, settings):
        settings.RETRAIN_AFTER = 0

        assert enqueue_due(reviewed=5_000) == []


@pytest.mark.parametrize(
    ("scores", "minimum", "expected"),
    [
        # None of the former probe's shown is wrong: nor may one of the new one's be.
        ([(0.9, 0.6, True, 1.0), (0.1, 0.4, False, 1.0)], 0.5, 0.6),
        ([(0.9, 0.6, True, 1.0), (0.1, 0.7, False, 1.0)], 0.5, 0.7 + 1e-9),
        # A wrong one that stands for three outweighs two that were shown.
        (
            [(0.9, 0.2, False, 1.0), (0.8, 0.3, False, 1.0), (0.1, 0.4, False, 3.0),
             (0.9, 0.5, True, 1.0)],
            0.5,
            0.5,
        ),
        ([(0.9, 0.2, False, 1.0), (0.9, 0.5, True, 1.0)], 0.5, 0.2),
    ],
)  # fmt: skip
def test_a_minimum_is_the_least_that_shows_no_more_wrong_ones(
    scores, minimum, expected
):
    assert equally_strict(scores, minimum) == pytest.approx(expected, abs=1e-8)


class TestWhatBecomesOfIt:
    def test_a_better_one_runs_in_shadow_until_it_is_approved(
        self, champion, challenger
    ):
        retraining = concluded(BETTER, champion, challenger)

        assert retraining.state == Retraining.State.WAITING
        assert states(champion, challenger) == ["active", "shadow"]

    def test_one_that_is_not_better_stays_in_shadow(self, champion, challenger, admin):
        retraining = concluded(NOT_BETTER, champion, challenger)

        assert retraining.state == Retraining.State.SHADOW
        with pytest.raises(RetrainingStateError, match="not better"):
            approve(retraining.pk, by=admin)
        assert states(champion, challenger) == ["active", "shadow"]

    def test_an_approved_one_decides(self, champion, challenger, admin):
        retraining = concluded(BETTER, champion, challenger)

        approve(retraining.pk, by=admin)

        assert states(champion, challenger) == ["retired", "active"]

    def test_an_approved_one_brings_minimums_that_show_no_more_wrong_answers(
        self, champion, challenger, admin
    ):
        base = active_policy(make_knowledge_base())
        policy = new_version(
            base, by=admin, min_confidence=0.5, calibrated_probes=champion.fingerprint
        )
        activate(policy, by=admin)
        # The champion shows one wrong answer at 0.5, and two of three right ones.
        scores = [
            (0.9, 0.2, False, 1.0), (0.4, 0.3, False, 1.0), (0.2, 0.6, False, 1.0),
            (0.8, 0.7, True, 1.0), (0.6, 0.5, True, 1.0), (0.3, 0.4, True, 1.0),
        ]  # fmt: skip
        retraining = concluded(replace(BETTER, scores=scores), champion, challenger)

        approve(retraining.pk, by=admin)

        deciding = active_policy(make_knowledge_base())
        assert deciding.min_confidence == 0.4
        assert deciding.calibrated_probes == challenger.fingerprint
        take_back(retraining.pk, by=admin)
        assert active_policy(make_knowledge_base()) == policy

    def test_what_is_for_other_probes_or_holds_no_confidence_stays(
        self, champion, challenger, admin
    ):
        none = active_policy(make_knowledge_base())
        other = new_version(
            active_policy(make_knowledge_base("loans")),
            by=admin,
            min_confidence=0.5,
            calibrated_probes="0" * 64,
        )
        activate(other, by=admin)
        scores = [(0.9, 0.2, False, 1.0), (0.8, 0.7, True, 1.0)]
        retraining = concluded(replace(BETTER, scores=scores), champion, challenger)

        approve(retraining.pk, by=admin)

        assert active_policy(make_knowledge_base()) == none
        assert active_policy(make_knowledge_base("loans")) == other

    def test_a_declined_one_does_not(self, champion, challenger, admin):
        retraining = concluded(BETTER, champion, challenger)

        decline(retraining.pk, by=admin)

        assert states(champion, challenger) == ["active", "shadow"]

    def test_what_was_approved_is_taken_back(self, champion, challenger, admin):
        retraining = concluded(BETTER, champion, challenger)
        approve(retraining.pk, by=admin)

        take_back(retraining.pk, by=admin)

        assert states(champion, challenger) == ["active", "shadow"]

    def test_without_a_champion_there_is_none_to_go_back_to(self, challenger, admin):
        retraining = concluded(BETTER, None, challenger)
        approve(retraining.pk, by=admin)

        take_back(retraining.pk, by=admin)

        assert states(challenger) == ["shadow"]

    def test_one_compared_with_a_probe_that_decides_no_more_is_not_approved(
        self, champion, challenger, admin
    ):
        retraining = concluded(BETTER, champion, challenger)
        other = register(activation_files(seed=3))
        promote(other.pk, Probe.State.ACTIVE, by=admin)

        with pytest.raises(RetrainingStateError, match="train again"):
            approve(retraining.pk, by=admin)

    def test_the_joint_probe_on_top_is_trained_anew(self, champion, challenger, admin):
        joint = register(joint_probe_files())
        promote(joint.pk, Probe.State.ACTIVE, by=None)
        retraining = concluded(BETTER, champion, challenger)

        approve(retraining.pk, by=admin)

        (job,) = Job.objects.filter(kind=KIND, state=Job.State.QUEUED, owner=admin)
        assert job.parameters == {"kind": "joint"}

    def test_every_step_is_on_record(self, champion, challenger, admin):
        retraining = concluded(BETTER, champion, challenger)
        approve(retraining.pk, by=admin)
        take_back(retraining.pk, by=admin, note="Too strict.")

        steps = retraining.steps.values_list("before", "after", "by", "note")

        assert [*steps] == [
            ("", "training", None, ""),
            ("training", "waiting", None, ""),
            ("waiting", "promoted", admin.pk, ""),
            ("promoted", "reverted", admin.pk, "Too strict."),
        ]

    def test_an_attempt_after_a_kill_goes_on_with_the_same_row(self):
        first = begin(ProbeKind.EARLY, job_id=Job.objects.create(kind=KIND).pk, by=None)
        again = begin(ProbeKind.EARLY, job_id=Job.objects.create(kind=KIND).pk, by=None)

        assert first.pk == again.pk

    def test_one_that_is_not_there_is_told(self, admin):
        with pytest.raises(RetrainingNotFoundError, match="12345"):
            approve(12345, by=admin)


def test_too_few_labels_are_a_result_and_no_failed_job():
    job = enqueue_retraining(ProbeKind.ABSTENTION)

    run_job(job.pk, HANDLERS)

    job.refresh_from_db()
    retraining = Retraining.objects.get()
    assert job.state == Job.State.SUCCEEDED, job.error
    assert retraining.state == Retraining.State.FAILED
    assert "to compare probes on" in retraining.reason


def test_a_kind_that_is_none_fails_the_job():
    job = Job.objects.create(kind=KIND, parameters={"kind": "truth"})

    with pytest.raises(TrainingDataError, match="truth"):
        run_job(job.pk, HANDLERS)

    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert not Retraining.objects.exists()


class TestThePage:
    LIST = reverse("admin:qa_retraining_changelist")

    @pytest.fixture
    def page(self, client, admin):
        admin.is_staff = True
        admin.save()
        client.force_login(admin)
        return client

    def address(self, name, retraining):
        return reverse(f"admin:qa_retraining_{name}", args=[retraining.pk])

    def test_shows_both_probes_and_what_they_are_worth(
        self, page, champion, challenger
    ):
        retraining = concluded(BETTER, champion, challenger)

        shown = page.get(self.address("change", retraining)).content.decode()

        assert "+0.100 [+0.020, +0.180]" in shown
        assert str(champion) in shown
        assert str(challenger) in shown
        assert "better, waiting for approval" in shown

    def test_offers_what_can_be_done_as_it_stands(
        self, page, champion, challenger, admin
    ):
        retraining = concluded(BETTER, champion, challenger)
        address = self.address("change", retraining)

        waiting = page.get(address).content.decode()
        approve(retraining.pk, by=admin)
        promoted = page.get(address).content.decode()

        assert "Approve and activate" in waiting
        assert "Take back" not in waiting
        assert "Approve and activate" not in promoted
        assert "Take back" in promoted

    def test_approves_after_asking(self, page, champion, challenger):
        retraining = concluded(BETTER, champion, challenger)
        address = self.address("approve_this", retraining)

        asked = page.get(address).content.decode()
        assert "instead of the former one" in asked
        assert states(challenger) == ["shadow"]
        page.post(address)

        assert states(champion, challenger) == ["retired", "active"]

    def test_says_why_something_can_not_be_done(self, page, champion, challenger):
        retraining = concluded(NOT_BETTER, champion, challenger)

        said = page.post(self.address("take_this_back", retraining), follow=True)

        assert "can&#x27;t be taken back" in said.content.decode()

    def test_begins_nothing_with_too_few_reviews(self, page):
        address = reverse("admin:qa_retraining_retrain")

        said = page.post(address, follow=True)

        assert "0 answers are reviewed, but 400 are needed" in said.content.decode()
        assert not Job.objects.exists()

    def test_is_not_for_experts(self, client):
        user = make_staff(Role.SME)
        client.force_login(user)

        assert client.get(self.LIST).status_code == 403

    def test_lists_with_a_number_of_queries_that_does_not_grow(
        self, page, champion, challenger, django_assert_max_num_queries
    ):
        for _ in range(5):
            fail(concluded(NOT_BETTER, champion, challenger), "again")
        with django_assert_max_num_queries(15):
            page.get(self.LIST)
