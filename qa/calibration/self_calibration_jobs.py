"""Jobs that start self-calibration once a knowledge base has changed enough.

They check after an import or a bulk verification, and every two hours.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.dispatch import receiver

from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase
from kb.enrichment.forms import Writer
from kb.entries.bulk import verified_in_bulk
from kb.entries.models import Entry
from kb.exceptions import KnowledgeBaseArchivedError
from qa.evaluation.knowledge import PREFIX
from qa.exceptions import CalibrationError
from qa.policies.services import active_policy, has_verifier
from qa.reviews.models import Review

from .self_calibration import Mode, calibrate_itself, last_of, running, settings_of

logger = logging.getLogger(__name__)

KIND: Final = "qa.calibrate_itself"
CHECK_KIND: Final = "qa.calibrate_where_due"
# A calibration is due once so many verified entries, and at least this share of all,
# have changed, or so many reviews were done.
_MIN_CHANGED: Final = 20
_SHARE_CHANGED: Final = 0.1
_MORE_ROUNDS: Final = 4  # repetitions within one job, while imports go on
_WERE_VERIFIED = (Entry.State.VERIFIED, Entry.State.NEEDS_REVIEW, Entry.State.RETIRED)


def is_due(knowledge_base: KnowledgeBase) -> bool:
    """Return whether enough has changed since the last self-calibration.

    Always False if the knowledge base does not calibrate itself.
    """
    if not _calibrates_itself(knowledge_base):
        return False
    last = last_of(knowledge_base)
    rows = Entry.objects.filter(knowledge_base=knowledge_base)
    verified = rows.filter(state=Entry.State.VERIFIED).count()
    if last and (last.verifier, last.embedder, last.retrieval) != running():
        return verified > 0
    if last and _judged(knowledge_base, last.created_at) >= _MIN_CHANGED:
        return verified > 0
    changed = _changed(knowledge_base, last.created_at) if last else verified
    return changed >= max(_MIN_CHANGED, _SHARE_CHANGED * verified)


def reviews_until_calibration(knowledge_base: KnowledgeBase) -> int | None:
    """Return how many more reviews make it due; None if it never calibrates itself."""
    if not _calibrates_itself(knowledge_base):
        return None
    last = last_of(knowledge_base)
    done = _judged(knowledge_base, last.created_at) if last else 0
    return max(0, _MIN_CHANGED - done)


def _calibrates_itself(knowledge_base: KnowledgeBase) -> bool:
    """Return whether the knowledge base calibrates itself at all.

    It does not if the active version is calibrated on labelled answers, or if the
    verifier decides nothing. Nor do knowledge bases made by evaluations, whose figures
    would change.
    """
    if knowledge_base.slug.startswith(PREFIX) or not has_verifier(knowledge_base):
        return False
    if settings_of(knowledge_base).calibrates_itself == Mode.OFF:
        return False
    policy = active_policy(knowledge_base)
    return policy.verification and not policy.is_calibrated


def calibrate_where_due(_run: JobRun) -> dict[str, object]:
    """Start the calibration of every knowledge base that is due: `CHECK_KIND` jobs."""
    bases = KnowledgeBase.objects.in_use().order_by("pk")
    due = [each for each in bases if is_due(each)]
    for each in due:
        enqueue_calibration(each)
    return {"due": [each.slug for each in due]}


def enqueue_check() -> Job:
    return enqueue(CHECK_KIND, {}, idempotency_key=CHECK_KIND)


@receiver(verified_in_bulk)
def _check_what_was_verified(**_: object) -> None:
    enqueue_check()


def enqueue_calibration(
    knowledge_base: KnowledgeBase, *, by: AbstractBaseUser | None = None
) -> Job:
    """Enqueue a self-calibration, or return the one already waiting or running."""
    knowledge_base.check_in_use()
    return enqueue(
        KIND,
        {
            "knowledge_base": knowledge_base.pk,
            "knowledge_base_slug": knowledge_base.slug,
        },
        owner=by,
        idempotency_key=f"{KIND} {knowledge_base.pk}",
    )


def calibrate_in_background(
    run: JobRun, *, load_writer: Callable[[], Writer]
) -> dict[str, object]:
    """Calibrate the knowledge base named in the parameters: `KIND` jobs.

    It takes about a minute, starts over if interrupted, and repeats if enough has
    changed meanwhile to be due again, as when files are imported one after the other.
    If calibration is impossible, for example because nothing is verified, the job
    succeeds with the reason as its result. A language server writes questions about
    facts; the bundled model is not asked, since its questions are no better than key
    words.
    """
    number = run.parameters.get("knowledge_base") or 0
    found = KnowledgeBase.objects.in_use().filter(pk=number).first()
    if found is None:
        return {"calibrated": False, "why": "The knowledge base is archived or gone."}
    calibrate = partial(
        calibrate_itself,
        found,
        by=run.owner,
        load_writer=load_writer if settings.LANGUAGE_SERVER_URL else None,
        on_progress=partial(run.reporter(), "asking"),
    )
    try:
        kept = calibrate()
    except (CalibrationError, KnowledgeBaseArchivedError) as error:
        return {"calibrated": False, "why": str(error)}
    for _ in range(_MORE_ROUNDS):
        if not is_due(found):
            break
        try:
            kept = calibrate()
        except (CalibrationError, KnowledgeBaseArchivedError) as error:
            logger.info("%s is not calibrated again: %s", found, error)
            break
    return {
        "calibrated": True,
        "policy": kept.policy_id,
        "min_entry_answer": kept.min_entry_answer,
        "is_active": kept.policy.is_active,
        "why": kept.not_activated,
    }


def _judged(knowledge_base: KnowledgeBase, since: datetime) -> int:
    rows = Review.objects.done().filter(answer__knowledge_base=knowledge_base)
    return rows.filter(reviewed_at__gt=since).count()


def _changed(knowledge_base: KnowledgeBase, since: datetime) -> int:
    rows = Entry.objects.filter(
        knowledge_base=knowledge_base, state__in=_WERE_VERIFIED, updated_at__gt=since
    )
    return rows.count()
