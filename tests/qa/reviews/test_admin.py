"""Experts judge on one page, and see how far they agree."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from kb.models import Entry
from probes.models import Probe
from probes.services import promote, register
from qa.models import Review, ReviewSample, ReviewStratum
from qa.reviews.sample_plan import Estimate
from qa.reviews.services import take
from qa.training.outlook import Narrowed
from tests.clients import page_client
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_tag,
    make_user,
)
from tests.probes.probe_files import activation_files
from tests.qa.answer_rows import make_answer
from tests.qa.reviews.review_rows import cited_entry, drawn, make_review

pytestmark = pytest.mark.django_db
QUEUE = reverse("admin:qa_review_changelist")


def signed_in(role: Role | None, **fields) -> tuple[Client, User]:
    user = make_staff(role, **fields)
    client = page_client(user)
    return client, user


def page_of(review: Review) -> str:
    return reverse("admin:qa_review_change", args=[review.pk])


def test_the_button_holds_the_next_and_opens_it():
    client, user = signed_in(Role.SME)
    review = make_review()

    response = client.post(reverse("admin:qa_review_next"), follow=True)

    assert response.redirect_chain[-1][0] == page_of(review)
    review.refresh_from_db()
    assert review.locked_by == user
    page = response.content.decode()
    assert review.answer.question in page
    assert "Is it true to the evidence?" in page
    assert f"· {review.answer.knowledge_base.name} ·" in page
    assert client.get(reverse("admin:qa_review_next")).status_code == 405


def test_an_answer_is_judged_and_the_next_one_opens():
    client, user = signed_in(Role.SME)
    first, second = make_review(), make_review(refused=True)
    take(first.pk, by=user)
    piece = first.answer.evidence.get()
    said = {
        "step": "judge_and_go_on",
        "completeness": "1",
        "correctness": "2",
        "truthfulness": "2",
        "evidence": [piece.pk],
        "ideal_answer": "It costs 12 euros and a stamp.",
        "knowledge": "nothing",
    }

    response = client.post(page_of(first), said, follow=True)

    first.refresh_from_db()
    assert (first.state, first.completeness) == ("done", 1)
    assert first.evidence_used == [piece.pk]
    assert response.redirect_chain[-1][0] == page_of(second)
    assert "Should it have been answered?" in response.content.decode()


@pytest.mark.parametrize(
    ("step", "ended", "undone"),
    [("judge_and_go_on", "done", "locked"), ("skip", "skipped", "waiting")],
)
def test_what_was_saved_or_skipped_is_undone_by_the_message(step, ended, undone):
    client, user = signed_in(Role.SME)
    review = make_review()
    take(review.pk, by=user)
    said = {"step": step, "knowledge": "nothing"}
    grades = dict.fromkeys(("completeness", "correctness", "truthfulness"), "2")

    after = client.post(page_of(review), said | grades, follow=True)
    review.refresh_from_db()
    assert review.state == ended
    offer = re.search(r'name="undo" value="([^"]+)"', after.content.decode())
    assert offer
    back = client.post(reverse("undo"), {"undo": offer[1]}, follow=True)

    review.refresh_from_db()
    assert review.state == undone
    assert back.redirect_chain[-1][0] == page_of(review)


def test_what_is_missing_is_told_and_what_was_said_stays():
    client, user = signed_in(Role.SME)
    review = make_review()
    take(review.pk, by=user)

    response = client.post(
        page_of(review), {"step": "judge", "correctness": "2", "note": "Half a note."}
    )

    page = response.content.decode()
    assert response.status_code == 400
    assert "Is it complete?: This field is required." in page
    assert "Half a note." in page
    review.refresh_from_db()
    assert review.state == "locked"


def test_an_entry_is_added_in_the_same_page():
    client, user = signed_in(Role.CURATOR)
    review = make_review(refused=True)
    audience = make_audience()
    take(review.pk, by=user)
    said = {
        "step": "judge",
        "should_be_answered": "yes",
        "ideal_answer": "It costs 12 euros.",
        "knowledge": "add",
        "audience": audience.pk,
        "verify": "on",
    }

    client.post(page_of(review), said)

    entry = Entry.objects.get()
    review.refresh_from_db()
    assert review.entry == entry
    assert (entry.state, entry.verified_by) == ("verified", user)
    assert f"Entry {entry.pk} was added" in client.get(page_of(review)).content.decode()


def test_an_entry_is_mended_in_the_same_page():
    client, user = signed_in(Role.SME)
    review = make_review()
    found = cited_entry(review)
    take(review.pk, by=user)
    said = {
        "step": "judge",
        "completeness": "2",
        "correctness": "0",
        "truthfulness": "2",
        "knowledge": f"edit-{found.pk}",
        f"text-{found.pk}": "A replacement card costs 15 euros.",
        f"revision-{found.pk}": "1",
    }

    stale = client.post(page_of(review), {**said, f"revision-{found.pk}": "9"})
    assert stale.status_code == 400
    assert "A replacement card costs 15 euros." in stale.content.decode()
    client.post(page_of(review), said)

    found.refresh_from_db()
    assert found.text == "A replacement card costs 15 euros."


def test_a_review_is_passed_on_given_back_and_taken_back():
    client, _ = signed_in(Role.SME)
    review = make_review()
    for step, state in [
        ("take", "locked"),
        ("release", "waiting"),
        ("take", "locked"),
        ("skip", "skipped"),
        ("undo", "waiting"),
    ]:
        client.post(page_of(review), {"step": step})
        review.refresh_from_db()
        assert (step, review.state) == (step, state)


def test_the_second_expert_does_not_see_what_the_first_said():
    client, _ = signed_in(Role.SME)
    first = make_review()
    second = Review.objects.create(answer=first.answer, round=2)
    one, user = signed_in(Role.SME)
    take(first.pk, by=user)
    said = {"completeness": "0", "correctness": "0", "truthfulness": "0"}
    one.post(page_of(first), {"step": "judge", "note": "All wrong.", **said})

    page = client.get(page_of(second)).content.decode()

    assert "All wrong." not in page


def test_what_rests_on_a_secret_is_not_there():
    client, _ = signed_in(Role.SME)
    secret = make_entry("The board.", audience=make_audience("board", groups=["board"]))
    review = Review.objects.create(
        answer=make_answer(make_user(), question="When?", cited=(secret,))
    )

    assert client.get(page_of(review)).status_code == 404
    assert client.post(page_of(review), {"step": "take"}).status_code == 404
    assert "When?" not in client.get(QUEUE).content.decode()
    assert (
        client.get(page_of(review).replace(str(review.pk), "9" * 30)).status_code == 404
    )


def test_agents_have_no_queue():
    client, _ = signed_in(Role.AGENT)

    assert client.get(QUEUE).status_code == 403
    assert client.post(reverse("admin:qa_review_next")).status_code == 403


def test_the_queue_asks_as_much_whatever_its_length():
    client, _ = signed_in(Role.SME)
    counts, page = [], ""
    for _ in range(2):
        make_review(tag=make_tag(), assignee=None)
        make_review(refused=True)
        with CaptureQueriesContext(connection) as asked:
            page = client.get(QUEUE).content.decode()
        counts.append(len(asked))

    assert "4 reviews waiting for you" in page
    assert counts[0] == counts[1] <= 34


def test_tags_that_are_asked_about_and_have_no_expert_are_shown():
    client, user = signed_in(Role.SME)
    lone, known = make_tag("lone"), make_tag("known", user)
    make_tag("unasked")
    for tag in (lone, known):
        make_answer(make_user(), product_line=tag)

    page = client.get(QUEUE).content.decode()

    assert "Tags in use without an expert" in page
    assert "Lone" in page
    assert "1 question in 30 days" in page
    assert "Unasked</a>" not in page


def test_agreement_is_shown_with_its_interval():
    client, _ = signed_in(Role.SME)
    experts = [make_user(Role.SME), make_user(Role.SME)]
    now = timezone.now()
    sample = ReviewSample.objects.create(
        knowledge_base=make_knowledge_base(),
        seed=1,
        hours=1,
        since=now - timedelta(1),
        until=now,
    )
    drawn = ReviewStratum.objects.create(sample=sample, population=6, drawn=6)
    for number in range(6):
        first = make_review(stratum=drawn)
        second = Review.objects.create(answer=first.answer, round=2, stratum=drawn)
        for review, expert in zip((first, second), experts, strict=True):
            grade = 2 if number % 2 else 0
            Review.objects.filter(pk=review.pk).update(
                state="done",
                reviewed_at=review.created_at,
                reviewed_by=expert,
                completeness=2,
                correctness=grade,
                truthfulness=grade,
            )

    page = client.get(QUEUE).content.decode()

    assert "Agreement of two experts" in page
    assert "<td>6</td><td>1.00</td><td>1.00</td>" in page
    assert "not defined: all judgements are the same" in page


def test_a_curator_draws_a_sample_and_an_expert_does_not(
    django_capture_on_commit_callbacks,
):
    from jobs.models import Job

    make_review()
    address = reverse("admin:qa_reviewsample_draw")
    expert, _ = signed_in(Role.SME)
    assert expert.get(address).status_code == 403
    client, user = signed_in(Role.CURATOR)
    fields = client.get(address).context["form"].initial
    given = {**fields, "knowledge_base": fields["knowledge_base"].pk}

    refused = client.post(address, {**given, "hours": "0"})
    assert "hours 0.0 is not in the range 0.05 to 200" in refused.content.decode()
    client.post(address, given)

    job = Job.objects.get()
    assert (job.kind, job.owner) == ("qa.draw_reviews", user)


def test_a_sample_shows_its_strata():
    from tests.qa.reviews.test_sampling import make_answers, order

    make_answers(5)
    make_answers(3, refused=True)
    sample = drawn(order(second_share=0.5))
    client, _ = signed_in(Role.SME)

    listed = client.get(reverse("admin:qa_reviewsample_changelist")).content.decode()
    page = client.get(reverse("admin:qa_reviewsample_change", args=[sample.pk]))

    assert f"{sample.answers} of 8 answers" in listed
    assert "hard refusal" in page.content.decode()
    assert ReviewSample.objects.get().answers == sample.answers


def test_the_list_says_what_reviews_lead_to(settings):
    settings.REVIEW_HOURS_A_WEEK, settings.REVIEW_MINUTES = 1.0, 4.0
    settings.REVIEW_SECOND_SHARE = 0.0
    client, _ = signed_in(Role.SME)

    none = client.get(QUEUE).content.decode()

    assert "0 answers judged; about 15 a week as planned." in none
    assert "retrained after 400 more reviewed answers" in none
    probe = register(activation_files(seed=1))
    promote(probe.pk, Probe.State.ACTIVE, by=None)
    assert "retrained after 50 more reviewed" in client.get(QUEUE).content.decode()


def test_fifty_more_reviews_narrow_an_interval_by_the_root_of_their_number():
    found = Narrowed.of(Estimate(0.1, 0.04, 0.22, 50, 900, 900))

    assert found.low == pytest.approx(0.1 - 0.06 / 2**0.5)
    assert found.high == pytest.approx(0.1 + 0.12 / 2**0.5)
