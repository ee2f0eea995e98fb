"""Training a probe as a background job of the kind "probes.train"."""

import time
from collections.abc import Callable
from typing import Final

from django.contrib.auth.models import User

from jobs.run import JobRun

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

    Raises:
        TrainingDataError: The parameters are wrong, or there is nothing to train on.
        TooFewLabelsError: There are too few answers, or nearly all are right or wrong.
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
