from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from kb.demonstration import load_demonstration


class Command(BaseCommand):
    help = "Load the knowledge of an invented card issuer, unless it is already there."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--author",
            help="Name of the user who wrote and verified it; by default the first "
            "superuser.",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        loaded = load_demonstration(author=_author(options["author"]))
        self.stdout.write(
            "The demonstration is loaded."
            if loaded
            else "The demonstration was already there."
        )


def _author(username: str | None) -> User:
    users = User.objects.filter(is_active=True).order_by("pk")
    if username is None:
        author = users.filter(is_superuser=True).first()
        remedy = "There is no superuser; create one: manage.py createsuperuser"
    else:
        author = users.filter(username=username).first()
        remedy = f"There is no active user {username!r}; name another with --author."
    if author is None:
        raise CommandError(remedy)
    return author
