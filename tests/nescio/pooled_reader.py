"""Asks and reads as two users by turns, in several threads: a process behind a pooler.

Started by `test_pooler.py` with the primary keys of both; prints what each of them saw.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from accounts.acting import acting_for  # noqa: E402
from kb.models import Entry  # noqa: E402
from nescio.fitness import require_fit_database  # noqa: E402
from qa.answers.asking import ask  # noqa: E402

ROUNDS = 60


def read(user: User) -> set[tuple[str, ...]]:
    """Return everything that this user ever saw, by statements and in transactions."""
    seen = set()
    for number in range(ROUNDS):
        with acting_for(user):
            if number % 2:
                seen.add(tuple(sorted(Entry.objects.values_list("text", flat=True))))
            else:
                with transaction.atomic():
                    rows = Entry.objects.order_by("text").iterator()
                    seen.add(tuple(entry.text for entry in rows))
    connection.close()
    return seen


def main() -> None:
    require_fit_database()
    users = [User.objects.get(pk=int(key)) for key in sys.argv[1:3]]
    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(read, users * 4))
    answered = []
    for user in users:
        with acting_for(user):
            answer = ask(sys.argv[3], asker=user, channel="command")
        answered.append([answer.outcome, answer.text])
    found = {"seen": [sorted(each) for each in seen], "answered": answered}
    sys.stdout.write(json.dumps(found))


main()
