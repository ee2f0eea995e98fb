"""Background jobs: "probes.train" trains any kind, "qa.retrain" a probe on reviews alone."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib.auth.models import User

from jobs.run import JobRun
from probes.cards import ProbeKind, answer_kind
from probes.exceptions import ModelError
from probes.models import Probe
from qa.exceptions import EvaluationDataError, TrainingDataError
from qa.reviews.labels import Part
from qa.training import retraining as retrainings
from qa.training.models import Retraining

from .labels import drafts_of_reviews, weights_of_drafts
from .method_jobs import METHOD_KINDS, train_method

if TYPE_CHECKING:
    from .request import TrainingRequest

KIND: Final = "probes.train"
COMPARING: Final = "Reading golden answers"
_STEP_SECONDS: Final = 1.0

OnProgress = Callable[[str, int, int], None]


def progress_of(run: JobRun) -> OnProgress:
    """Return what stores a job's progress each second, and stops it on demand."""
    stored_what, stored_at = "", 0.0

    def on_progress(what: str, done: int, total: int) -> None:
        nonlocal stored_what, stored_at
        now = time.monotonic()
        if what == stored_what and now - stored_at < _STEP_SECONDS and done < total:
            return
        stored_what, stored_at = what, now
        with run.step() as step:
            step.advance(done=done, total=total, cursor={"doing": what})

    return on_progress


def train_in_background(run: JobRun) -> dict[str, object]:
    """Train a probe, or what CBDR and CtrlA need, and register it; handler of `KIND`.

    For `METHOD_KINDS` see `train_method`. For probes of answers the parameters are `kind` and `runs`, and as for the command `layer`, `part`,
    `network`, `folds`, `seed`, `any_model`, `reviews`, `promote` and `note`.
    Activations are kept on disk for another attempt; fits are repeated.
    """
    # Pulls in torch, which a process that only names the kind does without.
    from .request import carry_out, request_of  # noqa: PLC0415

    owner = User.objects.filter(pk=run.owner_id).first() if run.owner_id else None
    kind = str(run.parameters.get("kind"))
    if kind in METHOD_KINDS:
        probe, count = train_method(
            ProbeKind(kind), run.parameters, by=owner, on_progress=progress_of(run)
        )
        return {
            "probe": probe.pk,
            "fingerprint": probe.fingerprint,
            "state": probe.state,
            "learnt_from": count,
            "metrics": dict(probe.metrics),
        }
    outcome = carry_out(
        request_of(run.parameters), by=owner, on_progress=progress_of(run)
    )
    probe = outcome.probe
    return {
        "probe": probe.pk,
        "fingerprint": probe.fingerprint,
        "state": probe.state,
        "answers": outcome.count,
        "right": outcome.right,
        "too_long": outcome.too_long,
        "known_by_adapter": outcome.known,
        "metrics": dict(outcome.metrics),
    }


def retrain_in_background(run: JobRun) -> dict[str, object]:
    """Train a probe of `kind` on reviews, and compare it with the active one.

    What is not possible, such as too few labels, is its result and no failed job.
    """
    try:
        kind = answer_kind(str(run.parameters.get("kind")))
    except ValueError as error:
        raise TrainingDataError(
            f"The parameters are no retraining: {error}."
        ) from error
    owner = User.objects.filter(pk=run.owner_id).first() if run.owner_id else None
    retraining = retrainings.begin(kind, job_id=run.job_id, by=owner)
    try:
        _carry_out(retraining, kind, progress_of(run))
    except (EvaluationDataError, ModelError, TrainingDataError) as error:
        retrainings.fail(retraining, str(error))
    return {"retraining": retraining.pk, "state": retraining.state}


def _carry_out(
    retraining: Retraining, kind: ProbeKind, on_progress: OnProgress
) -> None:
    # The same: torch.
    from qa.inference.configured import load_language_model  # noqa: PLC0415
    from qa.inference.white_box import form_of  # noqa: PLC0415

    from .compare_probes import (  # noqa: PLC0415
        compare_probes,
        is_enough,
        require_golden,
    )
    from .request import carry_out, model_to_train_on  # noqa: PLC0415

    language_model = load_language_model()
    model = model_to_train_on(language_model)
    golden, learnt = (
        [*drafts_of_reviews(part, language_model=language_model.fingerprint)]
        for part in (Part.GOLDEN, Part.TRAINING)
    )
    reads = language_model if kind is ProbeKind.JOINT else model
    champion = Probe.objects.active_for(reads.fingerprint).filter(kind=kind).first()
    is_gone_on_with = champion is not None and kind is not ProbeKind.JOINT
    if not is_gone_on_with:
        require_golden(golden)  # before minutes are spent on a fit
    outcome = carry_out(_request(kind, champion), on_progress=on_progress)
    folded: Mapping[str, float] = {}
    if is_gone_on_with and not is_enough(golden):
        # Too few to compare on: those that it was fitted on are added, out of folds.
        folded = outcome.folded
        golden += [draft for draft in learnt if draft.id in folded]
    comparison = compare_probes(
        model,
        golden,
        champion=champion,
        challenger=outcome.probe,
        directory=settings.PLACES.activations,
        form=form_of(language_model),
        weights=weights_of_drafts(golden),
        folded=folded,
        on_progress=partial(on_progress, COMPARING),
    )
    retrainings.conclude(
        retraining,
        comparison,
        champion=champion,
        challenger=outcome.probe,
        labels=outcome.count,
        labels_right=outcome.right,
    )


def _request(kind: ProbeKind, champion: Probe | None) -> "TrainingRequest":
    from probes.abstention.files import settings_of  # noqa: PLC0415  # torch
    from probes.taps import Part as TapPart  # noqa: PLC0415

    from .request import TrainingRequest  # noqa: PLC0415

    note = "Retrained from reviews."
    if champion is None or kind is ProbeKind.JOINT:
        return TrainingRequest(kind=kind, reviews=True, note=note)
    fitted = settings_of(champion.parsed_card)
    return TrainingRequest(
        kind=kind,
        layer=champion.layer,
        part=TapPart(champion.part),
        network=fitted.kind,
        settings=fitted,
        begin_from=champion,
        reviews=True,
        note=note,
    )
