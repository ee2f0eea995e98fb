"""Gaps and notices as JSON: what is sent in, and what comes back."""

from django.utils import timezone
from rest_framework import serializers

from accounts.api.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from kb.api.fields import AudienceField, UserField
from kb.types import Hit
from qa.feedback.impact import impact
from qa.models import Gap, Notice
from qa.models.repeat import Tried
from qa.services.gaps import REASON_LIMIT, TEXT_LIMIT
from qa.services.notices import shown_answer


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
        """Return it as of now."""
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


class NearEntrySerializer(serializers.Serializer[Hit]):
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
