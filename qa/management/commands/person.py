import json
from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder

from accounts.exceptions import NescioError
from qa.privacy.persons import (
    entries_to_look_at,
    erase_person,
    export_person,
    find_person,
)


class Command(BaseCommand):
    help = "Export or erase the data stored about one person."

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_subparsers(dest="what", required=True)
        export = what.add_parser("export", help="Write it as JSON.")
        export.add_argument("name", help="The user name they sign in with.")
        export.add_argument("--output", type=Path, required=True, metavar="FILE")
        erase = what.add_parser(
            "erase", help="Erase their words and names; it can't be undone."
        )
        erase.add_argument("name", help="The user name they sign in with.")

    def handle(
        self, *, what: str, name: str, output: Path | None = None, **_: object
    ) -> None:
        try:
            person = find_person(name)
            if output is not None:
                self._export(export_person(person), output)
            elif what == "erase":
                entries = entries_to_look_at(person)
                count = erase_person(person)
                self.stdout.write(
                    f"Erased: the texts of {count:,} questions; the account is now "
                    f"named {person.username}."
                )
                if entries:
                    self.stdout.write(
                        "Not erased, but possibly containing their words: entries "
                        f"{', '.join(map(str, entries))}. Edit or erase these."
                    )
        except NescioError as error:
            raise CommandError(str(error)) from error

    def _export(self, data: dict[str, object], output: Path) -> None:
        text = json.dumps(data, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2)
        try:
            # Readable only by the user who runs the command.
            output.touch(mode=0o600, exist_ok=False)
            output.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(
                f"{output} cannot be written ({error.strerror}); name a new file."
            ) from error
        self.stdout.write(f"Written to {output}.")
