from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api.strict_fields import (
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from kb.enrichment.agents import SAMPLES
from kb.models import Proposal
from kb.services.enrichment import (
    MOST_PER_SEED,
    MOST_PROPOSALS,
    MOST_SAMPLES,
    MOST_SEEDS,
)
from kb.services.enrichment_job import SEED_LIMIT
from kb.services.entry_values import REASON_LIMIT, TEXT_LIMIT

from .fields import AudienceField, KnowledgeBaseField

DECISIONS = ("approve", "verify", "reject")
_MOST_AT_ONCE = 100


class NearestSerializer(serializers.Serializer[Any]):
    """An entry that was near the proposal when it was made, and that you may see."""

    entry = serializers.IntegerField()
    distance = serializers.FloatField(help_text="Euclidean, of unit vectors, 0 to 2.")


class ProposalSerializer(serializers.ModelSerializer[Proposal]):
    """What a language model proposed, and what became of it.

    The context's `visible` holds the ids of the near entries that the caller may see.
    """

    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    audience = serializers.CharField(source="entry.audience.slug")
    decided_by = serializers.CharField(
        source="decided_by.username", default=None, allow_null=True
    )
    nearest = serializers.SerializerMethodField()

    class Meta:
        model = Proposal
        fields = [
            "id", "knowledge_base", "audience", "entry", "state", "seed_question",
            "question", "answer", "sentence", "confidence", "stated", "agreement",
            "likelihood", "nearest", "model_name", "model_fingerprint",
            "prompt_version", "random_seed", "job", "decided_by", "decided_at",
            "reason", "created_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(NearestSerializer(many=True))
    def get_nearest(self, proposal: Proposal) -> list[dict[str, float]]:
        """Return the near entries of the caller's audiences."""
        visible: frozenset[int] = self.context["visible"]
        return [
            {"entry": entry, "distance": distance}
            for entry, distance in proposal.nearest
            if entry in visible
        ]


class NewEnrichmentSerializer(StrictSerializer):
    """What a model is to make proposals of."""

    knowledge_base = KnowledgeBaseField()
    audience = AudienceField(help_text="Who may see what is proposed.")
    seeds = serializers.ListField(
        child=StrictCharField(max_length=SEED_LIMIT),
        min_length=1,
        max_length=MOST_SEEDS,
    )
    per_seed = StrictIntegerField(
        min_value=0,
        max_value=MOST_PER_SEED,
        default=3,
        help_text="Questions made from each seed; 0 answers the seeds themselves.",
    )
    count = StrictIntegerField(
        min_value=1, max_value=MOST_PROPOSALS, default=100, help_text="At most so many."
    )
    samples = StrictIntegerField(
        min_value=1,
        max_value=MOST_SAMPLES,
        default=SAMPLES,
        help_text="Further answers to each question, to see whether they agree.",
    )


class DecisionSerializer(StrictSerializer):
    """What a curator makes of some proposals."""

    ids = serializers.ListField(
        child=StrictIntegerField(min_value=1), min_length=1, max_length=_MOST_AT_ONCE
    )
    decision = serializers.ChoiceField(
        choices=[(name, name) for name in DECISIONS],
        help_text="approve lets it in, in review; verify vouches for it yourself.",
    )
    text = StrictCharField(
        max_length=TEXT_LIMIT,
        required=False,
        help_text="What the entry is to say instead; for one proposal alone.",
    )
    reason = StrictCharField(max_length=REASON_LIMIT, default="", allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Reword one proposal at a time, and none that is rejected."""
        if "text" in attrs and (len(attrs["ids"]) > 1 or attrs["decision"] == "reject"):
            raise serializers.ValidationError(
                {"text": ["Only one approved proposal can be reworded at a time."]}
            )
        return attrs


class DecidedSerializer(serializers.Serializer[Any]):
    """What became of the proposals."""

    decided = serializers.ListField(child=serializers.IntegerField())
