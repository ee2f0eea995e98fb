"""Training a probe as a background job of the kind "probes.train"."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib.auth.models import User

from jobs.run import JobRun
from probes.cards import ProbeKind, answer_kind
from probes.exceptions import ModelError
from probes.models import Probe
from qa.exceptions import EvaluationDataError, TrainingDataError
from qa.training import retraining as retrainings
from qa.training.models import Retraining
from qa.training.retraining import Compared

from .stored_labels import Part, drafts_of_reviews

KIND: Final = "probes.train"
_STEP_SECONDS: Final = 1.0

OnProgress = Callable[[str, int, int], None]


def teller(run: JobRun) -> OnProgress:
    """Return what stores a job's progress, at most once a second.

    A job that was asked to stop stops there; what was read of answers stays.
    """
    told_what, told_at = "", 0.0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told_what, told_at
        now = time.monotonic()
        if what == told_what and now - told_at < _STEP_SECONDS and done < total:
            return
        told_what, told_at = what, now
        with run.step() as step:
            step.advance(done=done, total=total, cursor={"doing": what})

    return tell


def train_in_background(run: JobRun) -> dict[str, object]:
    """Train a probe on evaluation runs and register it; the handler of `KIND`.

    The parameters are `kind` and `runs`, and as for the command `layer`, `part`,
    `network`, `folds`, `seed`, `any_model`, `reviews`, `promote` and `note`. Activations
    are kept on disk, so that another attempt goes on from them; fits are repeated.
    """
    # Pulls in torch, which whoever only names the kind never pays for.
    from .request import carry_out, request_of  # noqa: PLC0415

    owner = User.objects.filter(pk=run.owner_id).first() if run.owner_id else None
    outcome = carry_out(request_of(run.parameters), by=owner, on_progress=teller(run))
    probe = outcome.probe
    return {
        "probe": probe.pk,
        "fingerprint": probe.fingerprint,
        "state": probe.state,
        "answers": outcome.drafts,
        "right": outcome.right,
        "too_long": outcome.trained.too_long,
        "known_by_adapter": outcome.known,
        "metrics": dict(outcome.trained.metrics),
    }


# Retraining from reviews as a background job of the kind "qa.retrain".


if TYPE_CHECKING:
    from .request import TrainingRequest

COMPARING = "Reading golden answers"


def retrain_in_background(run: JobRun) -> dict[str, object]:
    """Train a probe on reviews alone and hold it against the one in force.

    The handler of `retrainings.KIND`; its parameter is `kind`. What is not possible, such
    as too few labels, is the retraining's result and no failed job.

    Raises:
        TrainingDataError: The parameter is no kind of probe.
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
        _carry_out(retraining, kind, teller(run))
    except (EvaluationDataError, ModelError, TrainingDataError) as error:
        retrainings.fail(retraining, str(error))
    return {"retraining": retraining.pk, "state": retraining.state}


def _carry_out(retraining: Retraining, kind: ProbeKind, tell: OnProgress) -> None:
    # These pull in torch, which whoever only names the kind never pays for.
    from qa.inference.configured import load_language_model  # noqa: PLC0415

    from .compare_probes import fight, require_golden  # noqa: PLC0415
    from .request import carry_out, model_to_train_on  # noqa: PLC0415

    language_model = load_language_model()
    model = model_to_train_on(language_model)
    golden = [
        *drafts_of_reviews(Part.GOLDEN, language_model=language_model.fingerprint)
    ]
    require_golden(golden)  # before minutes are spent on a fit
    reads = language_model if kind is ProbeKind.JOINT else model
    in_force = Probe.objects.active_for(reads.fingerprint)
    champion = in_force.filter(kind=kind).first()
    outcome = carry_out(_request(kind, champion), on_progress=tell)
    duel = fight(
        model,
        golden,
        champion=champion,
        challenger=outcome.probe,
        directory=settings.PLACES.activations,
        on_progress=lambda done, total: tell(COMPARING, done, total),
    )
    compared = Compared(
        labels=outcome.drafts,
        labels_right=outcome.right,
        golden=duel.answers,
        golden_right=duel.right,
        champion_auroc=duel.champion,
        challenger_auroc=duel.challenger,
        interval=duel.interval,
        is_better=duel.is_better,
    )
    retrainings.conclude(
        retraining, compared, champion=champion, challenger=outcome.probe
    )


def _request(kind: ProbeKind, champion: Probe | None) -> "TrainingRequest":
    """Return a training like the champion's, on reviews alone."""
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
        reviews=True,
        note=note,
    )
