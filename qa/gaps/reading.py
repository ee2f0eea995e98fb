"""How much a gap matters: who asks, how often, how lately.

Every question weighs half after `HALF_LIFE`, and an asker weighs as the square root of
what he asked: ten people who ask once matter more than one who asks ten times.

Weights are kept as seen from a fixed day, growing forward instead of decaying backward
(Cormode et al.: Forward Decay, ICDE 2009), so that a stored score orders gaps rightly at
any later time without being touched: passing time multiplies all of them by the same.
"""

import math
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
from django.contrib.auth.models import User
from django.utils import timezone

from kb.audiences.models import Audience
from kb.search import search
from kb.types import Evidence, QuestionVector, Scope
from qa.answers.models import Answer
from qa.gaps.models import Gap, GapQuestion, Repeat, Tried

HALF_LIFE = timedelta(days=30)
LANDMARK = datetime(2026, 1, 1, tzinfo=UTC)
"""The day from which weights grow; a double overflows some 84 years later."""


def impact(score: float, at: datetime) -> float:
    """Return what a stored score is worth at a time: about the people who ask it now.

    One question that is asked now by one person is worth 1.
    """
    return score * math.exp2(-_half_lives(at) / 2)


def _half_lives(at: datetime) -> float:
    return (at - LANDMARK) / HALF_LIFE


# What is shown of one gap, as far as its viewer may see it.


SHOWN = 50
_NEAREST = 5
# Whatever its confidence: an unsure entry near a gap is worth a look.
_ANY_CONFIDENCE = 0.01


def fetch_shown(gap: Gap, viewer: User) -> None:
    """Fetch as `nearest_hits` and `tried` what the viewer may see beside a gap."""
    gap.nearest_hits = nearest_entries(gap, viewer)
    gap.tried = tried_questions(gap, viewer)


def tried_questions(gap: Gap, viewer: User, *, most: int = SHOWN) -> list[Tried]:
    """Return the newest questions that the viewer may look up (three queries)."""
    newest = gap.members.visible_to(viewer).newest()[:most]
    questions = {each.answer_id: each for each in newest}
    repeats = {
        repeat.before_id: repeat
        for repeat in Repeat.objects.filter(before__in=questions)
        .order_by("before_id", "-created_at")
        .distinct("before_id")
    }
    afters = [repeat.after_id for repeat in repeats.values()]
    seen = Answer.objects.visible_to(viewer).select_related("asker")
    answers = seen.in_bulk([*questions, *afters])
    return [
        _tried(question, answers, repeats.get(question.answer_id))
        for question in questions.values()
    ]


def reasons_of(gap: Gap) -> Counter[str]:
    """Return why its questions are in it, the most frequent first (one query)."""
    rows = GapQuestion.objects.filter(gap=gap).values_list("why", "answer__reason")
    newest = rows.order_by("-asked_at")[:1_000]
    return Counter(
        reason if why == GapQuestion.Why.REFUSED else why for why, reason in newest
    )


def nearest_entries(gap: Gap, viewer: User) -> tuple[Evidence, ...]:
    """Return the entries nearest to a gap among those that the viewer may see."""
    if gap.embedding_model is None:
        return ()
    vector = QuestionVector(
        text=gap.question,
        values=np.array(gap.vector, dtype=np.float32),
        model_id=gap.embedding_model.pk,
        fingerprint=gap.embedding_model.fingerprint,
        milliseconds=0.0,
    )
    audiences = Audience.objects.visible_to(viewer).order_by()
    scope = Scope(
        knowledge_base_id=gap.knowledge_base_id,
        audience_ids=tuple(audiences.values_list("pk", flat=True)),
        unverified_floor=_ANY_CONFIDENCE,
        enriched_floor=_ANY_CONFIDENCE,
        at=timezone.now(),
    )
    found = search(vector, "", scope=scope, top_k=_NEAREST)
    return tuple(sorted(found.hits, key=lambda hit: hit.distance))


def _tried(
    question: GapQuestion, answers: dict[object, Answer], repeat: Repeat | None
) -> Tried:
    before = answers[question.answer_id]
    if repeat is None:
        return Tried(question.get_why_display(), before)
    after = answers.get(repeat.after_id)
    return Tried(question.get_why_display(), before, after, repeat.is_better)
