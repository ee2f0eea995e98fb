"""How votes change the confidence of entries that a language model proposed.

A Beta posterior whose prior is the entry's confidence without votes. Against attacks:

- a rater counts once for an entry, however often and on however many answers they vote;
- on each side the raters with the largest weights are left out (a trimmed mean): a
  fifth of the desk's voters, at most `trimmed`, so that this many alone change nothing;
- the others change it by at most `span`, within `floor` and `ceiling`.

Votes fade: half of a vote's weight is left after `half_life`.

References:
    Jøsang and Ismail, "The Beta reputation system", Bled eCommerce Conference 2002:
    the posterior and its forgetting factor.
    Yin et al., "Byzantine-robust distributed learning: towards optimal statistical
    rates", ICML 2018: what trimming either end promises against a coalition.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from jobs.run import JobRun
from kb.documents.models import of_base_in_use
from kb.entries.models import Entry, EntryQuerySet
from kb.entries.services import edit_entry
from kb.exceptions import EntryNotFoundError, RevisionConflictError
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.exceptions import NothingToUndoError
from qa.votes.models import ConfidenceMove, Vote


@dataclass(frozen=True, slots=True)
class Rating:
    rater: int
    is_up: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Rule:
    """How votes are weighed.

    Attributes:
        strength: The weight of the prior, in votes; above 0.
        trimmed: The most raters left out on each side: the largest group that has no
            effect at a large desk.
        trimmed_share: The same as a share of the desk's voters, in (0, 1]; one at
            least.
        half_life: A vote of this age counts half.
        span: Maximum change of a confidence, in (0, 1).
        floor: Minimum after votes, in (0, 1); a lower prior stays.
        ceiling: Maximum after votes, in (0, 1); a higher prior stays.
    """

    strength: float = 10.0
    trimmed: int = 5
    trimmed_share: float = 0.2
    half_life: timedelta = timedelta(days=90)
    span: float = 0.2
    floor: float = 0.05
    ceiling: float = 0.95

    def trimmed_of(self, voters: int) -> int:
        """Return how many raters are left out on each side, by the number of voters."""
        return min(self.trimmed, max(1, ceil(self.trimmed_share * voters)))


RULE: Final = Rule()


@dataclass(frozen=True, slots=True)
class Weighed:
    """The votes on an entry after trimming and fading; `confidence` is in (0, 1)."""

    confidence: float
    up: float
    down: float
    raters: int


def weigh(
    prior: float,
    ratings: Iterable[Rating],
    *,
    at: datetime,
    voters: int,
    rule: Rule = RULE,
) -> Weighed:
    """Return the confidence that votes give an entry.

    Args:
        prior: Its confidence without votes, in (0, 1).
        at: Now; later votes count fully.
        voters: How many users vote at the desk, on any answer.

    Raises:
        ValueError: `prior` is not in (0, 1).
    """
    if not 0 < prior < 1:
        raise ValueError(f"The prior {prior} is not in (0, 1).")
    weights = _weight_by_rater(ratings, at, rule)
    trimmed = rule.trimmed_of(max(voters, len(weights)))
    up = _trimmed([weight for weight in weights if weight > 0], trimmed)
    down = _trimmed([-weight for weight in weights if weight < 0], trimmed)
    # The posterior's mean as a step from the prior: without votes the step is 0.
    step = (up * (1 - prior) - down * prior) / (rule.strength + up + down)
    return Weighed(_bounded(prior + step, prior, rule), up, down, len(weights))


def _weight_by_rater(
    ratings: Iterable[Rating], at: datetime, rule: Rule
) -> list[float]:
    """Return each rater's weight in [-1, 1]: the sum of their fading votes, capped."""
    sums: dict[int, float] = {}
    # Sorted, because the sum of floats depends on their order.
    for rating in sorted(ratings, key=lambda r: (r.rater, r.at, r.is_up)):
        age = max(at - rating.at, timedelta())
        fading = 0.5 ** (age / rule.half_life)
        said = fading if rating.is_up else -fading
        sums[rating.rater] = sums.get(rating.rater, 0.0) + said
    return [min(1.0, max(-1.0, total)) for total in sums.values()]


def _trimmed(weights: list[float], count: int) -> float:
    """Return the sum without the `count` largest."""
    return sum(sorted(weights, reverse=True)[count:])


def _bounded(mean: float, prior: float, rule: Rule) -> float:
    low = min(prior, max(rule.floor, prior - rule.span))
    high = max(prior, min(rule.ceiling, prior + rule.span))
    return min(high, max(low, mean))


KIND = "qa.weigh_votes"
# Smaller steps are not worth a revision.
_MIN_STEP = 0.01
_AT_ONCE = 50
_MOVABLE = (Entry.State.PROPOSED, Entry.State.IN_REVIEW, Entry.State.NEEDS_REVIEW)
# Reasons of votes down that count against the evidence, as votes without a reason do.
AGAINST: Final = frozenset({Vote.Reason.WRONG.value, Vote.Reason.OUTDATED.value})
ABOUT_EVIDENCE: Final = (
    Q(is_up=True) | Q(reasons=[]) | Q(reasons__overlap=sorted(AGAINST))
)


