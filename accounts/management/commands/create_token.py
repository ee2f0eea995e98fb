from argparse import ArgumentParser
from datetime import timedelta

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from accounts.services import MAX_TOKEN_DAYS, Lifetime, create_token


class Command(BaseCommand):
    help = "Make an API token for a user and print it. It can't be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="The user's name.")
        parser.add_argument("--name", default="", help="What the token is for.")
        parser.add_argument(
            "--acts-for-others",
            action="store_true",
            help="Its requests may name any user but superusers, whose entitlement then "
            "counts (X-Nescio-On-Behalf-Of).",
        )
        parser.add_argument(
            "--manages-users",
            action="store_true",
            help="It may make, change, close, export and erase accounts at /api/v1/users, "
            "if its user has the role admin.",
        )
        ends = parser.add_mutually_exclusive_group()
        ends.add_argument(
            "--days",
            type=int,
            help="Days until it expires; without it, NESCIO_TOKEN_DAYS.",
        )
        ends.add_argument("--never-expires", action="store_true")

    def handle(
        self,
        *,
        user: str,
        name: str,
        days: int | None,
        never_expires: bool,
        acts_for_others: bool,
        manages_users: bool,
        **_: object,
    ) -> None:
        if days is not None and not 1 <= days <= MAX_TOKEN_DAYS:
            raise CommandError(f"--days is {days}; give 1 to {MAX_TOKEN_DAYS}.")
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(
                f"There is no user {user!r}. Make one in the admin, or with createsuperuser."
            )
        if not owner.is_active:
            raise CommandError(
                f"User {user!r} is not active, so a token would not work."
            )
        expires_in: Lifetime = None if never_expires else "default"
        if days is not None:
            expires_in = timedelta(days=days)
        issued = create_token(
            user=owner,
            name=name,
            expires_in=expires_in,
            may_act_for_others=acts_for_others,
            may_manage_users=manages_users,
        )
        self.stdout.write(issued.secret)
