"""Gaps and notices as JSON: what is sent in, and what comes back."""

from django.utils import timezone
from rest_framework import serializers

from accounts.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StrictSlugField,
)
from kb.audiences.models import Audience
from kb.interface.api import AudienceField, UserField
from kb.types import Evidence
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.escalations import NOTE_LIMIT, REPLY_LIMIT
from qa.gaps.models import Gap, Tried
from qa.gaps.notices import shown_answer
from qa.gaps.reading import impact
from qa.gaps.services import REASON_LIMIT, TEXT_LIMIT


class DraftSerializer(StrictSerializer):
    """What fills a gap."""

    text = StrictCharField(max_length=TEXT_LIMIT)
    question = StrictCharField(
        max_length=TEXT_LIMIT, default="", allow_blank=True,
        help_text="As the entry puts it; empty for the gap's own.",
    )  # fmt: skip
    audience = AudienceField(help_text="Slug of one that you belong to.")
    verify = StrictBooleanField(default=False, help_text="Curators alone.")


class LinkSerializer(StrictSerializer):
    """An entry that fills a gap."""

    entry = StrictIntegerField(min_value=1, max_value=2**63 - 1)


class ProposeSerializer(StrictSerializer):
    """For whom entries are to be proposed."""

    audience = AudienceField(help_text="Slug of one that you belong to.")


class DismissSerializer(StrictSerializer):
    """Why it is no gap."""

    reason = StrictCharField(max_length=REASON_LIMIT)


class OwnerSerializer(StrictSerializer):
    """Who works on it."""

    owner = UserField(allow_null=True, help_text="null: nobody.")


class GapSerializer(serializers.Serializer[Gap]):
    """Questions of one meaning that were refused or voted down."""

    id = serializers.IntegerField()
    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    question = serializers.CharField(help_text="One that stands for them.")
    state = serializers.ChoiceField(Gap.State.choices)
    questions = serializers.IntegerField(help_text="How often it was asked.")
    askers = serializers.IntegerField(help_text="By how many.")
    recent = serializers.IntegerField(help_text="In the last 14 days.")
    before = serializers.IntegerField(help_text="In the 14 days before these.")
    impact = serializers.SerializerMethodField(
        help_text="About how many people ask it now."
    )
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField()
    owner = serializers.CharField(
        source="owner.username", default=None, allow_null=True
    )
    entry = serializers.IntegerField(
        source="entry_id", allow_null=True, help_text="What fills it."
    )
    proposing_job = serializers.UUIDField(source="proposing_job_id", allow_null=True)
    reason = serializers.CharField(help_text="Why it was dismissed.")
    asked_again_at = serializers.DateTimeField(allow_null=True)

    def get_impact(self, gap: Gap) -> float:
        return round(impact(gap.impact_score, timezone.now()), 3)


class TriedSerializer(serializers.Serializer[Tried]):
    """A question of a gap, before and after it was asked again."""

    why = serializers.CharField()
    answer = serializers.UUIDField(source="before.pk")
    question = serializers.CharField(source="before.question")
    asker = serializers.CharField(
        source="before.asker.username", default=None, allow_null=True
    )
    asked_at = serializers.DateTimeField(source="before.created_at")
    before = serializers.CharField(source="before.shown_text")
    new_answer = serializers.UUIDField(source="after.pk", default=None, allow_null=True)
    after = serializers.CharField(
        source="after.shown_text", default=None, allow_null=True
    )
    after_unsourced = serializers.BooleanField(
        source="after.is_unsourced",
        default=None,
        allow_null=True,
        help_text="No source carries the new answer.",
    )
    is_better = serializers.BooleanField(allow_null=True)


class NearEntrySerializer(serializers.Serializer[Evidence]):
    """An entry near a gap."""

    entry = serializers.IntegerField(source="entry_id")
    question = serializers.CharField()
    text = serializers.CharField()
    is_verified = serializers.BooleanField()
    distance = serializers.FloatField()


class GapDetailSerializer(GapSerializer):
    """A gap with its newest questions and the nearest entries."""

    nearest = NearEntrySerializer(many=True, source="nearest_hits")
    tried = TriedSerializer(many=True)


class NoticeSerializer(serializers.Serializer[Notice]):
    """What became of a question of one's own."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField(Notice.Kind.choices)
    question = serializers.CharField(source="answer.question")
    answer = serializers.SerializerMethodField(help_text="Where to read it.")
    created_at = serializers.DateTimeField()
    read_at = serializers.DateTimeField(allow_null=True)

    def get_answer(self, notice: Notice) -> str:
        """Return the id of the new answer, or of the question replied to."""
        return str(shown_answer(notice).pk)


# Escalations as JSON: what is sent in, and what comes back.


class NoteSerializer(StrictSerializer):
    """What an agent tells the experts."""

    note = StrictCharField(max_length=NOTE_LIMIT, default="", allow_blank=True)


class KeptSerializer(StrictSerializer):
    """How a reply becomes an entry."""

    audience = StrictSlugField(
        slug_field="slug",
        queryset=Audience.objects.all(),
        help_text="Slug of one that you belong to.",
    )
    verify = StrictBooleanField(default=False, help_text="Curators alone.")

    def validate_audience(self, audience: Audience) -> Audience:
        """Take only audiences of the user's own; others look like none."""
        user = self.context["request"].user
        if not Audience.objects.visible_to(user).filter(pk=audience.pk).exists():
            self.fields["audience"].fail(
                "does_not_exist", slug_name="slug", value=audience.slug
            )
        return audience


class ReplySerializer(StrictSerializer):
    """An expert's reply."""

    text = StrictCharField(max_length=REPLY_LIMIT)
    keep = KeptSerializer(
        default=None, allow_null=True, help_text="null: it becomes no entry."
    )


class ReasonSerializer(StrictSerializer):
    """Why there is no answer."""

    reason = StrictCharField(max_length=REPLY_LIMIT)


class EscalationSerializer(serializers.Serializer[Escalation]):
    """A refused question at the experts'."""

    id = serializers.IntegerField()
    answer = serializers.UUIDField(source="answer_id")
    question = serializers.CharField(source="answer.question")
    state = serializers.ChoiceField(Escalation.State.choices)
    note = serializers.CharField()
    raised_by = serializers.CharField(
        source="raised_by.username", default=None, allow_null=True
    )
    assignee = serializers.CharField(
        source="assignee.username", default=None, allow_null=True
    )
    reply = serializers.CharField(help_text="The answer, or why there is none.")
    replied_by = serializers.CharField(
        source="replied_by.username", default=None, allow_null=True
    )
    replied_at = serializers.DateTimeField(allow_null=True)
    entry = serializers.IntegerField(
        source="entry_id", allow_null=True, help_text="What the reply became."
    )
    created_at = serializers.DateTimeField()
