"""Gaps, escalations and notices as JSON: requests and responses."""

from django.utils import timezone
from rest_framework import serializers

from accounts import rest
from kb.interface.api import AudienceField, UserField
from kb.types import Evidence
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.escalations import NOTE_LIMIT, REPLY_LIMIT
from qa.gaps.models import Gap, impact
from qa.gaps.notices import shown_answer
from qa.gaps.services import REASON_LIMIT, TEXT_LIMIT, Tried


def _take_over() -> rest.StrictBooleanField:
    return rest.StrictBooleanField(
        default=False,
        help_text="Take it even if somebody else has it; otherwise refused with 409.",
    )


class TakeSerializer(rest.StrictSerializer):
    """Whether to take it from the person it is assigned to."""

    take_over = _take_over()


class ProposeSerializer(rest.StrictSerializer):
    """The audience for which entries are proposed."""

    audience = AudienceField(help_text="Slug of an audience that you belong to.")


class KeptSerializer(ProposeSerializer):
    """How a reply becomes an entry."""

    verify = rest.StrictBooleanField(default=False, help_text="For curators only.")


class DraftSerializer(KeptSerializer):
    """An answer that fills a gap."""

    text = rest.StrictCharField(max_length=TEXT_LIMIT)
    question = rest.StrictCharField(
        max_length=TEXT_LIMIT, default="", allow_blank=True,
        help_text="As the entry puts it; empty for the gap's own.",
    )  # fmt: skip


class LinkSerializer(rest.StrictSerializer):
    """An entry that fills a gap."""

    entry = rest.StrictIntegerField(min_value=1, max_value=2**63 - 1)


class DismissSerializer(rest.StrictSerializer):
    """Why a gap is dismissed."""

    reason = rest.StrictCharField(max_length=REASON_LIMIT)


class OwnerSerializer(rest.StrictSerializer):
    """The expert who works on it."""

    owner = UserField(allow_null=True, help_text="null: nobody.")
    take_over = _take_over()


class GapSerializer(rest.ShownSerializer[Gap]):
    """Questions of one meaning that were refused or voted down."""

    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    recent = serializers.IntegerField(help_text="Questions of the last 14 days.")
    before = serializers.IntegerField(help_text="Of the 14 days before these.")
    impact = serializers.SerializerMethodField(
        help_text="About how many people ask it now."
    )
    owner = rest.username_field("owner")
    proposing_job = serializers.UUIDField(source="proposing_job_id", allow_null=True)

    class Meta:
        model = Gap
        fields: list[str] = [
            "id", "knowledge_base", "question", "state", "questions", "askers", "recent",
            "before", "impact", "first_seen", "last_seen", "owner", "entry",
            "proposing_job", "reason", "asked_again_at",
        ]  # fmt: skip

    def get_impact(self, gap: Gap) -> float:
        return round(impact(gap.impact_score, timezone.now()), 3)


class TriedSerializer(serializers.Serializer[Tried]):
    """A question of a gap, before and after it was asked again."""

    why = serializers.CharField()
    answer = serializers.UUIDField(source="before.pk")
    question = serializers.CharField(source="before.question")
    asker = rest.username_field("before.asker")
    asked_at = serializers.DateTimeField(source="before.created_at")
    before = serializers.CharField(source="before.shown_text")
    new_answer = serializers.UUIDField(source="after.pk", default=None, allow_null=True)
    after = rest.optional_text("after.shown_text")
    after_unsourced = serializers.BooleanField(
        source="after.is_unsourced",
        default=None,
        allow_null=True,
        help_text="No source supports the new answer.",
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

    class Meta(GapSerializer.Meta):
        fields = [*GapSerializer.Meta.fields, "nearest", "tried"]


class NoticeSerializer(rest.ShownSerializer[Notice]):
    """A notice about one of the user's own questions or entries."""

    question = rest.optional_text(
        "answer.question", help_text="null for a flagged entry."
    )
    answer = serializers.SerializerMethodField(
        help_text="Where to read it; null for a flagged entry."
    )
    escalation = serializers.IntegerField(
        source="escalation_id",
        allow_null=True,
        help_text="For a reply: where to read it; else null.",
    )

    class Meta:
        model = Notice
        fields: list[str] = [
            "id", "kind", "question", "answer", "escalation", "entry", "created_at",
            "read_at",
        ]  # fmt: skip

    def get_answer(self, notice: Notice) -> str | None:
        answer = shown_answer(notice)
        return str(answer.pk) if answer else None


class NoteSerializer(rest.StrictSerializer):
    """A note for the experts."""

    note = rest.StrictCharField(max_length=NOTE_LIMIT, default="", allow_blank=True)


class ReplySerializer(rest.StrictSerializer):
    """An expert's reply: text, an existing entry, or both."""

    text = rest.StrictCharField(
        max_length=REPLY_LIMIT, default="", allow_blank=True,
        help_text="The asker reads it word for word; empty with `entry`: the entry's text.",
    )  # fmt: skip
    entry = rest.StrictIntegerField(
        min_value=1, max_value=2**63 - 1, default=None, allow_null=True,
        help_text="A verified entry that answers it and that the asker may see; not with `keep`.",
    )  # fmt: skip
    keep = KeptSerializer(
        default=None, allow_null=True, help_text="null: it is not kept as an entry."
    )


class ReasonSerializer(rest.StrictSerializer):
    """Why there is no answer."""

    reason = rest.StrictCharField(max_length=REPLY_LIMIT)


class EscalationSerializer(rest.ShownSerializer[Escalation]):
    """A refused or wrongly answered question that was sent to experts."""

    question = serializers.CharField(source="answer.question")
    raised_by = rest.username_field("raised_by")
    assignee = rest.username_field("assignee")
    reply = serializers.CharField(
        read_only=True,
        help_text="What the asker reads: the answer, or the `reason` if it is closed.",
    )
    reason = serializers.SerializerMethodField(
        help_text="Why it was closed without an answer; else null."
    )
    replied_by = rest.username_field("replied_by")

    class Meta:
        model = Escalation
        fields: list[str] = [
            "id", "answer", "question", "state", "note", "raised_by", "assignee",
            "reply", "reason", "replied_by", "replied_at", "entry", "created_at",
        ]  # fmt: skip

    def get_reason(self, escalation: Escalation) -> str | None:
        is_closed = escalation.state == Escalation.State.CLOSED
        return escalation.reply if is_closed else None
