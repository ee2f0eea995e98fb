"""Votes as JSON, as far as their reader may see what they are on."""

from typing import Literal

from rest_framework import serializers

from qa.models import Answer, Vote
from qa.pipeline.gates import Gate, Reason


class VotedAnswerSerializer(serializers.Serializer[Answer]):
    """What was voted on."""

    id = serializers.UUIDField()
    question = serializers.CharField()
    outcome = serializers.ChoiceField(Answer.Outcome.choices)
    gate = serializers.ChoiceField(
        [gate.value for gate in Gate], allow_blank=True, help_text="Empty if answered."
    )
    reason = serializers.ChoiceField(
        [reason.value for reason in Reason],
        source="shown_reason",
        allow_blank=True,
        help_text="Why it was refused, as far as the asker may know.",
    )
    created_at = serializers.DateTimeField()


class VoteSummarySerializer(serializers.Serializer[Vote]):
    """A vote with what it is on."""

    id = serializers.IntegerField()
    rating = serializers.SerializerMethodField()
    reasons = serializers.ListField(child=serializers.ChoiceField(Vote.Reason.choices))
    comment = serializers.SerializerMethodField()
    expected_answer = serializers.SerializerMethodField()
    withheld = serializers.BooleanField(
        source="is_withheld",
        help_text="The answer cites an entry that you may not see; neither it nor what "
        "was said of it is shown.",
    )
    voter = serializers.CharField(source="user.username")
    answer = VotedAnswerSerializer()
    text = serializers.SerializerMethodField(
        help_text="What was shown: the answer, or the refusal's wording."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    handled_at = serializers.DateTimeField(allow_null=True)
    handled_by = serializers.CharField(
        source="handled_by.username", default=None, allow_null=True
    )

    def get_rating(self, vote: Vote) -> Literal["up", "down"]:
        """Return the thumb."""
        return "up" if vote.is_up else "down"

    def get_comment(self, vote: Vote) -> str:
        """Return what the voter said."""
        return "" if vote.is_withheld else vote.comment

    def get_expected_answer(self, vote: Vote) -> str:
        """Return what the voter would have said."""
        return "" if vote.is_withheld else vote.expected_answer

    def get_text(self, vote: Vote) -> str:
        """Return what the asker read."""
        return "" if vote.is_withheld else vote.answer.text
