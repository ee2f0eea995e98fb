"""Simulate a year of changes and questions, then replay every answer and compare.

    python -m benchmarks.past_year [--answers 1000] [--seed 0]

Loads the demonstration into a separate database, with the clock set back a year. On
each of 365 days up to three changes are made: entries are edited, retired, restored,
moved to other audiences, given an end of validity or added, documents renamed, policies
activated, refusal wordings changed, contradictions found and settled, and askers added
to groups or removed. Prints how many replays equal the stored answer, and how many of
the questions would be decided differently today.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar
from unittest.mock import patch

import django
import numpy as np

if TYPE_CHECKING:
    from qa.answers.models import Answer

Item = TypeVar("Item")

DAYS: Final = 365
_MIN_CHANGES, _MAX_CHANGES = 0, 3  # per day
_REASONS: Final = ("nothing_known", "too_far", "expired_only", "")


@contextmanager
def clock(at: datetime) -> Iterator[None]:
    """Set Django's clock to `at`."""
    with patch("django.utils.timezone.now", lambda: at):
        yield


class Year:
    """A simulated year of the demonstration; the seed determines all random choices."""

    def __init__(self, *, start: datetime, seed: int) -> None:
        from benchmarks.month.asking import loaded_demonstration
        from benchmarks.month.questions import questions
        from kb.audiences.models import Audience
        from qa.evaluation.knowledge import ensure_agent
        from qa.policies.services import ensure_default_policy

        self.start = start
        self._draw = np.random.default_rng(seed)
        self._kept = 0
        self.made = Counter[str]()
        with clock(start):
            self.author = ensure_agent("past-year-curator", ())
            self.knowledge_base = loaded_demonstration(self.author)
            ensure_default_policy(self.knowledge_base)
            self.askers = [ensure_agent(f"past-year-{at}", ()) for at in range(3)]
            self._audiences = [*Audience.objects.order_by("pk")]
        self._questions = [question.text for question in questions()]
        self._changes: Sequence[Callable[[datetime], object]] = (
            self._edit, self._edit, self._edit, self._retire, self._restore, self._mark,
            self._verify, self._move, self._expire, self._add, self._rename,
            self._activate, self._word, self._regroup, self._contradict, self._settle,
        )  # fmt: skip

    def run(self, answers: int) -> "Iterator[Answer]":
        """Simulate the year; yield each answer as it is stored."""
        asked = 0
        for day in range(DAYS):
            at = self.start + timedelta(days=day + 1)
            for number in range(self._draw.integers(_MIN_CHANGES, _MAX_CHANGES + 1)):
                self.change(at + timedelta(hours=number))
            while asked * DAYS < answers * (day + 1):
                yield self.ask(at + timedelta(hours=8, minutes=asked % 600))
                asked += 1

    def change(self, at: datetime) -> None:
        from accounts.acting import unrestricted
        from kb.search.models import FormerRow

        change = self._one(self._changes)
        self.made[change.__name__.strip("_")] += 1
        with clock(at), unrestricted("a simulated year"):
            change(at)
            # The trigger stamps former rows with the database's real clock.
            rows = FormerRow.objects.filter(pk__gt=self._kept)
            rows.update(until=at)
            newest = FormerRow.objects.order_by("-pk").values_list("pk", flat=True)
            self._kept = newest.first() or 0

    def ask(self, at: datetime) -> "Answer":
        from accounts.acting import acting_for
        from qa.answers.asking import ask
        from qa.answers.questions import find_knowledge_base

        asker = self._one(self.askers)
        with clock(at), acting_for(asker):
            base = find_knowledge_base(self.knowledge_base.slug, asker=asker)
            question = self._one(self._questions)
            return ask(question, asker=asker, channel="api", knowledge_base=base)

    def _one(self, many: Sequence[Item]) -> Item:
        return many[int(self._draw.integers(len(many)))]

    def _entry(self, **fields: Any) -> int:
        from kb.entries.models import Entry

        rows = Entry.objects.filter(knowledge_base=self.knowledge_base, **fields)
        ids = [*rows.order_by("pk").values_list("pk", flat=True)]
        return self._one(ids) if ids else 0

    def _change_entry(self, *, may_verify: bool = True, **changes: Any) -> None:
        from kb.entries.services import edit_entry

        if entry := self._entry(state__in=("verified", "needs_review")):
            edit_entry(
                entry_id=entry, author=self.author, may_verify=may_verify, **changes
            )

    def _edit(self, at: datetime) -> None:
        from kb.entries.models import Entry

        source = Entry.objects.get(pk=self._entry())
        added = ("This holds until further notice.", "Ask the desk.", f"Since {at:%B}.")
        self._change_entry(
            may_verify=bool(self._draw.integers(4)),
            text=f"{source.text} {self._one(added)}"[:2000],
        )

    def _retire(self, _at: datetime) -> None:
        from kb.entries.states import retire_entry

        if entry := self._entry(state="verified"):
            retire_entry(entry_id=entry, by=self.author)

    def _restore(self, _at: datetime) -> None:
        from kb.entries.states import restore_entry

        if entry := self._entry(state="retired"):
            restore_entry(entry_id=entry, by=self.author)

    def _mark(self, _at: datetime) -> None:
        from kb.entries.states import mark_for_review

        if entry := self._entry(state="verified"):
            mark_for_review(entry_id=entry, by=self.author)

    def _verify(self, _at: datetime) -> None:
        from kb.entries.states import verify_entry

        if entry := self._entry(state="needs_review", valid_until=None):
            verify_entry(entry_id=entry, by=self.author)

    def _move(self, _at: datetime) -> None:
        self._change_entry(audience=self._one(self._audiences))

    def _expire(self, at: datetime) -> None:
        self._change_entry(
            valid_until=at + timedelta(days=int(self._draw.integers(90)))
        )

    def _add(self, _at: datetime) -> None:
        from kb.entries.models import Entry
        from kb.entries.services import create_entry

        source = Entry.objects.get(pk=self._entry(state="verified"))
        create_entry(
            author=self.author,
            knowledge_base=self.knowledge_base,
            audience=self._one(self._audiences),
            text=f"As of this year: {source.text}"[:2000],
            verify=True,
        )

    def _rename(self, at: datetime) -> None:
        from kb.documents.models import Document
        from kb.documents.services import edit_document
        from kb.embedding.services import active_model, write_vectors
        from kb.entries.models import Entry

        rows = Document.objects.filter(knowledge_base=self.knowledge_base)
        document = self._one([*rows.order_by("pk")])
        title = f"{document.title.partition(', as of')[0]}, as of {at:%B}"
        edit_document(document_id=document.pk, title=title)
        # In production a job does this soon afterwards.
        write_vectors([*Entry.objects.filter(document=document)], model=active_model())

    def _activate(self, _at: datetime) -> None:
        from qa.policies.services import activate, active_policy, new_version

        draw = self._draw
        alpha = round(float(draw.uniform(0.9, 1.2)), 3)
        made = new_version(
            active_policy(self.knowledge_base),
            by=self.author,
            alpha=alpha,
            horizon=1.25,
            top_k=int(draw.integers(2, 6)),
            # Between these thresholds the language model answers; keep that rare.
            min_answerability=round(float(draw.uniform(0.7, 0.9)), 3),
            min_entry_answer=round(float(draw.uniform(0.4, 0.6)), 3),
            reveal_not_entitled=bool(draw.integers(2)),
            sources_must_agree=bool(draw.integers(2)),
        )
        activate(made, by=self.author)

    def _word(self, at: datetime) -> None:
        from qa.policies.models import RefusalWording

        which: dict[str, Any] = {
            "knowledge_base": self.knowledge_base,
            "language": "en",
            "reason": self._one(_REASONS),
        }
        if self._draw.integers(4):
            words = {"text": f"We can't say that; asked in {at:%B}, day {at:%j}."}
            RefusalWording.objects.update_or_create(**which, defaults=words)
        else:
            RefusalWording.objects.filter(**which).delete()

    def _regroup(self, _at: datetime) -> None:
        group = self._one([a for a in self._audiences if not a.everyone]).groups.get()
        asker = self._one(self.askers)
        change = (
            asker.groups.remove if group in asker.groups.all() else asker.groups.add
        )
        change(group)

    def _contradict(self, _at: datetime) -> None:
        from kb.conflicts.models import Conflict

        first, second = sorted(
            (self._entry(state="verified"), self._entry(state="verified"))
        )
        if first == second:
            return
        Conflict.objects.update_or_create(
            first_id=first,
            second_id=second,
            defaults={
                "first_revision": 1, "second_revision": 1, "texts_sha256": "",
                "kind": Conflict.Kind.CONTRADICTION, "state": Conflict.State.OPEN,
                "score": 0.9, "distance": 0.5, "model": "a simulated year",
            },
        )  # fmt: skip

    def _settle(self, _at: datetime) -> None:
        from kb.conflicts.models import Conflict

        if conflict := Conflict.objects.open().order_by("pk").first():
            conflict.state = Conflict.State.KEPT
            conflict.save(update_fields=["state"])


