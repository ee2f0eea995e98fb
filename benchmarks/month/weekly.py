"""Measure what four weeks of reviews teach, with all gates enforced.

    python -m benchmarks.month.weekly [--seed N] [--hours-a-day H] [--limit N] [--plot FILE]

Experts review for one hour a day in all. Of the two questions and two near misses of
each entry, one of each is asked in these weeks; the others are held out, as are all
questions about a quarter of the entries. Each week a quarter of the questions is asked;
agents vote, and experts judge the sample that fits into their hours, mark the evidence
that answers the question, and err at the rates of `feedback.Errors`. Then the product
does what beat would start: it calibrates itself and retrains its probes, and an
administrator approves the better ones. Nothing is imported, and no entry is written.

After each week the asked and the held-out questions are asked under the active policy
and probes, and coverage, false answers and false refusals are measured. They are asked
a second time with the most lenient gates and ranked by the confidence of the verifier
or the probe: the coverage at as many false answers as in week 0 shows what the signals
have gained, independently of the thresholds.

It writes to the database: set NESCIO_VAR_DIR to a separate directory.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

# Imported first because it sets up Django.
from benchmarks.month.__main__ import forget, console  # isort: skip

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from rich.table import Table as Printed

from accounts.acting import unrestricted
from jobs.models import Job
from jobs.run import run_job
from kb.models import KnowledgeBase
from nescio.embedded import postgres
from probes.models import Probe
from qa.answers.models import Answer
from qa.calibration.self_calibration_jobs import KIND as CALIBRATE
from qa.calibration.self_calibration_jobs import enqueue_check
from qa.models import Retraining, Review
from qa.policies.models import Policy
from qa.policies.services import activate, active_policy, new_version
from qa.reviews.judgements import Judgement
from qa.reviews.sampling import SampleOrder, draw_sample
from qa.training.retraining import approve, enqueue_due
from workers.registry import HANDLERS

from .asking import asked, loaded_demonstration
from .feedback import MINUTES, Errors, graded, judged, voted
from .held_out import Week, drawing, measured
from .questions import MonthQuestion, parted, questions

WEEKS = 4
_WEEK = timedelta(days=7)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours-a-day", type=float, default=1.0)
    parser.add_argument("--limit", type=int, help="Use only so many questions.")
    parser.add_argument("--plot", type=Path, help="An .svg or .png file.")
    options = parser.parse_args()
    if settings.DATABASE_IS_EMBEDDED:
        postgres.start(settings.PLACES)
    call_command("migrate", verbosity=0, interactive=False)
    with unrestricted("simulated weeks"):
        weeks = _weeks(options.seed, options.hours_a_day, options.limit)
    if options.plot:
        options.plot.write_bytes(drawing(weeks, options.plot.suffix.lstrip(".")))
    gains = [of_kind[-1].at_equal - of_kind[0].at_equal for of_kind in weeks.values()]
    return 0 if min(gains) >= 0 < max(gains) else 1


def _weeks(seed: int, hours_a_day: float, limit: int | None) -> dict[str, list[Week]]:
    draw, errors, end = np.random.default_rng(seed), Errors(), datetime.now(UTC)
    admin, _ = User.objects.get_or_create(
        username="month-admin", defaults={"is_superuser": True}
    )
    knowledge_base = _prepared(admin)
    every = questions()
    parts = parted(every[:limit])
    live = parts.asked
    asked_again = {
        "the same questions, asked again": [o for o in live if not o.is_passed_on],
        "other questions about the entries that were asked about": parts.other_words,
        "entries that nobody asked about": parts.other_entries,
    }
    # In file order, some weeks would have only answerable questions, or none.
    draw.shuffle(live)
    truth = {one.text: one for one in every}
    _learn(admin)  # so that the reviews are not credited with what needs none
    weeks = {
        name: [measured(0, knowledge_base, some, wrong_allowed=None)]
        for name, some in asked_again.items()
    }
    _print(weeks)
    for number in range(1, WEEKS + 1):
        until = end - (WEEKS - number) * _WEEK
        some = live[number - 1 :: WEEKS]
        answers = asked(
            some,
            knowledge_base,
            end=until,
            seed=seed + number,
            on_progress=lambda _done, _total: None,
        )
        _move(answers.values(), until, draw)
        voted(answers, truth, errors, draw=draw)
        _judge(knowledge_base, truth, errors, 7 * hours_a_day, until, seed, draw)
        _learn(admin)
        for name, of_kind in weeks.items():
            allowed = of_kind[0].wrong
            week = measured(
                number, knowledge_base, asked_again[name], wrong_allowed=allowed
            )
            of_kind.append(week)
        _print(weeks)
    return weeks


def _prepared(admin: User) -> KnowledgeBase:
    """Return the demonstration with the default thresholds and all gates enforced."""
    knowledge_base = loaded_demonstration(admin)
    forget()
    first = Policy.objects.filter(knowledge_base=knowledge_base).order_by("pk").first()
    enforced = new_version(
        first or active_policy(knowledge_base),
        by=admin,
        abstention=True,
        min_confidence=0.5,
        calibrated_probes="|".join(
            Probe.objects.filter(state=Probe.State.ACTIVE, kind="abstention")
            .values_list("fingerprint", flat=True)
            .order_by("pk")
        ),
    )
    activate(enforced, by=admin)
    return knowledge_base


def _move(
    answers: Iterable[Answer], until: datetime, draw: np.random.Generator
) -> None:
    """Draw the time of each answer within the week that ends at `until`."""
    for answer in answers:
        answer.created_at = until - float(draw.random()) * _WEEK
        answer.save(update_fields=["created_at"])


def _judge(
    knowledge_base: KnowledgeBase,
    truth: dict[str, MonthQuestion],
    errors: Errors,
    hours: float,
    until: datetime,
    seed: int,
    draw: np.random.Generator,
) -> None:
    order = SampleOrder(
        knowledge_base=knowledge_base.pk,
        hours=hours,
        minutes_a_review=MINUTES,
        second_share=0.0,
        since=until - _WEEK,
        until=until,
        seed=seed,
    )
    draw_sample(order, by=None)
    judged(truth, errors, _judgement, draw=draw)


def _judgement(review: Review, question: MonthQuestion, errs: bool) -> Judgement:
    answer = review.answer
    pieces = answer.evidence.select_related("revision")
    marked = [
        piece.pk
        for piece in pieces
        if piece.revision and not errs and question.is_right(piece.revision.text)
    ]
    if answer.outcome == Answer.Outcome.REFUSED:
        due = bool(question.contains) is not errs
        return Judgement(should_be_answered=due, evidence_used=marked if due else ())
    return graded(question.is_right(answer.text) is not errs, marked)


def _learn(admin: User) -> None:
    """Calibrate and retrain as beat and workers would; approve the better probes."""
    run_job(enqueue_check().pk, HANDLERS)
    for job in Job.objects.filter(kind=CALIBRATE, state=Job.State.QUEUED):
        run_job(job.pk, HANDLERS)
    due = sorted(enqueue_due(), key=lambda job: job.parameters["kind"] == "joint")
    for job in due:
        run_job(job.pk, HANDLERS)
    for each in Retraining.objects.filter(state=Retraining.State.WAITING):
        approve(each.pk, by=admin)


def _print(weeks: Mapping[str, Sequence[Week]]) -> None:
    for name, of_kind in weeks.items():
        console.print(name)
        console.print(_table(of_kind))


def _table(weeks: Sequence[Week]) -> Printed:
    printed = Printed(box=None, pad_edge=False)
    for name in ("week", "labels", "coverage", "false answers", "false refusals", "at equal false answers", "policy"):  # fmt: skip
        printed.add_column(name, justify="left" if name == "policy" else "right")
    for week in weeks:
        printed.add_row(
            str(week.number),
            str(week.labels),
            f"{week.coverage:.1%}",
            f"{week.false_answers:.1%} ({week.wrong})",
            f"{week.false_refusals:.1%}",
            f"{week.at_equal:.1%}",
            week.policy,
        )
    return printed


if __name__ == "__main__":
    sys.exit(main())
