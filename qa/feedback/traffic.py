"""What was asked in a period, added up from counts that are alike."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from .latency import quantile

SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Counted:
    """Answers that were decided alike in one step of the period.

    Attributes:
        begin: The first day of the step.
        outcome: "answered", "refused" or "failed".
        gate: What decided; "" where all gates let it pass, or none was reached.
        reason: Why it was refused; "" where it was not.
        answers: How many.
        up: Thumbs up on them.
        down: Thumbs down.
    """

    begin: date
    outcome: str
    gate: str
    reason: str
    answers: int
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class Timed:
    """Answers of one step that took about as long; `bucket` is of `.latency`."""

    begin: date
    outcome: str
    bucket: int
    answers: int


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds that half, 95 % and 99 % of the answers did not exceed."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Decided:
    """How many answers one gate decided so, for one reason."""

    outcome: str
    gate: str
    reason: str
    answers: int


@dataclass(frozen=True, slots=True)
class Step:
    """A day or week of the period.

    Attributes:
        latency: Of what was answered or refused; None where nothing was.
    """

    begin: date
    answered: int
    refused: int
    failed: int
    up: int
    down: int
    latency: Percentiles | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """A period as a whole and step by step, the earliest step first.

    Attributes:
        decided: By outcome, gate and reason, the most frequent first.
        latency: By outcome, and of all together under ""; none where nothing was asked.
    """

    answered: int
    refused: int
    failed: int
    up: int
    down: int
    decided: tuple[Decided, ...]
    latency: Mapping[str, Percentiles]
    steps: tuple[Step, ...]

    @property
    def questions(self) -> int:
        """All that was asked."""
        return self.answered + self.refused + self.failed


def traffic(
    begins: Sequence[date], counted: Iterable[Counted], timed: Iterable[Timed]
) -> Traffic:
    """Add up a period whose steps begin on the days `begins`, in that order."""
    outcomes: Counter[tuple[date, str]] = Counter()
    votes: Counter[tuple[date, str]] = Counter()
    decided: Counter[tuple[str, str, str]] = Counter()
    for each in counted:
        outcomes[each.begin, each.outcome] += each.answers
        votes[each.begin, "up"] += each.up
        votes[each.begin, "down"] += each.down
        decided[each.outcome, each.gate, each.reason] += each.answers
    buckets: dict[date | str, Counter[int]] = {}
    for time in timed:
        for key in (time.begin, time.outcome, ""):
            buckets.setdefault(key, Counter())[time.bucket] += time.answers
    latency = {key: _percentiles(counts) for key, counts in buckets.items()}
    steps = tuple(
        Step(
            begin,
            outcomes[begin, "answered"],
            outcomes[begin, "refused"],
            outcomes[begin, "failed"],
            votes[begin, "up"],
            votes[begin, "down"],
            latency.get(begin),
        )
        for begin in begins
    )
    return Traffic(
        answered=sum(step.answered for step in steps),
        refused=sum(step.refused for step in steps),
        failed=sum(step.failed for step in steps),
        up=sum(step.up for step in steps),
        down=sum(step.down for step in steps),
        decided=tuple(Decided(*key, answers) for key, answers in decided.most_common()),
        latency={
            key: found
            for key, found in latency.items()
            if isinstance(key, str) and found is not None
        },
        steps=steps,
    )


def _percentiles(counts: Mapping[int, int]) -> Percentiles | None:
    p50, p95, p99 = (quantile(counts, share) for share in SHARES)
    if p50 is None or p95 is None or p99 is None:
        return None
    return Percentiles(p50, p95, p99)
