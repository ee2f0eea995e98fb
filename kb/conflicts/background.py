"""The nightly search for conflicts, with a language model as judge where one is wanted.

The judge is called between transactions, so that no lock waits for a model. Entries with a
pair that it was not asked about (`MAX_PAIRS`) are judged again by the next run.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from accounts.exceptions import NescioError
from jobs.run import JobRun
from kb.conflicts.finding import (
    find_entry_conflicts,
    pending_entries,
    to_statement,
    unjudged_pairs,
)
from kb.conflicts.models import Conflict
from kb.conflicts.values import Judge, Opinion, Opinions

logger = logging.getLogger(__name__)

KIND = "kb.find_conflicts"
MAX_PAIRS = 500  # a run; the bundled model takes minutes for them


@dataclass(slots=True)
class JudgeSession:
    """What one run puts to a judge."""

    judge: Judge | None
    asked: int = 0  # pairs so far, those of earlier attempts included
    unreadable: int = 0  # of these, how many it said nothing readable of
    failure: str = ""  # why the run went on without the judge, "" if it did not
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
        """Ask about the entries' unsure pairs, each once a run."""
        if self.judge is None:
            return Opinions()
        pairs = {
            pair.digest: (to_statement(pair.first), to_statement(pair.second))
            for entry_id in entry_ids
            for pair in unjudged_pairs(entry_id, self.fingerprint)
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
        return Opinions(self.fingerprint, self._said)

    def result(self) -> dict[str, object]:
        if not (self.judge or self.failure or self.asked):
            return {}
        result: dict[str, object] = {"asked": self.asked, "unreadable": self.unreadable}
        return result | ({"without_judge": self.failure} if self.failure else {})

    def _go_on_without(self, error: NescioError) -> None:
        logger.warning("Conflicts are looked for without the language model: %s", error)
        self.judge, self.failure = None, str(error)


def no_judge() -> None:
    """Return no judge: the signals alone."""


def find_conflicts(
    run: JobRun, *, load_judge: Callable[[], Judge | None] = no_judge
) -> dict[str, object]:
    """Judge every entry that changed since it was last judged; the handler of the job.

    Any number of attempts come to the same end: an entry is marked as judged in the
    step that writes its conflicts.
    """
    judging = JudgeSession.of(load_judge, asked=int(run.cursor.get("asked", 0)))
    done, after = run.done, int(run.cursor.get("after", 0))
    for entry_ids, opinions in judged_batches(judging, after):
        with run.step() as step:
            for entry_id in entry_ids:
                find_entry_conflicts(entry_id, opinions=opinions)
            done += len(entry_ids)
            cursor = {"after": entry_ids[-1], "asked": judging.asked}
            step.advance(done=done, cursor=cursor)
    return {
        "entries": done,
        "open": Conflict.objects.open().count(),
        **judging.result(),
    }


def judged_batches(
    judging: JudgeSession, after: int = 0
) -> Iterator[tuple[Sequence[int], Opinions]]:
    """Yield pending entries above `after` in batches, with what the judge said of them."""
    while entry_ids := pending_entries(after, judge_fingerprint=judging.fingerprint):
        yield entry_ids, judging.hear(entry_ids)
        after = entry_ids[-1]
