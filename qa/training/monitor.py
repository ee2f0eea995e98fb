"""The threshold of CtrlA's monitor: measured when directions are trained, set when activated.

Confidence is in units of the directions, so that a threshold belongs to them: the default
never stopped an answer of another model.
"""

from collections.abc import Sequence

from django.contrib.auth.models import User

from probes.cards import Json
from probes.directions.sets import DirectionSet
from probes.language_model import WhiteBoxModel
from probes.models import Probe
from qa.calibration.adaptive_thresholds import best_threshold, monitor_auroc, watch
from qa.evaluation.cases import Case
from qa.inference.monitored_writer import SteeredWriter
from qa.inference.policy_models import own_knowledge_fingerprint
from qa.pipeline.policy import RetrievalTiming, default
from qa.policies.models import Policy
from qa.policies.services import activate, new_version

from .held_out import figure
from .labelled_questions import LabelledQuestion
from .probe import OnProgress

# Half of them choose the threshold, half measure it.
MIN_QUESTIONS = 20


def measured_threshold(
    model: WhiteBoxModel,
    directions: DirectionSet,
    questions: Sequence[LabelledQuestion],
    on_progress: OnProgress,
) -> dict[str, Json]:
    """Return the threshold that best separates right answers from wrong ones, if any.

    Nothing where there are too few questions, or all answers are alike.
    """
    if len(questions) < MIN_QUESTIONS:
        return {}
    writer = SteeredWriter(model, directions, fingerprint="")
    cases = [
        Case(str(at), one.question, is_answerable=True, references=one.references)
        for at, one in enumerate(questions)
    ]
    watched = watch(
        writer,
        cases,
        steering=float(default("steering")),
        by_answer=True,
        on_progress=lambda done, total: on_progress("Watching answers", done, total),
    )
    if len({one.is_positive for one in watched}) == 1 or all(
        one.weakest is None for one in watched[::2]
    ):
        return {}
    return {
        "min_token_confidence": best_threshold(watched[::2]),
        "monitor_auroc": figure(*monitor_auroc(watched[1::2])),
    }


def apply_threshold(probe: Probe, *, by: User | None) -> list[Policy]:
    """Let active policies that monitor answers stop at the active directions' threshold.

    Each gets a new version, which is activated; none where no threshold was measured.
    """
    threshold = probe.metrics.get("min_token_confidence")
    rows = Policy.objects.filter(
        is_active=True, retrieval_timing=RetrievalTiming.MONITORED
    )
    if not isinstance(threshold, float) or not rows.exists():
        return []
    runs = own_knowledge_fingerprint(RetrievalTiming.MONITORED)
    return [
        activate(
            new_version(
                policy,
                by=by,
                min_token_confidence=threshold,
                calibrated_own_knowledge=runs,
            ),
            by=by,
        )
        for policy in rows.select_related("knowledge_base")
    ]