def main() -> None:
    """Simulate the year in a test database, and drop it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--answers", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    os.environ.setdefault("NESCIO_LOG_LEVEL", "ERROR")
    django.setup()
    from django.conf import settings
    from django.test.utils import setup_databases, teardown_databases

    from accounts.acting import as_owner, unrestricted
    from nescio.embedded import postgres

    is_ours = settings.DATABASE_IS_EMBEDDED and postgres.start(settings.PLACES)
    with as_owner("benchmarks"):
        databases = setup_databases(verbosity=0, interactive=False)
    try:
        with unrestricted("a simulated year"):
            _simulate(options.answers, options.seed)
    finally:
        with as_owner("benchmarks"):
            teardown_databases(databases, verbosity=0)
        if is_ours:
            postgres.stop(settings.PLACES)


def _simulate(answers: int, seed: int) -> None:
    from django.utils import timezone

    from qa.answers.replaying import find_answer, replay

    begun = time.perf_counter()
    start = timezone.now().replace(minute=0, second=0, microsecond=0)
    year = Year(start=start - timedelta(days=DAYS + 2), seed=seed)
    stored = [answer.pk for answer in year.run(answers)]
    print(f"{len(stored)} answers stored in {time.perf_counter() - begun:.0f} s")
    print(", ".join(f"{what} {count}" for what, count in year.made.most_common()))
    begun = time.perf_counter()
    equal, otherwise, how = 0, 0, Counter[str]()
    for pk in stored:
        found = replay(find_answer(pk))
        equal += found.is_equal
        otherwise += bool(found.stored.differing(found.now))
        how[f"{found.stored.outcome} {found.stored.gate}".strip()] += 1
        if not found.is_equal:
            print(pk, found.stored.differing(found.then), flush=True)
    print(f"{equal} of {len(stored)} replays equal the stored answer")
    print(f"{otherwise} would be decided differently today")
    print(
        f"{(time.perf_counter() - begun) / max(1, len(stored)):.3f} s for each replay"
    )
    print(", ".join(f"{name}: {count}" for name, count in how.most_common()))


if __name__ == "__main__":
    main()
