from argparse import ArgumentParser
from datetime import timedelta

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from accounts.services import create_token


class Command(BaseCommand):
    help = "Make an API token for a user and print it. It can't be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="The user's name.")
        parser.add_argument("--name", default="", help="What the token is for.")
        parser.add_argument(
            "--days", type=int, help="Days until it expires; without it, never."
        )

    def handle(self, *, user: str, name: str, days: int | None, **_: object) -> None:
        if days is not None and not 1 <= days <= 3650:
            raise CommandError(f"--days is {days}; give 1 to 3650.")
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(
                f"There is no user {user!r}. Make one in the admin, or with createsuperuser."
            )
        if not owner.is_active:
            raise CommandError(
                f"User {user!r} is not active, so a token would not work."
            )
        expires_in = None if days is None else timedelta(days=days)
        issued = create_token(user=owner, name=name, expires_in=expires_in)
        self.stdout.write(issued.secret)
