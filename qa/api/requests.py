from django.conf import settings
from rest_framework import serializers

from accounts.api.strict_fields import (
    StrictCharField,
    StrictSerializer,
    StrictSlugField,
)
from kb.models import KnowledgeBase, Tag
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


class TaggedQuestionSerializer(QuestionSerializer):
    """A question that is kept, and what it is about."""

    tags = serializers.ListField(
        child=StrictSlugField(slug_field="slug", queryset=Tag.objects.all()),
        default=list,
        max_length=len(Tag.Facet),
        help_text="Slugs of what it is about: a product line, a line of business. Without "
        "them, that follows from the evidence.",
    )

    def validate_tags(self, tags: list[Tag]) -> list[Tag]:
        """Take one of each facet."""
        facets = [tag.facet for tag in tags]
        if len(set(facets)) < len(facets):
            raise serializers.ValidationError(
                f"Both are a {tags[0].get_facet_display()}; name one of each kind."
            )
        return tags


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
