"""Reviews: an expert's queue, locking, judging and assigning.

An expert locks a review while judging it; the lock expires by itself. Whoever judged
one round of an answer never judges the other. Database locks are taken in one order:
the review, then those of `kb.services`.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.utils import timezone

from accounts.people import person_name
from accounts.roles import Role, where_holder
from accounts.undo import undoes
from kb.documents.models import of_base_in_use
from kb.entries.models import Entry
from kb.entries.wordings import (
    allow_question,
    confirm_question,
    deny_question,
    withdraw_question,
)
from kb.tags.models import Tag
from qa.answers.evidence_models import AnswerEvidence, where_withheld_from
from qa.answers.models import Answer
from qa.exceptions import InvalidReviewError, ReviewNotFoundError, ReviewStateError
from qa.pipeline.verbatim import asks_the_same
from qa.reviews.models import Review

from .judgements import GRADES, Judgement, apply_judgement
from .second_opinions import ask_for_second_opinion, take_back_second_opinion

UNDO: Final = "qa.review"
_BASE: Final = "answer__knowledge_base"
_TRIED = 20  # tries at the head of the queue, where others may be taking reviews too


def judgeable_by(user: User) -> QuerySet[Review]:
    """Return what `user` may judge now, including what is assigned to others."""
    other_round = Review.objects.filter(answer=OuterRef("answer_id")).exclude(
        pk=OuterRef("pk")
    )
    return (
        Review.objects.visible_to(user)
        .open()
        .exclude(skipped_by=user)
        .exclude(Q(locked_until__gt=timezone.now()) & ~Q(locked_by=user))
        .exclude(Exists(other_round.filter(_acted_on_by(user))))
    )


def _turn() -> Case:
    """Return the sort key for rounds: second reviews of judged answers come first.

    First reviews follow. Second reviews whose first is not judged come last, as
    estimates count only first ones.
    """
    first = Review.objects.filter(answer=OuterRef("answer"), round=1)
    is_judged = Exists(first.filter(state=Review.State.DONE))
    return Case(When(round=1, then=Value(1)), When(is_judged, then=Value(0)), default=2)


def review_queue(user: User) -> QuerySet[Review]:
    """Return the reviews that `user` may take, in order.

    First those assigned to the user, then those of their tags, then those without an
    expert, then the others; within each group, second opinions on judged reviews come
    first and skipped ones last. Assignments to people who are no longer experts, or may
    not read the answer, are ignored.
    """
    theirs = Tag.objects.of_expert(user).values("pk")
    with_expert = Tag.objects.filter(pk=OuterRef("tag_id"), experts__is_active=True)
    is_assigned = where_holder(Role.SME, "assignee", _BASE)
    is_assigned &= ~where_withheld_from("assignee", "answer")
    return (
        judgeable_by(user)
        .filter(of_base_in_use(_BASE))
        .exclude(is_assigned & ~Q(assignee=user))
        .annotate(
            nearness=Case(
                When(assignee=user, then=Value(0)),
                When(tag__in=theirs, then=Value(1)),
                When(~Exists(with_expert), then=Value(2)),
                default=Value(3),
            )
        )
        .annotate(is_skipped=Q(state=Review.State.SKIPPED), turn=_turn())
        .order_by("nearness", "is_skipped", "turn", "created_at", "pk")
    )


@transaction.atomic
def take_next(by: User) -> Review | None:
    """Lock the first review of the queue, or return one that `by` holds already."""
    held = Review.objects.held_at(timezone.now()).visible_to(by).filter(locked_by=by)
    mine = held.filter(of_base_in_use(_BASE)).order_by("pk").first()
    if mine is not None:
        return mine
    ids = review_queue(by).values_list("pk", flat=True)
    for key in ids[:_TRIED]:
        free = Review.objects.select_for_update(of=("self",), skip_locked=True)
        found = free.filter(pk=key).first()
        if found is not None and _refusal(found, by) == "":
            return _hold(found, by)
    return None


@transaction.atomic
def take(review_id: int, *, by: User) -> Review:
    """Lock a review for `by`, so that nobody else judges it in the meantime."""
    return _hold(_judgeable(review_id, by), by)


@transaction.atomic
def release(review_id: int, *, by: User) -> Review:
    """Release a review locked by `by` to all experts.

    Raises:
        ReviewStateError: `by` has not locked it.
    """
    review = _locked(review_id, by)
    if review.state != Review.State.LOCKED or review.locked_by_id != by.pk:
        raise ReviewStateError(f"You do not hold review {review_id}.")
    return _end(review, Review.State.WAITING)


@transaction.atomic
def skip(review_id: int, *, by: User) -> Review:
    """Skip a review: `by` is not asked again; others are, after those waiting."""
    review = _judgeable(review_id, by)
    review.skipped_by = by
    review.assignee = None
    return _end(review, Review.State.SKIPPED)


@transaction.atomic
def judge(review_id: int, judgement: Judgement, *, by: User) -> Review:
    review = _judgeable(review_id, by)
    now = timezone.now()
    is_held = review.state == Review.State.LOCKED and review.locked_by_id == by.pk
    review.seconds_spent = None
    if is_held and review.locked_until is not None:
        begun = review.locked_until - settings.REVIEW_LOCK
        review.seconds_spent = max(0, round((now - begun).total_seconds()))
    apply_judgement(review, judgement, by=by)
    review.reviewed_by = by
    review.reviewed_at = now
    done = _end(review, Review.State.DONE)
    if entry := _answering(done):
        confirm_question(entry, done.answer.question, by=by)
    for entry in _wrongly_shown(done):
        deny_question(entry, done.answer.question, by=by)
    if done.is_right_to_show:  # a second opinion on an entry that the first denied
        allow_question(_cited(done).values("entry"), done.answer.question)
    ask_for_second_opinion(done)
    return done


def _answering(review: Review) -> Entry | None:
    """Return the single entry marked as what a false refusal should have shown."""
    if not review.should_be_answered or len(review.evidence_used) != 1:
        return None
    pieces = review.answer.evidence.filter(pk=review.evidence_used[0])
    piece = pieces.select_related("entry").defer("entry__search_vector").first()
    return piece.entry if piece else None


def _cited(review: Review) -> QuerySet[AnswerEvidence]:
    return review.answer.evidence.filter(role=AnswerEvidence.Role.CITED)


def _wrongly_shown(review: Review) -> Sequence[Entry]:
    """Return the entries that were shown as the answer and are entirely wrong."""
    answer = review.answer
    if review.correctness != Review.Grade.NOT or answer.language_model:
        return ()
    others = _cited(review).exclude(pk__in=review.evidence_used)
    pieces = others.select_related("entry")
    return [
        piece.entry
        for piece in pieces.defer("entry__search_vector")
        if piece.entry and not asks_the_same(answer.question, piece.entry.question)
    ]


@transaction.atomic
def undo(review_id: int, *, by: User) -> Review:
    """Undo one's own judgement, or one's own skipping.

    The judgement stays as a draft of its reviewer, who holds the review again. An entry
    that was added or edited stays as it is: it has its own history.

    Raises:
        ReviewStateError: It is not judged or skipped, or not by `by`.
    """
    review = _locked(review_id, by)
    if review.state == Review.State.DONE and review.reviewed_by_id == by.pk:
        said = [
            entry for entry in (_answering(review), *_wrongly_shown(review)) if entry
        ]
        withdraw_question([each.pk for each in said], review.answer.question, by=by)
        review.reviewed_at = None
        take_back_second_opinion(review)
        return _hold(review, by)
    if review.state == Review.State.SKIPPED and review.skipped_by_id == by.pk:
        review.skipped_by = None
        return _end(review, Review.State.WAITING)
    raise ReviewStateError(
        f"Review {review_id} is {review.get_state_display()}; there is nothing of "
        "yours to undo, only its reviewer can."
    )


@undoes(UNDO, lambda noted: [f"review {noted['review']}"])
def undo_offered(noted: Mapping[str, Any], by: User) -> None:
    """Undo from the message that offered it; `noted` has the id of the `review`."""
    undo(noted["review"], by=by)


@transaction.atomic
def assign(review_id: int, *, to: User | None, by: User) -> Review:
    """Assign a review to one expert, or with None to all.

    Raises:
        ReviewStateError: It is judged already.
        InvalidReviewError: `to` is not an expert, may not see the answer, or has
            judged, holds or is assigned its other round.
    """
    review = _locked(review_id, by)
    if review.state == Review.State.DONE:
        raise ReviewStateError(f"Review {review_id} is done already.")
    if to and not Review.objects.visible_to(to).filter(pk=review_id).exists():
        raise InvalidReviewError(
            f"{to} is not an expert who may read this answer; choose another."
        )
    others = Review.objects.filter(answer=review.answer_id).exclude(pk=review.pk)
    if to and others.filter(_acted_on_by(to) | Q(assignee=to)).exists():
        raise InvalidReviewError(
            f"{to} has the other round of the answer of review "
            f"{review_id}; a second opinion must come from somebody else."
        )
    review.assignee = to
    if to and review.skipped_by_id == to.pk:
        review.skipped_by = None
    review.save(update_fields=["assignee", "skipped_by"])
    return review


def _acted_on_by(user: User) -> Q:
    return Q(state=Review.State.DONE, reviewed_by=user) | Q(
        state=Review.State.LOCKED, locked_by=user, locked_until__gt=timezone.now()
    )


def _locked(review_id: int, by: User) -> Review:
    rows = Review.objects.select_for_update(of=("self",)).visible_to(by)
    found = rows.select_related("answer__knowledge_base").filter(pk=review_id).first()
    if found is None:
        raise ReviewNotFoundError(f"There is no review {review_id}.")
    found.answer.knowledge_base.check_in_use()
    return found


def _judgeable(review_id: int, by: User) -> Review:
    """Return a row-locked review that `by` may judge now.

    Raises:
        ReviewStateError: It is judged, somebody else holds it, or `by` judges or has
            judged the other round.
    """
    review = _locked(review_id, by)
    refusal = _refusal(review, by)
    if refusal:
        raise ReviewStateError(refusal)
    return review


def _refusal(review: Review, by: User) -> str:
    """Return why `by` may not judge a review now; "" if they may."""
    if review.state == Review.State.DONE:
        return f"Review {review.pk} is done already; its reviewer can undo it."
    if review.is_held(timezone.now()) and review.locked_by_id != by.pk:
        who = person_name(review.locked_by) or "somebody"
        return (
            f"Review {review.pk} is held by {who} until "
            f"{timezone.localtime(review.locked_until):%H:%M}; take another."
        )
    others = Review.objects.filter(answer=review.answer_id).exclude(pk=review.pk)
    if others.filter(_acted_on_by(by)).exists():
        return (
            f"You judge the other round of the answer of review {review.pk}; a second "
            "opinion must come from somebody else."
        )
    return ""


def _hold(review: Review, by: User) -> Review:
    """Lock a review for `by`; a lock of theirs that still runs is not renewed."""
    now = timezone.now()
    if not (review.is_held(now) and review.locked_by_id == by.pk):
        review.locked_until = now + settings.REVIEW_LOCK
    if review.reviewed_by_id not in (None, by.pk):
        _forget(review)
    review.locked_by = by
    review.state = Review.State.LOCKED
    review.save()
    return review


def _forget(review: Review) -> None:
    """Clear somebody else's draft, which the next reviewer must not see."""
    for name in (*GRADES, "should_be_answered", "seconds_spent", "reviewed_by"):
        setattr(review, name, None)
    review.evidence_used = []
    review.falls_short = False
    review.ideal_answer = review.note = ""


def _end(review: Review, state: Review.State) -> Review:
    review.state = state
    review.locked_by = None
    review.locked_until = None
    review.save()
    return review


RECENT = timedelta(days=30)
COUNTED = 1_000
"""The most answers counted per tag: enough to see that there are many."""


def unattended_tags() -> list[tuple[Tag, int]]:
    """Return tags without an expert that have recent questions, with their number.

    The busiest come first; at most `COUNTED` are counted for each. One query more than
    there are such tags, each reading an index.
    """
    recent = Answer.objects.live().filter(created_at__gte=timezone.now() - RECENT)
    found = [
        (tag, recent.filter(**{tag.facet: tag}).order_by()[:COUNTED].count())
        for tag in Tag.objects.without_expert()
    ]
    busy = [(tag, count) for tag, count in found if count]
    return sorted(busy, key=lambda each: (-each[1], each[0].slug))
