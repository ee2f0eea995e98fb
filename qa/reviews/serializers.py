"""Reviews and samples as JSON: requests and responses."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from accounts import rest
from kb.interface.api import AudienceField, KnowledgeBaseField
from kb.text.cleaning import TEXT_LIMIT
from qa.answers.evidence_models import AnswerEvidence
from qa.reviews.judgements import GRADES, IDEAL_LIMIT, NOTE_LIMIT
from qa.reviews.models import Review
from qa.reviews.sample_models import ReviewSample

_SAID = ("should_be_answered", "right_to_show", "reviewed_by", "seconds_spent", "entry")
_GRADE_HELP = "0 no, 1 partly, 2 yes; only for an answer."


class ReviewSerializer(rest.ShownSerializer[Review]):
    """A review: the answer, who is to judge it, and the judgement."""

    question = serializers.CharField(source="answer.question")
    outcome = serializers.CharField(source="answer.outcome")
    gate = serializers.CharField(source="answer.gate")
    text = serializers.CharField(
        source="answer.text", help_text="What the asker read; GET the answer for more."
    )
    knowledge_base = serializers.CharField(source="answer.knowledge_base.slug")
    round = serializers.IntegerField(help_text="2 for a second opinion.")
    tag = rest.optional_text("tag.slug", help_text="The tag whose experts review it.")
    assignee = rest.username_field("assignee")
    locked_by = rest.username_field("locked_by")
    completeness = serializers.IntegerField(allow_null=True, help_text=_GRADE_HELP)
    correctness = serializers.IntegerField(allow_null=True, help_text=_GRADE_HELP)
    truthfulness = serializers.IntegerField(allow_null=True, help_text=_GRADE_HELP)
    right_to_show = serializers.BooleanField(
        source="is_right_to_show",
        allow_null=True,
        help_text="For a judged answer: wholly correct and true to the evidence.",
    )
    evidence_used = serializers.ListField(child=serializers.IntegerField())
    reviewed_by = rest.username_field("reviewed_by")

    class Meta:
        model = Review
        fields: list[str] = [
            "id", "answer", "question", "outcome", "gate", "text", "knowledge_base",
            "round", "tag", "state", "assignee", "locked_by", "locked_until",
            "completeness", "correctness", "truthfulness", "should_be_answered",
            "right_to_show", "evidence_used", "ideal_answer", "note", "entry",
            "reviewed_by", "reviewed_at", "seconds_spent", "created_at",
        ]  # fmt: skip

    def to_representation(self, instance: Review) -> dict[str, Any]:
        shown = super().to_representation(instance)
        if not instance.is_readable_by(self.context["request"].user):
            shown.update(dict.fromkeys([*GRADES, *_SAID]))
            shown.update({"evidence_used": [], "ideal_answer": "", "note": ""})
        return shown


class ReviewedPieceSerializer(serializers.Serializer[Any]):
    """A piece of evidence that may be marked as used."""

    id = serializers.IntegerField()
    rank = serializers.IntegerField()
    role = serializers.CharField()
    entry = serializers.IntegerField(source="entry_id", allow_null=True)
    text = serializers.SerializerMethodField(
        help_text="The entry's text at that time; empty if it is withheld from you."
    )

    def get_text(self, piece: AnswerEvidence) -> str:
        if piece.is_withheld or piece.revision is None:
            return ""
        return piece.revision.text


class OneReviewSerializer(ReviewSerializer):
    """A review with the evidence of its answer."""

    evidence = ReviewedPieceSerializer(source="answer.pieces", many=True)

    class Meta(ReviewSerializer.Meta):
        fields = [*ReviewSerializer.Meta.fields, "evidence"]


class AdditionSerializer(rest.StrictSerializer):
    """The ideal answer as a new entry."""

    audience = AudienceField(help_text="Slug of an audience that you belong to.")
    verify = rest.StrictBooleanField(default=False, help_text="For curators only.")


class CorrectionSerializer(rest.StrictSerializer):
    """A new text for an entry that was found for the question."""

    entry = rest.StrictIntegerField(min_value=1)
    text = rest.StrictCharField(max_length=TEXT_LIMIT)
    revision = rest.StrictIntegerField(
        default=None,
        allow_null=True,
        min_value=1,
        help_text="The revision it is based on; refused with 409 if there is another.",
    )


def _grade() -> rest.StrictIntegerField:
    return rest.StrictIntegerField(
        min_value=0, max_value=2, default=None, allow_null=True, help_text=_GRADE_HELP
    )


class JudgementSerializer(rest.StrictSerializer):
    """An expert's judgement of an answer or a refusal."""

    completeness = _grade()
    correctness = _grade()
    truthfulness = _grade()
    should_be_answered = rest.StrictBooleanField(
        default=None, allow_null=True, help_text="Only for a refusal."
    )
    evidence_used = rest.StrictListField(
        child=rest.StrictIntegerField(min_value=1),
        default=list,
        max_length=100,
        help_text="Ids of the answer's evidence, from the review's `evidence`.",
    )
    ideal_answer = rest.StrictCharField(
        max_length=IDEAL_LIMIT, default="", allow_blank=True
    )
    note = rest.StrictCharField(max_length=NOTE_LIMIT, default="", allow_blank=True)
    add = AdditionSerializer(default=None, allow_null=True)
    mend = CorrectionSerializer(default=None, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["add"] and attrs["mend"]:
            raise serializers.ValidationError(
                {"mend": ["Either add an entry or edit one; leave the other out."]}
            )
        return attrs


class StratumSerializer(serializers.Serializer[Any]):
    """A stratum; fields of dimensions that the sample doesn't use are empty or null."""

    outcome = serializers.CharField()
    gate = serializers.CharField()
    vote = serializers.CharField()
    certainty = serializers.CharField(
        help_text='"close" where a number was near its threshold, or numbers or votes '
        'disagree; else "clear".'
    )
    product_line = rest.optional_text("product_line.slug")
    line_of_business = rest.optional_text("line_of_business.slug")
    period = serializers.DateField(allow_null=True)
    population = serializers.IntegerField()
    drawn = serializers.IntegerField()


class SampleSerializer(rest.ShownSerializer[ReviewSample]):
    """A sample with its strata: enough to draw it again and to weight its reviews."""

    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    dimensions = serializers.ListField(child=serializers.CharField())
    drawn_by = rest.username_field("drawn_by", help_text="null: the schedule.")
    strata = StratumSerializer(many=True)

    class Meta:
        model = ReviewSample
        fields: list[str] = [
            "id", "knowledge_base", "seed", "hours", "minutes_a_review", "second_share",
            "since", "until", "dimensions", "population", "drawn_by", "drawn_at",
            "strata",
        ]  # fmt: skip


class NewSampleSerializer(rest.StrictSerializer):
    """The parameters of a new sample."""

    knowledge_base = KnowledgeBaseField()
    hours = rest.StrictFloatField(min_value=0.05, max_value=200)
    minutes_a_review = rest.StrictFloatField(
        min_value=0.25, max_value=120, default=lambda: settings.REVIEW_MINUTES
    )
    second_share = rest.StrictFloatField(
        min_value=0, max_value=1, default=lambda: settings.REVIEW_SECOND_SHARE
    )
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="Not in the future.")
    seed = rest.StrictIntegerField(min_value=0, max_value=2**31 - 1)


class AgreementSerializer(serializers.Serializer[Any]):
    """The agreement of two experts on one criterion."""

    name = serializers.CharField()
    pairs = serializers.IntegerField(source="kappa.pairs")
    observed = serializers.FloatField(
        source="kappa.observed", help_text="Share of equal judgements, or mean weight."
    )
    kappa = serializers.FloatField(
        source="kappa.value",
        allow_null=True,
        help_text="Cohen's; null if both always gave the same single judgement.",
    )
    low = serializers.FloatField(
        source="kappa.low", allow_null=True, help_text="Of its 95 % interval."
    )
    high = serializers.FloatField(source="kappa.high", allow_null=True)
