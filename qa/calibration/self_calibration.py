"""Self-calibration of a knowledge base: verifier thresholds from its own questions.

Questions that people asked and experts judged take precedence over generated ones.
`own_questions` holds the method, `self_calibration_jobs` the schedule.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.utils import timezone

from kb.documents.models import KnowledgeBase
from kb.embedding.services import active_model
from kb.enrichment.forms import Writer
from kb.search import METHOD
from qa.answers.sources import configured_verifier
from qa.calibration.models import SelfCalibration, SelfCalibrationSettings
from qa.evaluation.activation import ask_cases_now, check_of
from qa.exceptions import CalibrationError
from qa.pipeline.gates import CONFIDENCES, THRESHOLDED
from qa.pipeline.policy import default
from qa.pipeline.weighing import READING
from qa.policies.models import Policy
from qa.policies.services import (
    DEFAULT_NAME,
    activate,
    active_policy,
    has_verifier,
    new_version,
    own_knowledge_uncalibrated,
)

from .own_questions.choosing import (
    KNOWN,
    LEAST,
    MADE,
    NONE,
    Choice,
    Kind,
    Measured,
    Share,
    choose,
)
from .own_questions.drawing import draw_questions, labelled_questions
from .own_questions.measuring import OnProgress, measure

NAME: Final = "from own questions"
UNANSWERABLE: Final = 0.5

# Generated questions are easier than people's: chosen by them alone, a threshold of
# 0.72 showed 57 % wrong on SQuAD's unseen articles, the default 45 %. So they do not
# lower the default for targets that it roughly meets on knowledge that no fit saw (6 %
# wrong).
_DEFAULT_KEEPS: Final = 0.07
_ENOUGH_JUDGED: Final = 50  # with so many judged questions, the default may be lowered
# If no threshold meets the target, the safest may be wrong up to this multiple of it.
_BEARABLE: Final = 2

Mode = SelfCalibrationSettings.Mode
logger = logging.getLogger(__name__)


def settings_of(knowledge_base: KnowledgeBase) -> SelfCalibrationSettings:
    found = SelfCalibrationSettings.objects.filter(knowledge_base=knowledge_base)
    return found.first() or SelfCalibrationSettings(knowledge_base=knowledge_base)


def set_settings(
    knowledge_base: KnowledgeBase,
    *,
    wrong_share_target: int,
    calibrates_itself: str,
    uses_evaluations: bool = False,
) -> SelfCalibrationSettings:
    knowledge_base.check_in_use()
    kept = SelfCalibrationSettings(
        knowledge_base=knowledge_base,
        wrong_share_target=wrong_share_target,
        calibrates_itself=calibrates_itself,
        uses_evaluations=uses_evaluations,
    )
    kept.full_clean(validate_unique=False)
    kept.save()
    return kept


def last_of(knowledge_base: KnowledgeBase) -> SelfCalibration | None:
    rows = SelfCalibration.objects.filter(knowledge_base=knowledge_base)
    return rows.select_related("policy").first()


def calibrate_itself(
    knowledge_base: KnowledgeBase,
    *,
    target: float | None = None,
    unanswerable: float = UNANSWERABLE,
    seed: int = 0,
    mode: str | None = None,
    by: AbstractBaseUser | None = None,
    load_writer: Callable[[], Writer] | None = None,
    on_progress: OnProgress = lambda _done, _total: None,
) -> SelfCalibration:
    """Create a version of the active policy with thresholds from its own questions.

    Args:
        target: Largest wrong share of the shown answers; the knowledge base's if None.
        unanswerable: Assumed share of questions that nothing answers, half of them
            foreign.
        mode: `Mode.ACTIVATE` activates the version once its test cases pass. If None,
            the knowledge base's setting applies, and thresholds set by a person are
            kept.
        by: Who requested it.
        load_writer: Loads the writer of questions about facts; key words if None.

    Raises:
        CalibrationError: There is no verifier, or no entry to make questions from.
    """
    if not has_verifier(knowledge_base):
        raise CalibrationError(
            f"{knowledge_base} has no verifier whose thresholds could be calibrated: "
            "NESCIO_VERIFIER is none, or its language is not in "
            "NESCIO_VERIFIER_LANGUAGES."
        )
    wanted = settings_of(knowledge_base)
    base = active_policy(knowledge_base)
    begun = timezone.now()
    questions = draw_questions(
        knowledge_base,
        seed=seed,
        writer=load_writer() if load_writer else None,
        labelled=labelled_questions(
            knowledge_base, with_evaluation=wanted.uses_evaluations
        ),
    )
    verifier = configured_verifier()
    measured, own_trades = measure(
        questions,
        knowledge_base=knowledge_base,
        policy=base.as_value(),
        verifier=verifier,
        on_progress=on_progress,
    )
    aim = wanted.target if target is None else target
    is_judged = sum(each.kind not in MADE for each in measured) >= _ENOUGH_JUDGED
    least = _least(aim, is_judged=is_judged)
    chosen = partial(
        choose,
        target=aim,
        unanswerable=unanswerable,
        least=least,
        # People's questions are harder: where the generated ones fail, those would too.
        bearable=_BEARABLE * aim if is_judged else 0.0,
        known=() if least == LEAST else KNOWN,
    )
    choice = chosen(measured)
    settled = [each for each in measured if not each.is_doubtful]
    kept = _kept(choice, measured)
    kept.knowledge_base, kept.seed, kept.created_at = knowledge_base, seed, begun
    kept.entries = len({q.entry.pk for q in questions if q.entry and not q.label})
    kept.named = sum(question.is_named for question in questions)
    kept.verifier, kept.embedder, kept.retrieval = running()
    kept.notes = _notes(choice, own_trades)
    why_not = partial(
        _why_not,
        base,
        choice,
        mode or wanted.calibrates_itself,
        is_asked=bool(mode),
        strictest=max(
            base.min_entry_answer,
            (chosen(settled) if len(settled) < len(measured) else choice).threshold,
        ),
        doubtful=len(measured) - len(settled),
    )
    kept.policy = _version(base, choice, by)
    if not (why_not() or kept.policy.is_active):
        asker = by if isinstance(by, User) else None
        ask_cases_now(kept.policy, by=asker, on_progress=on_progress)
    _write(kept, why_not, by=by)
    return kept


def _least(target: float, *, is_judged: bool) -> float:
    """Return the lowest threshold that these questions are allowed to choose."""
    if target > _DEFAULT_KEEPS or is_judged:
        return LEAST
    return float(default("min_entry_answer"))


def is_set_by_hand(policy: Policy) -> bool:
    """Return whether a person set a threshold, rather than calibration or the default.

    A version in which a person changed something else keeps the origin of its
    thresholds. So does one that differs only in minimum confidences, which a promoted
    probe sets.
    """
    if policy.is_calibrated or policy.self_calibrations.exists():
        return False
    rows = Policy.objects.filter(knowledge_base=policy.knowledge_base_id)
    first = rows.filter(name=DEFAULT_NAME, version=1, created_by=None).first()
    last = last_of(policy.knowledge_base)
    origins = [each for each in (first, last and last.policy) if each]
    fields = [
        row.threshold for name, row in THRESHOLDED.items() if name not in CONFIDENCES
    ]
    return not any(
        all(getattr(policy, field) == getattr(origin, field) for field in fields)
        for origin in origins
    )


def running() -> tuple[str, str, str]:
    """Return the fingerprints in use: verifier, embedder, search and reading method."""
    method = f"{METHOD} reading/{READING}"
    return configured_verifier().fingerprint, active_model().fingerprint, method


def _write(
    kept: SelfCalibration, why_not: Callable[[], str], *, by: AbstractBaseUser | None
) -> None:
    """Save the result, and activate the new version if it may be."""
    with transaction.atomic():
        # Lock the knowledge base, so that no other version is activated meanwhile.
        KnowledgeBase.objects.select_for_update(no_key=True).get(
            pk=kept.knowledge_base_id
        )
        kept.not_activated = why_not()
        if not (kept.not_activated or kept.policy.is_active):
            check = check_of(kept.policy)
            kept.not_activated = check.in_words if check.needs_reason else ""
        kept.save(force_insert=True)
        if not kept.not_activated:
            activate(kept.policy, by=by)
    if kept.not_activated:
        logger.info("%s is created, not activated: %s", kept.policy, kept.not_activated)


def _version(base: Policy, choice: Choice, by: AbstractBaseUser | None) -> Policy:
    """Return a version with the chosen thresholds.

    That is `base` if self-calibration already gave it these. The language model is
    asked from the same probability on, unless somebody set a lower one: a model that
    copies words from an entry knows no better than the verifier what answers, and what
    it wrote below the threshold was mostly wrong (docs/reference/measured.md).
    """
    asked_from = base.min_answerability
    if default("min_answerability") <= asked_from and choice.threshold <= 1:
        asked_from = choice.threshold
    changes = {
        "min_entry_answer": choice.threshold,
        "min_answerability": min(asked_from, choice.threshold),
    }
    is_same = all(getattr(base, field) == value for field, value in changes.items())
    if is_same and base.self_calibrations.exists():
        return base
    return new_version(base, by=by, name=NAME, **changes)


def _why_not(
    base: Policy,
    choice: Choice,
    mode: str,
    *,
    is_asked: bool,
    strictest: float,
    doubtful: int,
) -> str:
    """Return why the version is only proposed; "" if it may be activated.

    Args:
        strictest: The highest threshold allowed without the `doubtful` reviews.
    """
    if mode != Mode.ACTIVATE:
        return "It was only meant as a proposal."
    base.refresh_from_db(fields=["is_active"])
    if not base.is_active:
        return f"Another version was activated while {base} was measured."
    if own_knowledge_uncalibrated(base):
        return f"The language model's own knowledge was never calibrated for {base}."
    if is_asked:
        return ""
    if base.is_calibrated:
        return f"The active version {base} is calibrated on labelled answers."
    if is_set_by_hand(base):
        return f"A person set the thresholds of the active version {base}."
    if not choice.could_be_earned:
        return "There are too few questions to tell."
    if not choice.is_earned and choice.threshold < base.min_entry_answer:
        return f"No threshold meets the target, and this one shows more than {base}."
    if choice.threshold > strictest:
        return (
            f"Fewer questions would be answered because of {doubtful} reviews by a "
            "single expert; each needs a second opinion."
        )
    return ""


def _notes(choice: Choice, own_trades: int) -> list[str]:
    notes = []
    if not choice.could_be_earned:
        notes.append(
            "There are too few own questions to meet the target at any threshold, even "
            "if none of them were answered wrongly: verify more entries, or allow more "
            "wrong answers."
        )
    elif not choice.is_earned and choice.threshold < NONE:
        notes.append(
            "No threshold meets the target; this is the safest that still answers. "
            "Look at the questions that were shown a wrong answer, or choose another "
            "target."
        )
    elif not choice.is_earned:
        notes.append(
            "No threshold meets the target, so no entry would answer by itself: even "
            "entries that the verifier was sure of were wrong too often."
        )
    if own_trades:  # the number only: names would reveal what the knowledge base holds
        notes.append(
            f"The questions of {own_trades} of the other trades are left out: this "
            "knowledge base covers them too."
        )
    return notes


def _kept(choice: Choice, measured: tuple[Measured, ...]) -> SelfCalibration:
    wrong, answered = choice.wrong_share, choice.answered_share
    kinds = [each.kind for each in measured]
    return SelfCalibration(
        target=choice.target,
        unanswerable=choice.unanswerable,
        min_entry_answer=choice.threshold,
        own=kinds.count(Kind.OWN),
        foreign=kinds.count(Kind.FOREIGN),
        reviewed=kinds.count(Kind.REVIEWED),
        evaluated=kinds.count(Kind.EVALUATED),
        shown=choice.shown,
        wrong=choice.wrong,
        wrong_share=wrong.value if wrong else None,
        wrong_low=_end(wrong, 0),
        wrong_high=_end(wrong, 1),
        answered_share=answered.value,
        answered_low=_end(answered, 0),
        answered_high=_end(answered, 1),
        curve=[
            [point.threshold, point.answered, point.wrong] for point in choice.curve
        ],
    )


def _end(share: Share | None, which: int) -> float | None:
    return share.interval[which] if share and share.interval else None
