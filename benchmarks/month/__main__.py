"""Simulate a month of votes and reviews, and measure what probes learn from it.

    python -m benchmarks.month [--seed N] [--hours H]

Asks the demonstration some 990 questions, lets simulated agents vote and simulated
experts review with known error rates, and has the product retrain its probes from those
reviews alone. Prints the AUROC before and after on held-out answers, both by the
experts' reviews (on which the product decides) and by the known truth. Answers are kept
for the next run; votes, reviews and probes of an earlier run are deleted.

It writes to the database: set NESCIO_VAR_DIR to a separate directory.
"""

import argparse
import math
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
django.setup()

import numpy as np  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from accounts.acting import unrestricted  # noqa: E402
from jobs.models import Job  # noqa: E402
from jobs.run import run_job  # noqa: E402
from nescio.embedded import postgres  # noqa: E402
from probes.cards import ProbeKind  # noqa: E402
from probes.models import Probe  # noqa: E402
from probes.services import NOTE, promote  # noqa: E402
from qa.inference.configured import load_language_model  # noqa: E402
from qa.models import Answer, Retraining, Review, ReviewSample, Vote  # noqa: E402
from qa.pipeline.replay import flat  # noqa: E402
from qa.reviews.labels import Part, part_of  # noqa: E402
from qa.training.compare_probes import compare_probes  # noqa: E402
from qa.training.labels import (  # noqa: E402
    LabelledDraft,
    evidence_of,
    finite,
    prompt_of,
    text_of,
)
from qa.training.request import model_to_train_on  # noqa: E402
from qa.training.retraining import Comparison, approve, enqueue_due  # noqa: E402
from workers.registry import HANDLERS  # noqa: E402

from .asking import asked, prepared_knowledge_base  # noqa: E402
from .feedback import Errors, reviewed, voted  # noqa: E402
from .questions import MonthQuestion, questions  # noqa: E402

console = Console(width=110, highlight=False)


@dataclass(frozen=True, slots=True)
class Learnt:
    """The retraining of one kind of probe, and its comparison by the known truth."""

    retraining: Retraining
    by_truth: Comparison | None


