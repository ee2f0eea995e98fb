from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kb.archive.writing import Contents, TenthLines, write_archive
from kb.exceptions import InvalidKnowledgeError


class Command(BaseCommand):
    help = (
        "Write knowledge bases with documents, entries, their whole history and "
        "audiences into one archive, which restore_knowledge reads."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the archive to write, a .zip")
        parser.add_argument(
            "--knowledge-base", default="", metavar="SLUG", help="by default all"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        contents = Contents(knowledge_base=options["knowledge_base"])
        try:
            manifest = write_archive(
                options["path"], contents, progress=TenthLines(self.stdout.write)
            )
        except (InvalidKnowledgeError, OSError) as error:
            raise CommandError(str(error)) from error
        entries, revisions = (
            manifest.files[name].rows for name in ("entries", "revisions")
        )
        self.stdout.write(
            self.style.SUCCESS(
                f"{options['path']} holds {entries:,} entries with {revisions:,} "
                f"revisions of {', '.join(manifest.knowledge_bases) or 'nothing'}."
            )
        )
