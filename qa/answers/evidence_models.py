"""The evidence of an answer, and who may read it."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Exists, OuterRef, Prefetch, Q, Subquery
from django.db.models.lookups import IsNull

from accounts.people import AnyUser
from kb.audiences.models import where_belongs
from kb.entries.models import Entry, Revision, RevisionOutline
from kb.types import Evidence


class AnswerEvidenceQuerySet(models.QuerySet["AnswerEvidence"]):
    def seen_by(self, viewer: AnyUser) -> Self:
        """Annotate `is_withheld`: whether the viewer may not read its words."""
        return self.annotate(is_withheld=_is_outside(viewer))


class AnswerEvidence(models.Model):
    """One piece of evidence of an answer, as measured when it was decided.

    `entry` and `revision` are always set, but read as None if row-level security hides
    them; only those who may see its entry, and the asker, can read a revision.
    """

    class Role(models.TextChoices):
        """The role of a piece: cited, read by the model but unused, or a near miss.

        A near miss is within the horizon of a refused question, even if not read.
        """

        CITED = "cited", "cited"
        UNUSED = "unused", "not used"
        NEAR_MISS = "near_miss", "near miss"

    answer = models.ForeignKey(
        "qa.Answer", on_delete=models.CASCADE, related_name="evidence"
    )
    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, null=True, related_name="uses"
    )
    revision = models.ForeignKey(
        Revision, on_delete=models.CASCADE, null=True, related_name="uses"
    )
    rank = models.PositiveSmallIntegerField(help_text="1-based, best first.")
    role = models.CharField(max_length=9, choices=Role.choices)
    quote = models.TextField(blank=True)
    distance = models.FloatField()
    confidence = models.FloatField()

    objects = AnswerEvidenceQuerySet.as_manager()

    is_withheld: bool  # from `seen_by`, without which nothing is shown
    then: Evidence | None = None  # set by `qa.answers.past`, as of its moment

    class Meta:
        ordering = ["answer", "rank"]
        constraints = [
            models.UniqueConstraint(
                fields=["answer", "rank"], name="answer_evidence_rank_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.rank}: entry {self.entry_id}"

    @property
    def ratio(self) -> float:
        """Distance / confidence, which hard refusal compares with its limit."""
        return self.distance / self.confidence

    @property
    def is_cited(self) -> bool:
        return self.role == self.Role.CITED

    @property
    def is_verified(self) -> bool:
        return self.revision is not None and self.revision.state == Entry.State.VERIFIED

    @property
    def is_machine_written(self) -> bool:
        return self.revision is not None and self.revision.state == Entry.State.PROPOSED

    @property
    def verified_at(self) -> datetime | None:
        """When the entry was verified; None if the revision used was not verified."""
        source = self.then or self.entry
        return source.verified_at if source and self.is_verified else None


def withholds(viewer: AnyUser, answer: str) -> IsNull:
    """Return the condition that a row's `answer` is withheld from the viewer.

    A subquery per row, because the planner would evaluate EXISTS for all answers at
    once, however few rows are shown.
    """
    cited = AnswerEvidence.objects.filter(
        _is_outside(viewer), answer=OuterRef(answer), role=AnswerEvidence.Role.CITED
    )
    return IsNull(Subquery(cited.order_by().values("pk")[:1]), False)


def where_withheld_from(user: str, answer: str) -> Q:
    """Return the condition that a row's answer is withheld from the user in `user`."""
    cited = AnswerEvidence.objects.filter(
        answer=OuterRef(answer), role=AnswerEvidence.Role.CITED
    ).annotate(reader=OuterRef(user))
    outside = ~where_belongs("reader", "entry__audience") | ~where_belongs(
        "reader", "revision__audience"
    )
    return Q(Exists(cited.filter(outside, ~Q(answer__asker=OuterRef(user)))))


def _is_outside(viewer: AnyUser) -> Q:
    """Return the condition for evidence in another user's answer that is hidden.

    It is hidden if the viewer may not see the entry as it is now or as it was then. Its
    words are withheld wherever answers are shown; the viewer's own answers stay
    complete. The condition negates the visible entries, as row-level security hides the
    others.
    """
    visible = Entry.objects.visible_to(viewer).filter(pk=OuterRef("entry_id"))
    hidden = RevisionOutline.objects.outside_of(viewer).filter(
        pk=OuterRef("revision_id")
    )
    return ~Q(answer__asker_id=viewer.pk) & (~Q(Exists(visible)) | Q(Exists(hidden)))


def evidence_for(viewer: AnyUser) -> "Prefetch[str]":
    """Return the prefetch of an answer's evidence with its sources, as `pieces`."""
    rows = AnswerEvidence.objects.seen_by(viewer).select_related(
        "revision", "entry__document", "entry__section"
    )
    unread = ("entry__search_vector", "entry__text", "entry__question")
    return Prefetch("evidence", queryset=rows.defer(*unread), to_attr="pieces")
