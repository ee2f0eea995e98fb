"""Watching whether live questions are still those that a certificate speaks of."""

import logging
from dataclasses import asdict
from datetime import timedelta

from django.utils import timezone

from jobs.run import JobRun
from qa.answers.models import Answer
from qa.calibration.drift import compare, distribution_from
from qa.calibration.models import Certificate, DriftReading
from qa.pipeline.replay import flat

logger = logging.getLogger(__name__)

LATEST = 2_000
WITHIN = timedelta(days=30)


def watch_drift(run: JobRun) -> dict[str, object]:
    """Check the certificate of every active policy that has one, each in a step."""
    active = Certificate.objects.filter(policy__is_active=True).order_by("pk")
    certificates = list(active.select_related("policy"))
    readings: dict[str, bool] = run.cursor.get("readings", {})
    for certificate in certificates:
        if str(certificate.pk) in readings:
            continue
        with run.step() as step:
            reading = check_drift(certificate)
            readings = {**readings, str(certificate.pk): reading.has_drifted}
            step.advance(
                done=len(readings),
                total=len(certificates),
                cursor={"readings": readings},
            )
    return {"checked": len(readings), "drifted": sum(readings.values())}


def check_drift(
    certificate: Certificate, *, latest: int = LATEST, within: timedelta = WITHIN
) -> DriftReading:
    """Compare the newest live answers with the labelled ones and store the result.

    Only answers that this very version decided are compared: what reaches a gate
    depends on the thresholds before it.
    """
    answers = Answer.objects.decided_live_by(certificate.policy)
    recent = answers.filter(created_at__gte=timezone.now() - within)
    newest = recent.order_by("-created_at")[:latest]
    rows = list(newest.values_list("created_at", "signals"))
    references = {
        name: distribution_from(stored)
        for name, stored in certificate.signal_quantiles.items()
    }
    found = compare(references, [flat(signals) for _, signals in rows])
    drifted = sorted(name for name, each in found.items() if each.has_drifted)
    if drifted:
        logger.warning(
            "Live signals of %s are no longer distributed as the labelled ones that it "
            "was certified on: %s. Label recent questions and calibrate again.",
            certificate.policy,
            ", ".join(drifted),
        )
    return DriftReading.objects.create(
        certificate=certificate,
        answers=len(rows),
        first_at=rows[-1][0] if rows else None,
        last_at=rows[0][0] if rows else None,
        signals={name: asdict(each) for name, each in found.items()},
        has_drifted=bool(drifted),
    )
