"""Let the language model propose entries from seed questions."""

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from accounts.exceptions import UnavailableError
from kb.audiences.models import Audience
from kb.enrichment.background import checked
from kb.enrichment.models import Proposal
from kb.enrichment.proposals import Plan
from kb.enrichment.services import Progress, enrich
from qa.answers.questions import find_knowledge_base
from qa.inference.configured import load_writer
from qa.management import base
from qa.management.progress import Bar


class Command(base.Command):
    help = (
        "Let the language model write questions like the seeds, answer them and "
        "propose an entry for each answer. No proposal answers anybody before a "
        "curator has reviewed it, unless the policy allows it. If interrupted, the "
        "same command continues. Exit code: 0, 2 if something is missing or wrong, 3 "
        "if a model is down."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--seeds", type=Path, required=True, metavar="FILE", help="One per line.")
        add(
            "--knowledge-base", default="", metavar="SLUG",
            help="The knowledge base to enrich (default: the oldest).",
        )  # fmt: skip
        add(
            "--audience", default="", metavar="SLUG",
            help="Who may see the proposals (default: an audience of everyone).",
        )  # fmt: skip
        add(
            "--per-seed", type=int, default=3, metavar="N",
            help="Questions written for each seed; 0 answers the seeds themselves.",
        )  # fmt: skip
        add("--count", type=base.positive, default=100, metavar="N", help="At most.")
        add("--seed", type=int, default=0, help="Random seed.")

    def handle(self, **options: Any) -> None:
        try:
            self._enrich(options)
        except UnavailableError as error:
            kept = "The proposals so far are kept: the same command continues."
            raise CommandError(f"{error} {kept}", returncode=3) from error

    def _enrich(self, options: dict[str, Any]) -> None:
        plan = checked(
            Plan(
                knowledge_base=find_knowledge_base(options["knowledge_base"]),
                audience=_audience(options["audience"]),
                seeds=_lines(options["seeds"]),
                per_seed=options["per_seed"],
                count=options["count"],
                seed=options["seed"],
            )
        )
        before = Proposal.objects.order_by("-pk").values_list("pk", flat=True).first()
        progress = Progress()
        with Bar("seeds", self.errors) as bar:
            bar.at(0, len(plan.seeds))
            for progress in enrich(plan, load_writer(), writing=transaction.atomic):
                bar.at(progress.seeds, len(plan.seeds))
        made = Proposal.objects.filter(
            knowledge_base=plan.knowledge_base, pk__gt=before or 0
        )
        for proposal in made.order_by("pk"):
            self.stdout.write(_shown(proposal))
        left_out = ", ".join(
            f"{cause.replace('_', ' ')}: {count}"
            for cause, count in sorted(progress.counts.items())
            if count
        )
        self.stdout.write(
            f"{progress.proposed} proposed from {progress.seeds} of {len(plan.seeds)} "
            f"seeds. {left_out}"
        )


def _shown(proposal: Proposal) -> str:
    likelihood = "-" if proposal.likelihood is None else f"{proposal.likelihood:.2f}"
    return (
        f"entry {proposal.entry_id}  {proposal.sentence}\n"
        f"    {proposal.question} {proposal.answer}\n"
        f"    confidence {proposal.confidence:.2f} (stated {proposal.stated:.2f}, "
        f"agreement {proposal.agreement:.2f}, likelihood {likelihood})"
    )


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} can't be read: {error}", returncode=2) from error


def _audience(slug: str) -> Audience:
    rows = Audience.objects.order_by("pk")
    found = rows.filter(slug=slug) if slug else rows.filter(everyone=True)
    audience = found.first()
    if audience is None:
        raise CommandError(
            f"There is no audience {slug!r}."
            if slug
            else "There is no audience of everyone; name one with --audience.",
            returncode=2,
        )
    return audience
