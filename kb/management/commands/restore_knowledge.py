from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kb.archive.restoring import Newcomers, Restored, restore_archive
from kb.archive.writing import TenthLines
from kb.exceptions import EmbedderUnavailableError, InvalidArchiveError


class Command(BaseCommand):
    help = (
        "Restore an archive: knowledge bases that are empty or missing here, with their "
        "whole history, in one transaction."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="an archive of export_knowledge")
        parser.add_argument(
            "--dry-run", action="store_true", help="check it and write nothing"
        )
        parser.add_argument(
            "--slug",
            default="",
            help="new slug for the archive's only knowledge base, to restore it beside "
            "the original",
        )
        parser.add_argument(
            "--create-users",
            action="store_true",
            help="create users that do not exist here, inactive and without a password",
        )
        parser.add_argument(
            "--create-groups",
            action="store_true",
            help="create groups that do not exist here, without members",
        )
        parser.add_argument(
            "--user",
            action="append",
            default=[],
            type=_pair,
            metavar="THERE=HERE",
            help="the user here for a user of the archive; may be given more than once",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        newcomers = Newcomers(
            create_users=options["create_users"],
            create_groups=options["create_groups"],
            users=dict(options["user"]),
        )
        try:
            restored = restore_archive(
                options["path"],
                newcomers=newcomers,
                slug=options["slug"],
                dry_run=options["dry_run"],
                progress=TenthLines(self.stdout.write),
            )
        except (InvalidArchiveError, EmbedderUnavailableError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            self.style.SUCCESS(_summary(restored, is_rehearsal=options["dry_run"]))
        )


def _pair(value: str) -> tuple[str, str]:
    there, sign, here = value.partition("=")
    if not (there and sign and here):
        raise ArgumentTypeError(f"{value!r} is not of the form THERE=HERE")
    return there, here


def _summary(restored: Restored, *, is_rehearsal: bool) -> str:
    rows = ", ".join(f"{count:,} {name}" for name, count in restored.rows.items())
    said = [f"{'Would restore' if is_rehearsal else 'Restored'} {rows}."]
    for kind, names in (("users", restored.new_users), ("groups", restored.new_groups)):
        if names:
            said.append(f"New {kind}: {', '.join(names)}.")
    return " ".join(said)
