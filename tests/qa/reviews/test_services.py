"""Who judges what: locks, passing on, taking back, second rounds, and what comes of it."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from accounts.roles import Role
from kb.exceptions import RevisionConflictError
from kb.models import Entry
from qa.answers.submitted_text import EntryOptions
from qa.exceptions import InvalidReviewError, ReviewNotFoundError, ReviewStateError
from qa.models import Review
from qa.policies.services import activate, active_policy, new_version
from qa.reviews.judgements import Correction, Judgement
from qa.reviews.services import assign, judge, release, skip, take, take_next, undo
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
)
from tests.qa.answer_rows import make_answer
from tests.qa.reviews.review_rows import cited_entry, entry_of, make_review

pytestmark = pytest.mark.django_db

RIGHT = Judgement(completeness=2, correctness=2, truthfulness=2)
FALSE_REFUSAL = Judgement(should_be_answered=True, ideal_answer="It costs 12 euros.")


@pytest.fixture
def expert():
    return make_user(Role.SME)


@pytest.fixture
def other():
    return make_user(Role.SME)


def test_a_held_review_is_nobody_elses(expert, other):
    review = make_review()
    take(review.pk, by=expert)

    with pytest.raises(ReviewStateError, match=f"held by {expert.username}"):
        take(review.pk, by=other)
    with pytest.raises(ReviewStateError, match="held by"):
        judge(review.pk, RIGHT, by=other)

    assert take_next(other) is None
    assert take_next(expert) == review


def test_a_hold_ends_by_itself(expert, other):
    review = make_review()
    take(review.pk, by=expert)
    Review.objects.update(locked_until=timezone.now() - timedelta(seconds=1))

    assert take_next(other) == review
    review.refresh_from_db()
    assert review.locked_by == other


def test_opening_it_again_does_not_lengthen_the_hold(expert):
    review = make_review()
    first = take(review.pk, by=expert).locked_until

    assert take(review.pk, by=expert).locked_until == first


def test_what_is_given_back_waits_for_all(expert, other):
    review = make_review()
    take(review.pk, by=expert)
    with pytest.raises(ReviewStateError):
        release(review.pk, by=other)

    release(review.pk, by=expert)

    assert take_next(other) == review


@pytest.mark.slow
def test_the_queue_begins_with_ones_own_tags_and_ends_with_others(expert, other):
    theirs = make_review(tag=make_tag("loans", other))
    nobodys = make_review()
    mine = make_review(tag=make_tag("cards", expert))
    asked = make_review(assignee=expert)
    make_review(assignee=other)

    order = []
    while (review := take_next(expert)) is not None:
        order.append(review)
        judge(review.pk, RIGHT, by=expert)

    assert order == [asked, mine, nobodys, theirs]


def test_what_is_passed_on_goes_to_others_behind_what_waits(expert, other):
    first, second = make_review(), make_review()
    take(first.pk, by=expert)
    skip(first.pk, by=expert)

    assert take_next(expert) == second
    release(second.pk, by=expert)
    assert take_next(other) == second
    judge(second.pk, RIGHT, by=other)
    assert take_next(other) == first
    assert take_next(expert) is None


def test_what_nobody_went_on_with_waits_again_before_what_was_skipped(expert, other):
    left, skipped, waiting = make_review(), make_review(), make_review()
    skip(skipped.pk, by=expert)
    take(left.pk, by=expert)
    Review.objects.filter(pk=left.pk).update(locked_until=timezone.now())

    assert take_next(other) == left
    judge(left.pk, RIGHT, by=other)
    assert take_next(other) == waiting


def test_a_first_review_comes_before_the_second_of_an_answer_that_has_none(expert):
    second, first = make_review(round=2), make_review()

    assert take_next(expert) == first
    judge(first.pk, RIGHT, by=expert)
    assert take_next(expert) == second


def test_passing_on_is_taken_back(expert, other):
    review = make_review()
    skip(review.pk, by=expert)
    with pytest.raises(ReviewStateError):
        undo(review.pk, by=other)

    undo(review.pk, by=expert)

    assert take_next(expert) == review


def test_a_judgement_is_kept_with_who_gave_it_and_how_long_it_took(expert):
    review = make_review()
    take(review.pk, by=expert)
    Review.objects.update(
        locked_until=timezone.now() + timedelta(minutes=30) - timedelta(seconds=90)
    )
    piece = review.answer.evidence.get()
    said = Judgement(
        completeness=1,
        correctness=2,
        truthfulness=2,
        evidence_used=(piece.pk,),
        note=" Fine. ",
    )

    done = judge(review.pk, said, by=expert)

    done.refresh_from_db()
    assert (done.state, done.reviewed_by) == ("done", expert)
    assert done.seconds_spent == pytest.approx(90, abs=2)
    assert (done.evidence_used, done.note) == ([piece.pk], "Fine.")
    assert done.is_right_to_show is True
    right = Review.objects.done().filter(correctness=2, truthfulness=2)
    assert [*right] == [done]


@pytest.mark.parametrize(
    ("policy", "completeness", "marks", "is_right"),
    [
        ({}, 1, "unused", True),
        ({"completeness_counts": True}, 1, "", False),
        ({"completeness_counts": True}, 2, "unused", True),
        ({"marked_evidence_counts": True}, 1, "unused", False),
        ({"marked_evidence_counts": True}, 1, "cited", True),
        ({"marked_evidence_counts": True}, 1, "", True),
    ],
)
def test_a_policy_may_ask_for_completeness_and_the_marked_evidence(
    expert, policy, completeness, marks, is_right
):
    base = active_policy(make_knowledge_base())
    activate(new_version(base, by=None, **policy))
    answer = make_answer(
        make_user(), cited=(make_entry("a"),), unused=(make_entry("b"),)
    )
    review = Review.objects.create(answer=answer)
    marked = [piece.pk for piece in answer.evidence.filter(role=marks)]

    said = Judgement(
        completeness=completeness, correctness=2, truthfulness=2, evidence_used=marked
    )
    done = judge(review.pk, said, by=expert)

    assert done.is_right_to_show is is_right
    # What is judged stays so, whatever the policy asks for later.
    activate(new_version(base, by=None))
    done.refresh_from_db()
    assert done.is_right_to_show is is_right


def test_only_what_is_wholly_right_and_true_to_the_evidence_is_right_to_show(expert):
    said = [(2, 2), (1, 2), (2, 1), (0, 0)]
    for correctness, truthfulness in said:
        given = Judgement(
            completeness=2, correctness=correctness, truthfulness=truthfulness
        )
        judge(make_review().pk, given, by=expert)

    found = Review.objects.order_by("pk")
    assert [each.is_right_to_show for each in found] == [True, False, False, False]
    right = Review.objects.done().filter(correctness=2, truthfulness=2)
    wrong = Review.objects.done().filter(Q(correctness__lt=2) | Q(truthfulness__lt=2))
    assert (right.count(), wrong.count()) == (1, 3)


def test_of_a_refusal_it_is_said_whether_it_was_a_false_one(expert):
    review = make_review(refused=True)
    with pytest.raises(InvalidReviewError, match="no completeness"):
        judge(review.pk, RIGHT, by=expert)
    with pytest.raises(InvalidReviewError, match="should have been answered"):
        judge(review.pk, Judgement(), by=expert)

    judge(review.pk, FALSE_REFUSAL, by=expert)

    found = Review.objects.done().get()
    assert (found.should_be_answered, found.is_right_to_show) == (True, None)
    assert [*Review.objects.done().filter(should_be_answered=True)] == [review]


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"correctness": None}, "correctness is missing"),
        ({"truthfulness": 3}, "truthfulness 3 is not one of"),
        ({"should_be_answered": True}, "only to refusals"),
        ({"evidence_used": (0,)}, "Evidence 0 does not belong to this answer"),
        ({"ideal_answer": "x" * 8001}, "8001 characters"),
        ({"note": "\x00"}, "NUL"),
    ],
)
def test_what_can_not_be_said_changes_nothing(expert, said, match):
    review = make_review()
    given = {"completeness": 2, "correctness": 2, "truthfulness": 2, **said}

    with pytest.raises(InvalidReviewError, match=match):
        judge(review.pk, Judgement(**given), by=expert)

    review.refresh_from_db()
    assert (review.state, review.reviewed_at) == ("waiting", None)


def test_a_judgement_is_taken_back_and_stays_as_a_draft(expert, other):
    review = make_review()
    judge(review.pk, RIGHT, by=expert)
    with pytest.raises(ReviewStateError):
        undo(review.pk, by=other)

    undo(review.pk, by=expert)

    review.refresh_from_db()
    assert (review.state, review.locked_by, review.correctness) == ("locked", expert, 2)
    assert not Review.objects.done().exists()
    assert judge(review.pk, RIGHT, by=expert).state == "done"


def test_somebody_elses_draft_is_not_seen(expert, other):
    review = make_review()
    judge(review.pk, RIGHT, by=expert)
    undo(review.pk, by=expert)
    release(review.pk, by=expert)

    assert take(review.pk, by=other).correctness is None


def test_a_second_opinion_is_somebody_elses(expert, other):
    first = make_review()
    second = Review.objects.create(answer=first.answer, round=2)
    judge(first.pk, RIGHT, by=expert)

    assert take_next(expert) is None
    with pytest.raises(ReviewStateError, match="second opinion"):
        take(second.pk, by=expert)
    assert take_next(other) == second


def test_both_rounds_of_an_answer_are_asked_of_two_experts(expert, other):
    first = make_review()
    second = Review.objects.create(answer=first.answer, round=2)
    assign(first.pk, to=expert, by=expert)

    with pytest.raises(InvalidReviewError, match="somebody else"):
        assign(second.pk, to=expert, by=expert)
    assign(second.pk, to=other, by=expert)
    other.is_active = False
    other.save()
    assert take_next(make_user(Role.SME)) == second


def test_who_passed_it_on_may_be_asked_again(expert):
    review = make_review()
    skip(review.pk, by=expert)

    assert take_next(expert) is None
    assign(review.pk, to=expert, by=expert)
    assert take_next(expert) == review


def test_the_ideal_answer_becomes_an_entry_that_waits_for_review(expert):
    tag = make_tag()
    review = make_review(refused=True)
    review.answer.product_line = tag
    review.answer.save()
    said = Judgement(
        should_be_answered=True,
        ideal_answer="It costs 12 euros.",
        knowledge=EntryOptions(make_audience()),
    )

    entry = entry_of(judge(review.pk, said, by=expert))

    assert (entry.state, entry.origin, entry.product_line) == (
        "in_review",
        "review",
        tag,
    )
    assert (entry.question, entry.text) == (
        review.answer.question,
        "It costs 12 euros.",
    )


def test_only_curators_verify_what_they_add(expert):
    review = make_review(refused=True)
    said = Judgement(
        should_be_answered=True,
        ideal_answer="It costs 12 euros.",
        knowledge=EntryOptions(make_audience(), verify=True),
    )
    with pytest.raises(InvalidReviewError, match="Only curators verify"):
        judge(review.pk, said, by=expert)
    assert not Entry.objects.exists()

    entry = entry_of(judge(review.pk, said, by=make_user(Role.CURATOR)))

    assert entry.state == "verified"


def test_an_entry_that_was_found_is_mended(expert):
    review = make_review()
    found = cited_entry(review)
    fix = Correction(found.pk, "A replacement card costs 15 euros.", revision=1)
    said = Judgement(completeness=2, correctness=0, truthfulness=2, knowledge=fix)

    judge(review.pk, said, by=expert)

    found.refresh_from_db()
    assert (found.text, found.state) == (
        "A replacement card costs 15 euros.",
        "needs_review",
    )
    assert Review.objects.get().entry == found


def test_an_entry_that_changed_meanwhile_is_not_overwritten(expert):
    review = make_review()
    found = cited_entry(review)
    said = Judgement(
        completeness=2,
        correctness=0,
        truthfulness=2,
        knowledge=Correction(found.pk, "Another text.", revision=7),
    )

    with pytest.raises(RevisionConflictError):
        judge(review.pk, said, by=expert)

    review.refresh_from_db()
    assert review.state == "waiting"


def test_no_other_entry_is_mended(expert):
    elsewhere = make_entry("Loans take a week.")
    said = Judgement(
        completeness=2,
        correctness=0,
        truthfulness=2,
        knowledge=Correction(elsewhere.pk, "Another text."),
    )

    with pytest.raises(InvalidReviewError, match="was not found for this question"):
        judge(make_review().pk, said, by=expert)


def test_an_answer_that_rests_on_what_one_may_not_see_is_not_ones_to_judge(expert):
    secret = make_entry(
        "The board meets on Monday.", audience=make_audience("board", groups=["board"])
    )
    answer = make_answer(make_user(groups=["board"]), cited=(secret,))
    review = Review.objects.create(answer=answer)

    assert take_next(expert) is None
    for act in (take, release, skip, undo):
        with pytest.raises(ReviewNotFoundError):
            act(review.pk, by=expert)
    with pytest.raises(InvalidReviewError, match="may read this answer"):
        assign(review.pk, to=expert, by=make_user(Role.SME, groups=["board"]))
    assert take_next(make_user(Role.SME, groups=["board"])) == review


def test_who_is_no_expert_judges_nothing():
    review = make_review()

    with pytest.raises(ReviewNotFoundError):
        take(review.pk, by=make_user(Role.AGENT))


def test_the_database_holds_one_review_a_round(expert):
    review = make_review()
    with pytest.raises(IntegrityError), transaction.atomic():
        Review.objects.create(answer=review.answer)
