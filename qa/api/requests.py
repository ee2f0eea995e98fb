from django.conf import settings
from rest_framework import serializers

from accounts.api.strict_fields import StrictCharField, StrictSerializer
from kb.models import KnowledgeBase


class QuestionSerializer(StrictSerializer):
    """A question, and whom to ask it."""

    question = StrictCharField(
        max_length=settings.QUESTION_MAX_CHARACTERS,
        help_text="With at least one letter or digit.",
    )
    knowledge_base = StrictCharField(
        max_length=50,
        default="",
        allow_blank=True,
        help_text="Its slug; without it, the first one.",
    )
    language = serializers.ChoiceField(
        KnowledgeBase.Language.choices,
        default=None,
        allow_null=True,
        help_text="Of the answer; without it, the knowledge base's.",
    )


class VoteSerializer(StrictSerializer):
    """A thumb with a comment."""

    rating = serializers.ChoiceField(
        ["up", "down"], allow_null=True, help_text="null takes the vote back."
    )
    comment = StrictCharField(max_length=2000, default="", allow_blank=True)
