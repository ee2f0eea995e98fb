import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import User
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, FilteredRelation, Q, prefetch_related_objects

from accounts.models import optional_user
from accounts.people import AnyUser
from accounts.roles import Role, bases_of_role
from kb.documents.models import KnowledgeBase
from kb.tags.models import Tag, tag_of
from qa.answers.evidence_models import AnswerEvidence, evidence_for, withholds
from qa.answers.word_search import has_words, words_of
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.values import Calibration
from qa.policies.models import Policy

if TYPE_CHECKING:
    from qa.answers.view import AnswerView

ERASED = "[erased]"
"""Placeholder for words that were erased by age or with their person's data."""

WITHHELD = "This answer is based on entries that you may not see."


class AnswerQuerySet(models.QuerySet["Answer"]):
    def asked_by(self, user: AnyUser) -> Self:
        return self.filter(asker_id=user.pk)

    def visible_to(self, user: AnyUser) -> Self:
        """Return the user's own answers, and everybody's where they are a reviewer."""
        bases = bases_of_role(user, Role.SME)
        if bases is None:
            return self.seen_by(user)
        reviewed = Q(knowledge_base__in=bases) if bases else Q()
        return self.filter(reviewed | Q(asker_id=user.pk)).seen_by(user)

    def in_conversation(self, conversation: uuid.UUID) -> Self:
        """Return the conversation's first answer and those to its follow-ups."""
        first = Q(pk=conversation, conversation__isnull=True)
        return self.filter(first | Q(conversation=conversation))

    def decided_live_by(self, policy: Policy) -> Self:
        """Return live answers and refusals decided by this version of a policy."""
        decided = (Answer.Outcome.ANSWERED, Answer.Outcome.REFUSED)
        return self.filter(policy=policy, outcome__in=decided).live()

    def live(self) -> Self:
        """Leave out the answers of evaluations and automatic repeats."""
        return self.filter(channel__in=Answer.LIVE_CHANNELS)

    def erasable(self) -> Self:
        """Return answers that still have their words and are not pending."""
        undecided = Q(outcome=Answer.Outcome.PENDING)
        return self.filter(~undecided, erased_at__isnull=True)

    def seen_by(self, viewer: AnyUser) -> Self:
        """Annotate `is_withheld`: whether it cites an entry hidden from the viewer."""
        return self.annotate(is_withheld=withholds(viewer, "pk"))

    def with_words(
        self, words: str, *, in_text: bool = False, askers: Sequence[int] = ()
    ) -> Self:
        """Return answers whose question has words with these beginnings, in any order.

        Args:
            words: If empty, only questions of `askers` are found.
            in_text: Search the answer's text, too.
            askers: Ids of users whose questions are found in any case.
        """
        said = has_words(self.model.objects.all(), words, in_text=in_text)
        return self.filter(said | Q(asker__in=askers))

    def with_vote_of(self, user: AnyUser) -> Self:
        """Fetch asker and knowledge base; annotate `own_vote` (True for up) or None."""
        own = FilteredRelation("votes", condition=Q(votes__user_id=user.pk))
        fetched = self.select_related("asker", "knowledge_base")
        return fetched.annotate(own=own, own_vote=F("own__is_up"))

    def with_evidence(self, viewer: AnyUser) -> Self:
        """Fetch the policy, and the evidence with its sources."""
        return self.select_related("policy").prefetch_related(evidence_for(viewer))


def readable_reason(viewer: AnyUser) -> str:
    """Return the name of the field with the refusal reason that the viewer may read.

    The true reason reveals if knowledge that is hidden from the asker would have
    answered; only superusers may see all knowledge.
    """
    is_superuser = isinstance(viewer, User) and viewer.is_superuser
    return "reason" if is_superuser else "shown_reason"


def fetch_evidence(answer: "Answer", viewer: AnyUser) -> None:
    """Set `pieces` and `is_withheld` on an answer, as the querysets do (one query).

    Also sets `readable_reason`.
    """
    answer.readable_reason = getattr(answer, readable_reason(viewer))
    prefetch_related_objects([answer], evidence_for(viewer))
    cited = [
        piece for piece in answer.pieces if piece.role == AnswerEvidence.Role.CITED
    ]
    answer.is_withheld = any(piece.is_withheld for piece in cited)


