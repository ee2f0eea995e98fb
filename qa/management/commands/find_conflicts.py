"""Find duplicates and contradictions among the entries."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.exceptions import NescioError
from kb.conflicts.background import JudgeSession, enqueue_comparison, judged_batches
from kb.conflicts.finding import find_entry_conflicts
from kb.conflicts.models import Conflict
from qa.inference.configured import configured_judge


class Command(BaseCommand):
    help = (
        "Compare every entry that changed since its last comparison with the entries "
        "nearest to it, and record duplicates and contradictions. May be interrupted "
        "and started again. Exit code: 0, or 1 if the embedding model is missing."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--background", action="store_true", help="Let a worker do it, as a job."
        )

    def handle(self, **options: Any) -> None:
        if options["background"]:
            job = enqueue_comparison()
            self.stdout.write(f"Job {job.pk} is {job.get_state_display()}.")
            return
        try:
            done = self._find()
        except NescioError as error:
            raise CommandError(str(error)) from error
        for kind in Conflict.Kind:
            count = Conflict.objects.open().filter(kind=kind).count()
            self.stdout.write(f"Open, {kind.label}: {count}.")
        self.stdout.write(f"Compared {done} entries.")

    def _find(self) -> int:
        judging, done = JudgeSession.of(configured_judge), 0
        for entry_ids, opinions in judged_batches(judging):
            for entry_id in entry_ids:
                find_entry_conflicts(entry_id, opinions=opinions)
            done += len(entry_ids)
            if done % 1_000 == 0:
                self.stdout.write(f"{done} entries compared.")
        if judging.failure:
            self.stderr.write(f"Done without a judge: {judging.failure}")
        elif judging.judge:
            self.stdout.write(
                f"Asked {judging.judge.name} about {judging.asked} unsure pairs, "
                f"{judging.unreadable} without a readable reply."
            )
        return done
