from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.authentication import find_user
from accounts.provider.pages import sign_in_path


class Command(BaseCommand):
    help = (
        "Print a link that signs a user in once, within 10 minutes, without password and "
        "identity provider: the way in when neither works."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="The user's name.")

    def handle(self, *, user: str, **_: object) -> None:
        found = find_user(username=user, is_active=True)
        if found is None:
            raise CommandError(
                f"There is no active user {user!r}. Make one: manage.py createsuperuser"
            )
        self.stdout.write(settings.PUBLIC_URL + sign_in_path(found))
