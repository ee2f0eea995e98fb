from typing import Self

from django.db import models
from django.db.models import Q

from accounts.models import optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import where_not_elsewhere
from jobs.models import Job
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry

_SHARE = Q(stated__gte=0, stated__lte=1, agreement__gte=0, agreement__lte=1)


class ProposalQuerySet(models.QuerySet["Proposal"]):
    def visible_to(self, user: AnyUser) -> Self:
        entries = Entry.objects.always_visible_to(user)
        return self.filter(where_not_elsewhere(user), entry__in=entries)

    def undecided(self) -> Self:
        return self.filter(state=Proposal.State.PROPOSED)

    def decided(self) -> Self:
        return self.exclude(state=Proposal.State.PROPOSED)


class Proposal(models.Model):
    """An entry that a language model proposed, its confidence, and the decision on it.

    The entry has the same content in the state "proposed" until a curator decides.
    Written only through `kb.enrichment.proposals`.
    """

    class State(models.TextChoices):
        PROPOSED = "proposed", "proposed"
        APPROVED = "approved", "approved"
        EDITED = "edited", "edited and approved"
        REJECTED = "rejected", "rejected"

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="proposals"
    )
    entry = models.OneToOneField(
        Entry, on_delete=models.CASCADE, related_name="proposal"
    )
    seed_question = models.CharField(max_length=1000)
    question = models.CharField(max_length=1000)
    question_sha256 = models.CharField(
        max_length=64,
        help_text="Digest of the question's words, so that none is proposed twice.",
    )
    answer = models.CharField(max_length=600)
    sentence = models.CharField(max_length=2000)
    stated = models.FloatField(help_text="Confidence that the model states, in [0, 1].")
    agreement = models.FloatField(
        help_text="Share of further sampled answers that agree with it, in [0, 1]."
    )
    likelihood = models.FloatField(
        null=True,
        blank=True,
        help_text="Geometric mean probability of the answer's tokens; empty if the "
        "model does not return it.",
    )
    confidence = models.FloatField(help_text="The entry's confidence, in (0, 1).")
    model_name = models.CharField(max_length=200)
    model_fingerprint = models.CharField(max_length=64)
    prompt_version = models.CharField(max_length=20)
    random_seed = models.BigIntegerField()
    nearest = models.JSONField(
        default=list,
        blank=True,
        help_text="Entries that were nearest: pairs of id and distance, nearest first.",
    )
    job = optional_row(Job, "+", blank=True)
    state = models.CharField(
        max_length=8, choices=State.choices, default=State.PROPOSED
    )
    decided_by = optional_user("decided_proposals", blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProposalQuerySet.as_manager()

    seen_by: AnyUser  # set by the admin's page

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(
                fields=["knowledge_base", "state", "-created_at"], name="proposal_queue"
            ),
            # The default order of the list, so that the first page needs no sorting.
            models.Index(
                models.F("decided_at").desc(nulls_first=True),
                models.F("confidence").desc(),
                models.F("id").desc(),
                name="proposal_by_decision",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base", "question_sha256"],
                name="proposal_question_once",
            ),
            models.CheckConstraint(condition=_SHARE, name="proposal_shares_in_range"),
            models.CheckConstraint(
                condition=Q(confidence__gt=0) & Q(confidence__lt=1),
                name="proposal_confidence_in_range",
            ),
            models.CheckConstraint(
                condition=Q(state="proposed", decided_at__isnull=True)
                | ~Q(state="proposed") & Q(decided_at__isnull=False),
                name="proposal_decided_at_a_time",
            ),
        ]

    def __str__(self) -> str:
        return self.question[:80]
