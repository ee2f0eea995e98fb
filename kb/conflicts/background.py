"""The background search for conflicts: nightly, after imports, and on request.

Unsure pairs go to a judge, a model that reads both texts: the verifier's cross-encoder,
or a language model if one is configured.

The judge is called between transactions, so that no lock waits for a model. Entries
with a pair that it was not asked about (see `MAX_PAIRS`) are judged again by the next
run.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Protocol

from django.contrib.auth.models import AbstractBaseUser

from accounts.exceptions import NescioError
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.conflicts.finding import (
    count_pending,
    find_entry_conflicts,
    pending_entries,
    to_statement,
    unjudged_pairs,
)
from kb.conflicts.models import Conflict
from kb.conflicts.values import Judge, Opinion, Opinions

logger = logging.getLogger(__name__)

KIND = "kb.find_conflicts"
MAX_PAIRS = 1000  # per run; the bundled models take minutes for them


@dataclass(slots=True)
class JudgeSession:
    judge: Judge | None
    asked: int = 0  # pairs so far, including earlier attempts
    unreadable: int = 0  # how many of these got an unreadable reply
    failure: str = ""  # why the run continued without the judge; "" if it did not
    _said: dict[str, Opinion | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls, load_judge: Callable[[], Judge | None], *, asked: int = 0
    ) -> "JudgeSession":
        judging = cls(None, asked)
        try:
            judging.judge = load_judge()
        except NescioError as error:
            judging._go_on_without(error)
        return judging

    @property
    def fingerprint(self) -> str:
        return self.judge.fingerprint if self.judge else ""

    def hear(self, entry_ids: Sequence[int]) -> Opinions:
        """Ask the judge about the entries' unsure pairs, each only once per run."""
        if self.judge is None:
            return Opinions()
        pairs = {
            pair.digest: (to_statement(pair.first), to_statement(pair.second))
            for entry_id in entry_ids
            for pair in unjudged_pairs(entry_id, self._opinions())
        }
        new = [digest for digest in pairs if digest not in self._said]
        new = new[: max(0, MAX_PAIRS - self.asked)]
        try:
            opinions = self.judge.weigh([pairs[digest] for digest in new])
        except NescioError as error:
            self._go_on_without(error)
            return Opinions()
        self._said.update(zip(new, opinions, strict=True))
        self.asked += len(new)
        self.unreadable += sum(opinion is None for opinion in opinions)
        return self._opinions()

    def _opinions(self) -> Opinions:
        if self.judge is None:
            return Opinions()
        return Opinions(self.fingerprint, self._said, self.judge.asked_about)

    def result(self) -> dict[str, object]:
        if not (self.judge or self.failure or self.asked):
            return {}
        result: dict[str, object] = {"asked": self.asked, "unreadable": self.unreadable}
        return result | ({"without_judge": self.failure} if self.failure else {})

    def _go_on_without(self, error: NescioError) -> None:
        logger.warning("Searching for conflicts without a judge: %s", error)
        self.judge, self.failure = None, str(error)


class LoadJudge(Protocol):
    def __call__(self, *, asks_language_model: bool) -> Judge | None: ...


def no_judge(*, asks_language_model: bool = False) -> None:
    """Return no judge, so that only the signals decide."""


def find_conflicts(
    run: JobRun, *, load_judge: LoadJudge = no_judge
) -> dict[str, object]:
    """Judge every entry that changed since it was last judged; the job's handler.

    Any number of attempts give the same result: an entry is marked as judged in the
    step that writes its conflicts. Entries that change after the run has passed them
    are judged at the end, by the signals alone.
    """
    entry_ids = run.parameters.get("entries")
    if entry_ids is not None:
        return _find_of(run, entry_ids)
    asks_model = bool(run.parameters.get("asks_model", True))
    judging = JudgeSession.of(
        partial(load_judge, asks_language_model=asks_model),
        asked=int(run.cursor.get("asked", 0)),
    )
    done, after = run.done, int(run.cursor.get("after", 0))
    total = run.total or done + count_pending(after, judging.fingerprint)
    batches = chain(judged_batches(judging, after), judged_batches(JudgeSession(None)))
    for batch, opinions in batches:
        with run.step() as step:
            for entry_id in batch:
                find_entry_conflicts(entry_id, opinions=opinions)
            done, after = done + len(batch), max(after, batch[-1])
            cursor = {"after": after, "asked": judging.asked}
            step.advance(done=done, total=max(total, done), cursor=cursor)
    return {
        "entries": done,
        "open": Conflict.objects.open().count(),
        **judging.result(),
    }


def _find_of(run: JobRun, entry_ids: Sequence[int]) -> dict[str, object]:
    """Judge the given entries as `find_conflicts` judges all, one entry per step."""
    for done, entry_id in enumerate(entry_ids[run.done :], run.done + 1):
        with run.step() as step:
            find_entry_conflicts(entry_id)
            step.advance(done=done, total=len(entry_ids))
    open_ones = Conflict.objects.open().of_entry(*entry_ids)
    return {"entries": len(entry_ids), "open": open_ones.count()}


def enqueue_comparison(after: str = "", *, by: AbstractBaseUser | None = None) -> Job:
    """Enqueue a comparison of all changed entries, once per event named by `after`.

    Without `after` it is the nightly search, started now. The job reveals how many
    entries there are, so `by` only becomes its owner if `by` may see all of them.
    """
    sees_all = by is not None and Audience.objects.all().are_all_visible_to(by)
    return enqueue(
        KIND,
        {"asks_model": False} if after else {},
        owner=by if sees_all else None,
        idempotency_key=f"{KIND} {after}".strip(),
    )


def enqueue_entries(entry_ids: Collection[int]) -> Job:
    """Enqueue a comparison of some entries with all others, of every audience."""
    return enqueue(KIND, {"entries": sorted(entry_ids)}, total=len(entry_ids))


def judged_batches(
    judging: JudgeSession, after: int = 0
) -> Iterator[tuple[Sequence[int], Opinions]]:
    """Yield batches of pending entries above `after`, with the judge's opinions."""
    while entry_ids := pending_entries(after, judge_fingerprint=judging.fingerprint):
        yield entry_ids, judging.hear(entry_ids)
        after = entry_ids[-1]