def weigh_votes(run: JobRun) -> dict[str, object]:
    """Weigh the votes on every unverified enriched entry; the handler of `KIND`."""
    cited = AnswerEvidence.objects.filter(
        role=AnswerEvidence.Role.CITED, answer__votes__isnull=False
    )
    # Entries changed before are weighed again, as votes fade and are taken back.
    touched = Q(pk__in=cited.values("entry")) | Q(
        pk__in=ConfidenceMove.objects.order_by().values("entry")
    )
    found = _movable().filter(touched).order_by("pk")
    ids = list(found.values_list("pk", flat=True))
    done = int(run.cursor.get("done", 0))
    moved = int(run.cursor.get("moved", 0))
    waiting = [pk for pk in ids if pk > int(run.cursor.get("last", 0))]
    for first in range(0, len(waiting), _AT_ONCE):
        some = waiting[first : first + _AT_ONCE]
        with run.step() as step:
            moved += sum(weigh_entry(pk) is not None for pk in some)
            done += len(some)
            cursor = {"last": some[-1], "done": done, "moved": moved}
            step.advance(done=done, total=len(ids), cursor=cursor)
    return {"entries": done, "moved": moved}


def weigh_entry(entry_id: int) -> ConfidenceMove | None:
    """Set one entry's confidence by its votes, with a revision and a row in the ledger.

    None if nothing changes; also if the entry is verified, written by a person,
    retired, or was changed by somebody at the same moment.
    """
    entry = _movable().with_revision_number().filter(pk=entry_id).first()
    if entry is None:
        return None
    last = ConfidenceMove.objects.filter(entry=entry).first()
    # A confidence that a person has set since then is the new prior.
    is_ours = last is not None and last.after == entry.confidence
    prior = last.prior if last is not None and is_ours else entry.confidence
    now = timezone.now()
    found = weigh(prior, _ratings(entry), at=now, voters=_voters(entry, now))
    after = found.confidence
    step = abs(after - entry.confidence)
    if step == 0 or (step < _MIN_STEP and after != prior):
        return None
    try:
        with transaction.atomic():
            edit_entry(
                entry_id=entry.pk,
                author=None,
                may_verify=False,
                expected_revision=entry.revision_number,
                reason=f"Votes of {found.raters} users.",
                confidence=after,
            )
            return ConfidenceMove.objects.create(
                entry=entry,
                prior=prior,
                before=entry.confidence,
                after=after,
                up=found.up,
                down=found.down,
                raters=found.raters,
            )
    except (EntryNotFoundError, RevisionConflictError):
        return None  # the next run looks again


@transaction.atomic
def undo_moves(entry_id: int, *, by: User, reason: str = "") -> ConfidenceMove:
    """Restore an entry's confidence without votes; only later votes count from now on.

    Raises:
        NothingToUndoError: Votes have not changed it, or somebody has set it since.
    """
    entry = (
        _movable()
        .with_revision_number()
        .select_for_update(of=("self",))
        .filter(pk=entry_id)
        .first()
    )
    last = ConfidenceMove.objects.filter(entry=entry_id).first()
    if entry is None or last is None or last.is_undo or last.after != entry.confidence:
        raise NothingToUndoError(
            f"Votes have not moved the confidence of entry {entry_id}, or somebody has "
            "set it since; change the entry instead."
        )
    edit_entry(
        entry_id=entry.pk,
        author=by,
        may_verify=False,
        expected_revision=entry.revision_number,
        reason=reason or "Undid the changes of its confidence by votes.",
        confidence=last.prior,
    )
    return ConfidenceMove.objects.create(
        entry=entry,
        prior=last.prior,
        before=last.after,
        after=last.prior,
        is_undo=True,
        by=by,
        reason=reason,
    )


def _movable() -> EntryQuerySet:
    return Entry.objects.filter(
        of_base_in_use(), origin=Entry.Origin.ENRICHED, state__in=_MOVABLE
    ).defer("search_vector")


def _voters(entry: Entry, at: datetime) -> int:
    """Return how many users have voted on answers of the entry's knowledge base lately.

    Counts no further than needed to know that the full `trimmed` raters are left out.
    """
    votes = Vote.objects.filter(
        answer__knowledge_base=entry.knowledge_base_id,
        updated_at__gte=at - 2 * RULE.half_life,
    )
    enough = ceil(RULE.trimmed / RULE.trimmed_share)
    users = votes.order_by().values("user_id").distinct()
    return users[:enough].count()


def _ratings(entry: Entry) -> list[Rating]:
    cited = AnswerEvidence.objects.filter(
        entry=entry,
        role=AnswerEvidence.Role.CITED,
        revision__text=entry.text,
        revision__question=entry.question,
    ).exclude(answer__channel=Answer.Channel.EVALUATION)
    votes = Vote.objects.filter(ABOUT_EVIDENCE, answer__in=cited.values("answer"))
    undone = ConfidenceMove.objects.filter(entry=entry, is_undo=True).first()
    if undone is not None:
        votes = votes.filter(updated_at__gt=undone.at)
    rows = votes.order_by().values_list("user_id", "is_up", "updated_at")
    return [Rating(*row) for row in rows]