def main() -> int:
    """Simulate the month and print; return 1 if the abstention probe is no better."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--hours", type=float, default=48.0, help="Of all experts together."
    )
    options = parser.parse_args()
    if settings.DATABASE_IS_EMBEDDED:
        postgres.start(settings.PLACES)
    call_command("migrate", verbosity=0, interactive=False)
    with unrestricted("a simulated month"):
        return _month(options.seed, options.hours)


def _month(seed: int, hours: float) -> int:
    draw, errors, end = np.random.default_rng(seed), Errors(), datetime.now(UTC)
    author, _ = User.objects.get_or_create(
        username="month-admin", defaults={"is_superuser": True}
    )
    knowledge_base = prepared_knowledge_base(author)
    truth = {one.text: one for one in questions()}
    with console.status("") as status:
        answers = asked(
            [*truth.values()],
            knowledge_base,
            end=end,
            seed=seed,
            on_progress=lambda done, total: status.update(f"asking {done} of {total}"),
        )
    forget()
    drafts = _drafts(truth)
    right = sum(draft.is_right for draft in drafts)
    console.print(f"{len(answers)} questions, {len(drafts)} drafts, {right} right.")
    votes, wrong_votes = voted(answers, truth, errors, draw=draw)
    console.print(
        f"{votes} thumbs, {wrong_votes} of them wrong ({wrong_votes / votes:.1%})."
    )
    sample, wrong = reviewed(
        knowledge_base, truth, errors, hours=hours, end=datetime.now(UTC), seed=seed, draw=draw,
    )  # fmt: skip
    done = Review.objects.done().count()
    console.print(
        f"{done} reviews of {sample.answers} answers in {hours:g} hours, {wrong} of them "
        f"wrong ({wrong / done:.1%}); stratified by {', '.join(sample.dimensions)}."
    )
    held_out = [draft for draft in drafts if part_of(draft.group) is Part.GOLDEN]
    learnt = _learnt(held_out, author)
    _print(learnt)
    return 0 if _is_better(learnt) else 1


def _learnt(held_out: list[LabelledDraft], admin: User) -> list[Learnt]:
    """Retrain as beat and worker do, and approve the probes that are better."""
    waiting = enqueue_due()
    console.print(f"{len(waiting)} retrainings were due.")
    found = []
    for job in sorted(waiting, key=lambda job: job.parameters["kind"] == "joint"):
        with console.status(f"retraining {job.parameters['kind']}"):
            found.append(_learnt_by(job, held_out))
        retraining = found[-1].retraining
        if retraining.state == Retraining.State.WAITING:
            approve(retraining.pk, by=admin)
            retraining.refresh_from_db()
    return found


def _learnt_by(job: Job, held_out: list[LabelledDraft]) -> Learnt:
    run_job(job.pk, HANDLERS)
    retraining = Retraining.objects.get(job=job)
    if retraining.challenger is None:
        return Learnt(retraining, None)
    comparison = compare_probes(
        model_to_train_on(load_language_model()),
        held_out,
        champion=retraining.champion,
        challenger=retraining.challenger,
        directory=settings.PLACES.activations,
    )
    return Learnt(retraining, comparison)


def _drafts(truth: dict[str, MonthQuestion]) -> list[LabelledDraft]:
    """Return the drafts of the language model, labelled by the known truth."""
    rows = Answer.objects.filter(question__in=truth, channel=Answer.Channel.API)
    found = []
    for answer in rows.prefetch_related(evidence_of("evidence")):
        text, prompt = text_of(answer), prompt_of(answer)
        if text and prompt.evidence:
            found.append(
                LabelledDraft(
                    id=str(answer.pk),
                    group=f"entry {prompt.evidence[0].entry_id}",
                    signals=finite(flat(answer.signals)),
                    is_answerable=None,
                    is_correct=truth[answer.question].is_right(answer.text),
                    prompt=prompt,
                    answer=text,
                )
            )
    return found


def forget() -> None:
    """Delete the feedback and probes of an earlier run; its answers stay."""
    Retraining.objects.all().delete()
    Review.objects.all().delete()
    ReviewSample.objects.all().delete()
    Vote.objects.all().delete()
    Job.objects.all().delete()
    Probe.objects.exclude(note=NOTE).delete()
    for probe in Probe.objects.exclude(state=Probe.State.ACTIVE):
        promote(probe.pk, Probe.State.ACTIVE, by=None)


def _is_better(learnt: list[Learnt]) -> bool:
    return any(
        one.retraining.kind == ProbeKind.ABSTENTION
        and one.by_truth is not None
        and one.by_truth.challenger_auroc > one.by_truth.champion_auroc
        for one in learnt
    )


def _print(learnt: list[Learnt]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("probe", "fitted on", "held out", "before", "after", "difference (95 %)", ""):  # fmt: skip
        table.add_column(name, justify="left" if name in ("probe", "") else "right")
    for one in learnt:
        row = one.retraining
        if row.champion_auroc is None or row.challenger_auroc is None:
            table.add_row(row.kind, "", "", "", "", row.reason, row.get_state_display())
            continue
        for how, found in (("as reviewed", row), ("by the truth", one.by_truth)):
            if found is not None:
                before = found.champion_auroc or math.nan
                after = found.challenger_auroc or math.nan
                low, high = (
                    math.nan if x is None else x for x in (found.low, found.high)
                )
                table.add_row(
                    f"{row.kind}, {how}",
                    f"{row.labels}",
                    f"{found.golden}",
                    f"{before:.3f}",
                    f"{after:.3f}",
                    f"{after - before:+.3f} ({low:+.3f} to {high:+.3f})",
                    row.get_state_display() if how == "as reviewed" else "",
                )
    console.print("\nAUROC on held-out answers")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
