import logging
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError


class Command(BaseCommand):
    help = "Migrate, prepare the bundled models, load the demonstration knowledge."
    requires_system_checks = []  # they read tables that this command may first create

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--no-demonstration",
            action="store_true",
            help="Leave the knowledge base as it is.",
        )
        parser.add_argument(
            "--migrated",
            action="store_true",
            help="The tables are up to date: skip the check.",
        )

    def handle(self, *_args: object, **options: Any) -> None:
        # Imported here, so that the help does not wait for heavy modules.
        from nescio.up import UpError, preparation  # noqa: PLC0415

        # Progress is printed, so the log only needs warnings.
        logging.getLogger().setLevel(logging.WARNING)
        console = Console(width=None if sys.stdout.isatty() else 120)
        try:
            if not options["migrated"]:
                preparation.migrate(console)
            preparation.prepare_models(console)
            preparation.register_probes(console)
            if not options["no_demonstration"]:
                preparation.load_knowledge(console)
        except (UpError, NescioError) as error:
            raise CommandError(str(error)) from error
