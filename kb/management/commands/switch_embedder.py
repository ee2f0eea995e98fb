import argparse
import time

from django.core.management.base import BaseCommand, CommandError

from jobs.models import Job
from jobs.services import enqueue
from kb.embedding.embedder import load_embedder
from kb.embedding.switch import KIND, TIDY_KIND
from kb.exceptions import EmbedderUnavailableError


class Command(BaseCommand):
    help = (
        "Embed every entry with another embedding model and switch to it. The current "
        "one is used until all is done. Needs a running worker."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "name",
            nargs="?",
            help="'bundled', a directory, or a name that sentence-transformers knows",
        )
        parser.add_argument(
            "--again",
            action="store_true",
            help="also embed entries that are up to date under this model",
        )
        parser.add_argument(
            "--tidy",
            action="store_true",
            help="delete the vectors of models that are no longer in use",
        )
        parser.add_argument(
            "--wait", action="store_true", help="show the progress until it is done"
        )

    def handle(self, *args: object, **options: object) -> None:
        name = options["name"]
        if (name is None) != (options["tidy"] is True):
            raise CommandError("Give either the NAME of a model or --tidy.")
        if options["tidy"]:
            job = enqueue(TIDY_KIND, {}, idempotency_key=TIDY_KIND)
        else:
            job = self._enqueue_switch(str(name), again=options["again"] is True)
        self.stdout.write(f"Job {job.pk} ({job.kind}) is {job.state}.")
        if options["wait"]:
            self._follow(job)

    def _enqueue_switch(self, name: str, *, again: bool) -> Job:
        try:
            embedder = load_embedder(name)
        except EmbedderUnavailableError as error:
            raise CommandError(str(error)) from error
        return enqueue(
            KIND,
            {"name": name, "again": again},
            idempotency_key=f"{KIND}:{embedder.fingerprint}",
        )

    def _follow(self, job: Job) -> None:
        shown = ""
        while not job.is_finished:
            time.sleep(0.5)
            job.refresh_from_db()
            progress = f"{job.state}: {job.done} of {job.total or '?'}"
            if progress != shown:
                self.stdout.write(progress)
                shown = progress
        if job.state != Job.State.SUCCEEDED:
            raise CommandError(f"The job ended as {job.state}. {job.error}")
        facts = ", ".join(f"{name}: {value}" for name, value in job.result.items())
        self.stdout.write(self.style.SUCCESS(facts))