class Answer(models.Model):
    """One question with everything measured and decided about it.

    Append-only once decided: only a row that is pending or failed (stored before a
    stream starts or while the language model's server is down) is ever completed.
    Missing tags are added afterwards, from the entry of its first piece of evidence.
    """

    class Outcome(models.TextChoices):
        PENDING = "pending", "pending"
        ANSWERED = "answered", "answered"
        REFUSED = "refused", "refused"
        FAILED = "failed", "failed"

    class Channel(models.TextChoices):
        API = "api", "REST"
        PAGE = "page", "ask page"
        COMMAND = "command", "command line"
        EVALUATION = "evaluation", "evaluation"
        REPEAT = "repeat", "asked again automatically"

    LIVE_CHANNELS = (Channel.API, Channel.PAGE, Channel.COMMAND)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    knowledge_base = models.ForeignKey(
        KnowledgeBase,
        on_delete=models.PROTECT,
        related_name="answers",
        db_index=False,  # `answer_by_base` serves it
    )
    asker = optional_user("answers")
    service = models.CharField(
        max_length=150,
        blank=True,
        default="",
        db_default="",
        help_text="The service account that asked on the asker's behalf; empty: they "
        "asked themselves.",
    )
    channel = models.CharField(max_length=10, choices=Channel.choices)
    question = models.TextField()
    typed = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="What was typed, if it was asked as a different question: a "
        "follow-up, a long message, or words with synonyms.",
    )
    conversation = models.UUIDField(
        null=True,
        blank=True,
        help_text="Id of the conversation's first answer; empty for a standalone "
        "question.",
    )
    language = models.CharField(max_length=2, default="en")
    refusal_language = models.CharField(
        max_length=2,
        blank=True,
        default="",
        db_default="",
        help_text="Language of the refusal, if it differs from the answer's.",
    )
    outcome = models.CharField(
        max_length=8, choices=Outcome.choices, default=Outcome.PENDING
    )
    gate = models.CharField(
        max_length=12, blank=True, choices=[(g.value, g.value) for g in Gate]
    )
    reason = models.CharField(
        max_length=20, blank=True, choices=[(r.value, r.value) for r in Reason]
    )
    shown_reason = models.CharField(
        max_length=20, blank=True, choices=[(r.value, r.value) for r in Reason]
    )
    text = models.TextField(blank=True, help_text="The text that was shown.")
    reasoning = models.TextField(blank=True)
    policy = models.ForeignKey(
        Policy, on_delete=models.PROTECT, null=True, related_name="answers"
    )
    calibration = models.CharField(
        max_length=15, blank=True, choices=[(c.value, c.value) for c in Calibration]
    )
    signals = models.JSONField(
        default=list, help_text="[{gate, name, value, threshold, passed}]"
    )
    milliseconds = models.JSONField(default=dict, help_text="{stage: milliseconds}")
    generation = models.JSONField(
        default=dict, help_text="What the language model returned."
    )
    confidence = models.JSONField(
        default=dict,
        help_text="{along: confidence after each generated token, missing: why there "
        "is none}; the final values are in the signals.",
    )
    contradictions = models.JSONField(
        default=list,
        blank=True,
        help_text="Contradictions in its evidence: [{conflict_id, entries, quotes}]; "
        "shown only to users who may see both entries.",
    )
    boundary = models.JSONField(
        default=dict,
        blank=True,
        help_text="With the adaptive scope: {fingerprint, examples: ids of the past questions used, segments: the monitored sentences}.",
    )
    scope = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        blank=True,
        help_text="{at, audiences}: the time as of which, and the audiences for which, "
        "it was decided; empty for answers older than this field.",
    )
    embedder = models.CharField(max_length=64, blank=True)
    language_model = models.CharField(max_length=200, blank=True)
    probes = models.TextField(
        blank=True, help_text="Fingerprints of the active probes, if the model ran."
    )
    error = models.TextField(blank=True)
    product_line = tag_of(
        Tag.Facet.PRODUCT_LINE,
        "answers_of_product_line",
        db_index=False,  # `answer_by_product_line` serves it
    )
    line_of_business = tag_of(
        Tag.Facet.LINE_OF_BUSINESS,
        "answers_of_line_of_business",
        db_index=False,  # `answer_by_line_of_business` serves it
    )
    created_at = models.DateTimeField(auto_now_add=True)
    claimed_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When a process claimed the question, so that no other decides it.",
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    erased_at = models.DateTimeField(
        null=True, blank=True, help_text="When its words were erased."
    )

    objects = AnswerQuerySet.as_manager()

    as_of: datetime | None = None  # set by `qa.answers.past`, never stored
    is_withheld: bool  # from `seen_by` or `fetch_evidence`; nothing is shown without
    pieces: "list[AnswerEvidence]"  # from `with_evidence` or `fetch_evidence`
    readable_reason: str  # from `fetch_evidence`
    view: "AnswerView"  # set while it is serialized

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["asker", "-created_at"], name="answer_by_asker"),
            models.Index(fields=["-created_at"], name="answer_by_time"),
            models.Index(
                fields=["knowledge_base", "-created_at"],
                include=["channel", "outcome"],  # so that counting needs no rows
                name="answer_by_base",
            ),
            # So that rare or absent values are found without reading all answers.
            models.Index(fields=["outcome", "-created_at"], name="answer_by_outcome"),
            models.Index(fields=["gate", "-created_at"], name="answer_by_gate"),
            models.Index(
                fields=["conversation", "created_at"],
                name="answer_by_conversation",
                condition=Q(conversation__isnull=False),
            ),
            models.Index(
                fields=["shown_reason", "-created_at"], name="answer_by_shown_reason"
            ),
            GinIndex(words_of("question"), name="answer_question_words"),
            GinIndex(words_of("text"), name="answer_text_words"),
            models.Index(
                fields=["created_at"],
                name="answer_pending",
                condition=Q(outcome="pending"),
            ),
            models.Index(
                fields=["decided_at"],
                name="answer_refused",
                condition=Q(outcome="refused"),
            ),
            models.Index(
                fields=["product_line", "-created_at"],
                name="answer_by_product_line",
                condition=Q(product_line__isnull=False),
            ),
            models.Index(
                fields=["line_of_business", "-created_at"],
                name="answer_by_line_of_business",
                condition=Q(line_of_business__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=(Q(outcome="refused") & ~Q(reason="") & ~Q(gate=""))
                | (~Q(outcome="refused") & Q(reason="")),
                name="answer_refusal_has_reason",
            )
        ]

    def __str__(self) -> str:
        return self.question[:80]

    @property
    def conversation_id(self) -> uuid.UUID:
        """The id that a follow-up names; every question may begin a conversation."""
        return self.conversation or self.pk

    @property
    def typed_text(self) -> str:
        """The text as typed, from which `question` may have been rewritten."""
        return self.typed or self.question

    @property
    def is_unsourced(self) -> bool:
        """Whether it rests on the language model's own knowledge."""
        return self.outcome == self.Outcome.ANSWERED and self.gate == Gate.BOUNDARY

    @property
    def shown_language(self) -> str:
        """The language of its text; a refusal's may differ from an answer's."""
        is_refused = self.outcome == self.Outcome.REFUSED
        return (self.refusal_language if is_refused else "") or self.language

    @property
    def shown_text(self) -> str:
        """The text, or a notice if it is withheld from the viewer of `seen_by`."""
        return WITHHELD if self.is_withheld else self.text

    @property
    def shown_reasoning(self) -> str:
        """The reasoning; empty if withheld from the viewer of `with_evidence`."""
        return "" if self.is_draft_withheld else self.reasoning

    @property
    def is_draft_withheld(self) -> bool:
        """Whether the model's draft may repeat an entry that the viewer may not see."""
        return any(piece.is_withheld for piece in self.pieces)
