"""Escalations as JSON: what is sent in, and what comes back."""

from rest_framework import serializers

from accounts.api.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
    StrictSlugField,
)
from kb.models import Audience
from qa.models import Escalation
from qa.services.escalations import NOTE_LIMIT, REPLY_LIMIT


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
