import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.exceptions import NescioError
from accounts.roles import Role, has_role
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.imports.models import Import
from kb.imports.readers.formats import NAMED
from kb.imports.running import run_import
from kb.imports.services import Upload, start_import, unfinished_import
from kb.tags.models import Tag

_REPORT_SECONDS = 2.0


class Command(BaseCommand):
    help = (
        f"Import files of knowledge ({NAMED}). A file whose source was imported before "
        "is a new version: only what changed is updated. If interrupted, the "
        "same command continues."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument(
            "--knowledge-base", required=True, metavar="SLUG", help="which one"
        )
        parser.add_argument(
            "--audience", required=True, metavar="SLUG", help="who may see it"
        )
        parser.add_argument("--document-title", default="", help="of the one document")
        parser.add_argument(
            "--source",
            default="",
            help="identifies the document for later versions; by default the file's name",
        )
        for facet in Tag.Facet:
            parser.add_argument(
                f"--{facet.value.replace('_', '-')}",
                metavar="SLUG",
                help=f"{facet.label} of new entries",
            )
        parser.add_argument(
            "--dry-run", action="store_true", help="show what would change"
        )
        parser.add_argument(
            "--verify-as", metavar="USER", help="a curator who verifies all entries"
        )

    def handle(self, *args: object, **options: object) -> None:
        files = options["files"]
        assert isinstance(files, list)  # noqa: S101  # argparse made it
        if len(files) > 1 and (options["document_title"] or options["source"]):
            raise CommandError("--document-title and --source are for one FILE.")
        verifier = _verifier(options["verify_as"])
        how = {
            "knowledge_base": _named(KnowledgeBase, options["knowledge_base"]),
            "audience": _named(Audience, options["audience"]),
            "source": options["source"],
            "title": options["document_title"],
            "verify": verifier is not None,
            **{facet.value: _tag(facet, options[facet.value]) for facet in Tag.Facet},
        }
        for file in files:
            self._import(file, how, verifier, applies=options["dry_run"] is not True)

    def _import(
        self, file: Path, how: dict[str, Any], verifier: User | None, *, applies: bool
    ) -> None:
        try:
            with file.open("rb") as stream:
                upload = Upload(file=stream, name=file.name, **how)
                row = unfinished_import(upload, by=verifier) if applies else None
                row = row or start_import(upload, by=verifier)
            began = time.monotonic()
            done = run_import(row.pk, apply=applies, writing=self._writing(file.name))
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
        except NescioError as error:
            raise CommandError(f"{file}: {error}") from error
        self._report(done, time.monotonic() - began)

    def _writing(self, name: str):  # type: ignore[no-untyped-def]  # noqa: ANN202  # a context manager's maker
        reported = began = time.monotonic()

        @contextmanager
        def writing(done: int, total: int | None) -> Iterator[None]:
            nonlocal reported
            with transaction.atomic():
                yield
            now = time.monotonic()
            if now - reported >= _REPORT_SECONDS:
                reported = now
                of = f" of {total:,}" if total else ""
                rate = done / (now - began)
                self.stderr.write(f"{name}: {done:,}{of}, {rate:,.0f}/s")

        return writing

    def _report(self, done: Import, seconds: float) -> None:
        counts = ", ".join(
            f"{number:,} {name}" for name, number in done.counts.items() if number
        )
        counts = counts or "no entries found"
        what = "would be: " if done.state == Import.State.PLANNED else ""
        self.stdout.write(
            self.style.SUCCESS(f"{done.file_name}: {what}{counts} ({seconds:.1f} s)")
        )
        for each in done.planned.iterator():
            by = ", edited by a person" if each.is_edited else ""
            was = f"\n      was{by}: {each.before}" if each.before else ""
            text = " ".join(filter(None, (each.question, each.text)))
            self.stdout.write(f"  {each.action} {each.place}: {text}{was}")
        for row in done.bad_rows:
            self.stdout.write(f"  bad {row['place']}: {row['reason']}")
        for note in done.notes:
            self.stdout.write(f"  {note}")


def _named(model: Any, slug: object) -> Any:
    found = model.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(model.objects.order_by("slug").values_list("slug", flat=True))
        raise CommandError(
            f"There is no {model._meta.verbose_name} {slug!r}; available: "
            f"{known or 'none yet'}."
        )
    return found


def _tag(facet: Tag.Facet, slug: object) -> Tag | None:
    if not slug:
        return None
    tag = Tag.objects.filter(facet=facet, slug=slug).first()
    if tag is None:
        raise CommandError(f"There is no {facet.label} {slug!r}; create the tag first.")
    return tag


def _verifier(name: object) -> User | None:
    if not name:
        return None
    user = User.objects.filter(username=name).first()
    if user is None or not has_role(user, Role.CURATOR):
        raise CommandError(f"There is no active curator {name!r}.")
    return user
