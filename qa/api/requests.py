from django.conf import settings
from rest_framework import serializers

from accounts.api.strict_fields import StrictCharField, StrictSerializer
from kb.models import KnowledgeBase
from qa.models import Vote
from qa.services.votes import COMMENT_LIMIT, EXPECTED_LIMIT


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
    """A thumb, and what is wrong."""

    rating = serializers.ChoiceField(
        ["up", "down"], allow_null=True, help_text="null takes the vote back."
    )
    reasons = serializers.ListField(
        child=serializers.ChoiceField(Vote.Reason.choices),
        default=list,
        max_length=len(Vote.Reason),
        help_text="Of a thumb down. Of an answer: wrong, incomplete, outdated, "
        "off_topic, not_in_evidence, unclear, other; of a refusal: should_be_known, "
        "entry_exists, wrong_reason, other.",
    )
    comment = StrictCharField(max_length=COMMENT_LIMIT, default="", allow_blank=True)
    expected_answer = StrictCharField(
        max_length=EXPECTED_LIMIT,
        default="",
        allow_blank=True,
        help_text="Of a thumb down: what should have been said.",
    )
