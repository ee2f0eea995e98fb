import logging
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console


class Command(BaseCommand):
    help = (
        "Start database, web server, workers and scheduler, ask the demonstration "
        "questions, and serve until Ctrl-C."
    )
    # There may be no database yet; it is checked after its start.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help="NESCIO_HOST")
        parser.add_argument(
            "--port", type=int, default=settings.PORT, help="NESCIO_PORT"
        )
        parser.add_argument(
            "--questions",
            default="some",
            help='How many demonstration questions to ask: a number, "all", or "some": '
            "a dozen at the first start and a few at later ones.",
        )
        parser.add_argument(
            "--empty",
            action="store_true",
            help="Start without the demonstration's knowledge, for your own. Knowledge "
            "that is already loaded stays.",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="Stop after the questions instead of serving.",
        )
        parser.add_argument(
            "--stop", action="store_true", help="Stop a running system instead."
        )

    def handle(self, *_args: object, **options: Any) -> None:
        # Imported here, so that the help does not wait for heavy modules.
        from nescio.up import UpError, session  # noqa: PLC0415
        from nescio.up.place import Address  # noqa: PLC0415

        # Progress is printed, so the log only needs warnings.
        logging.getLogger().setLevel(logging.WARNING)
        console = Console(width=None if sys.stdout.isatty() else 120)
        try:
            if options["stop"]:
                session.stop(console)
                return
            session.run(
                session.Options(
                    address=Address(options["host"], options["port"]),
                    questions=_count(options["questions"]),
                    is_check=options["check"],
                    is_empty=options["empty"],
                ),
                console,
            )
        except UpError as error:
            raise CommandError(str(error)) from error


def _count(text: str) -> int | None:
    if text == "some":
        return None
    if text == "all":
        return sys.maxsize
    if text.isdecimal():
        return int(text)
    raise CommandError(f'--questions is {text!r}. Give a number, "all" or "some".')
