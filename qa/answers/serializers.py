"""An answer as JSON: one shape for REST, its event stream and the command line."""

from datetime import datetime
from functools import cache
from typing import Any, Literal

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from kb.entries.models import Entry
from qa.answers.models import Answer, AnswerEvidence
from qa.answers.readable import (
    confidence_of,
    disagreements_of,
    segments_of,
    short_answer_of,
)
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.values import Calibration

Role = AnswerEvidence.Role

_GATES = [gate.value for gate in Gate]
_SAID_UNTIL_DECIDED = {
    Answer.Outcome.PENDING: "This question is still being decided.",
    Answer.Outcome.FAILED: "This question could not be decided. Please ask again.",
}


@cache
def _shared(
    kind: type[serializers.Serializer[Answer]],
) -> serializers.Serializer[Answer]:
    """Return one serializer for all answers.

    Making its fields takes longer than using them, and using them keeps nothing.
    """
    return kind()


def as_json(answer: Answer) -> dict[str, Any]:
    shown: dict[str, Any] = _shared(AnswerSerializer).to_representation(answer)
    return shown


class PieceSerializer(serializers.Serializer[AnswerEvidence]):
    """One entry as it was when it was measured."""

    number = 0

    n = serializers.SerializerMethodField(help_text="Its number on the page, from 1.")
    entry = serializers.IntegerField(source="entry_id")
    revision = serializers.IntegerField(source="revision_id")
    quote = serializers.CharField(
        allow_blank=True, help_text="Words of the entry that the answer rests on."
    )
    text = serializers.CharField(source="revision.text", default="", allow_blank=True)
    question = serializers.CharField(
        source="revision.question", default="", allow_blank=True
    )
    document = serializers.CharField(
        source="entry.document.title", default=None, allow_null=True
    )
    section = serializers.CharField(
        source="entry.section.heading", default=None, allow_null=True
    )
    distance = serializers.FloatField(help_text="Euclidean, of unit vectors, 0 to 2.")
    confidence = serializers.FloatField(help_text="In (0, 1]; 1 when verified.")
    ratio = serializers.SerializerMethodField(
        help_text="distance / confidence, which hard refusal holds against alpha."
    )
    verified = serializers.SerializerMethodField()
    machine_written = serializers.SerializerMethodField(
        help_text="A language model wrote it and nobody had reviewed it."
    )
    verified_at = serializers.SerializerMethodField()
    valid_until = serializers.DateTimeField(
        source="revision.valid_until", default=None, allow_null=True
    )
    withheld = serializers.BooleanField(
        source="is_withheld",
        help_text="You are not in its audience; what it says and where is left out.",
    )

    def to_representation(self, instance: AnswerEvidence) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        if instance.is_withheld:
            shown |= {"quote": "", "text": "", "question": ""}
            shown |= {"document": None, "section": None}
        return shown

    def get_n(self, piece: AnswerEvidence) -> int:
        """Return its number among what is shown with it."""
        return self.number

    def get_ratio(self, piece: AnswerEvidence) -> float:
        """Return what hard refusal compares with alpha."""
        return piece.distance / piece.confidence

    def get_verified(self, piece: AnswerEvidence) -> bool:
        """Tell whether a person had verified it, as far as the viewer may know."""
        revision = piece.revision
        return revision is not None and revision.state == Entry.State.VERIFIED

    def get_machine_written(self, piece: AnswerEvidence) -> bool:
        """Tell whether it was a model's proposal."""
        revision = piece.revision
        return revision is not None and revision.state == Entry.State.PROPOSED

    def get_verified_at(self, piece: AnswerEvidence) -> datetime | None:
        entry = piece.entry
        return entry.verified_at if entry and self.get_verified(piece) else None


class EvidenceSerializer(PieceSerializer):
    """A piece that the language model saw."""

    cited = serializers.SerializerMethodField()

    def get_cited(self, piece: AnswerEvidence) -> bool:
        """Tell whether the answer rests on it."""
        return piece.role == AnswerEvidence.Role.CITED


class SignalSerializer(serializers.Serializer[dict[str, Any]]):
    """One measured number beside its threshold; `passed` null was only recorded."""

    gate = serializers.ChoiceField(_GATES)
    name = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    threshold = serializers.FloatField(allow_null=True)
    passed = serializers.BooleanField(allow_null=True)


class EffectiveSerializer(serializers.Serializer[Answer]):
    """What it was decided by: thresholds, and the models that measured."""

    policy = serializers.CharField(source="policy.name")
    policy_version = serializers.IntegerField(source="policy.version")
    alpha = serializers.FloatField(source="policy.alpha")
    horizon = serializers.FloatField(source="policy.horizon")
    top_k = serializers.IntegerField(source="policy.top_k")
    verbatim_distance = serializers.FloatField(source="policy.verbatim_distance")
    unverified_floor = serializers.FloatField(source="policy.unverified_floor")
    min_verdict = serializers.FloatField(source="policy.min_verdict")
    abstention = serializers.BooleanField(source="policy.abstention")
    min_confidence = serializers.FloatField(source="policy.min_confidence")
    min_early_confidence = serializers.FloatField(source="policy.min_early_confidence")
    min_joint_confidence = serializers.FloatField(source="policy.min_joint_confidence")
    scope = serializers.CharField(source="policy.scope")
    retrieval_timing = serializers.CharField(source="policy.retrieval_timing")
    min_known = serializers.FloatField(source="policy.min_known")
    calibration = serializers.ChoiceField([each.value for each in Calibration])
    embedder = serializers.CharField(help_text="Fingerprint.")
    language_model = serializers.CharField(
        allow_blank=True, help_text='Fingerprint; "" where none was asked.'
    )
    own_knowledge = serializers.CharField(
        source="boundary.fingerprint",
        default="",
        help_text="Fingerprint of what told whether the language model knows by itself; "
        '"" where it was not asked.',
    )
    probes = serializers.CharField(
        allow_blank=True,
        help_text='Fingerprints, separated by spaces; "" where none was asked.',
    )


class TokenConfidenceSerializer(serializers.Serializer[object]):
    """A part of the answer and how sure a probe was after it."""

    text = serializers.CharField(
        trim_whitespace=False, help_text="As the model wrote it; joined they give it."
    )
    confidence = serializers.FloatField(help_text="0 to 1.")


class ConfidenceSerializer(serializers.Serializer[object]):
    """How sure the probes in force are that the answer is right, each 0 to 1."""

    answer = serializers.FloatField(
        allow_null=True, help_text="By the model's activations while it wrote."
    )
    early = serializers.FloatField(
        allow_null=True, help_text="By question and evidence, before the first token."
    )
    joint = serializers.FloatField(
        allow_null=True, help_text="By all signals together."
    )
    tokens = TokenConfidenceSerializer(
        many=True,
        help_text="Along `short_answer`, or along `text` where that is empty; empty for "
        "a refusal.",
    )


class SideSerializer(serializers.Serializer[object]):
    """One of two entries that contradict each other."""

    entry = serializers.IntegerField()
    quote = serializers.CharField(help_text="Stands in the entry as it was then.")
    document = serializers.CharField(allow_blank=True)
    verified = serializers.BooleanField()
    withheld = serializers.BooleanField(
        help_text="You are not in its audience; the quote is left out."
    )


class DisagreementSerializer(serializers.Serializer[object]):
    """A contradiction that nobody had settled when the question was asked."""

    conflict = serializers.IntegerField(help_text="Its id under /api/v1/conflicts.")
    sides = SideSerializer(many=True, help_text="Two.")


class AnswerSummarySerializer(serializers.Serializer[Answer]):
    """An answer in a list."""

    id = serializers.UUIDField()
    question = serializers.CharField()
    language = serializers.CharField()
    asker = serializers.CharField(
        source="asker.username", default=None, allow_null=True
    )
    outcome = serializers.ChoiceField(Answer.Outcome.choices)
    answered = serializers.SerializerMethodField()
    gate = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField(
        help_text="Why it was refused, as far as the asker may know."
    )
    text = serializers.SerializerMethodField(
        help_text="Displayable always: the answer, or the refusal's wording."
    )
    unsourced = serializers.BooleanField(
        source="is_unsourced",
        help_text="The language model answered from what it knows by itself; no source "
        "carries it. Only where the policy's scope is adaptive.",
    )
    withheld = serializers.BooleanField(
        source="is_withheld",
        help_text="It cites an entry that you may not see; `text` says so instead.",
    )
    vote = serializers.SerializerMethodField(help_text="Your own.")
    created_at = serializers.DateTimeField()

    def get_answered(self, answer: Answer) -> bool:
        """Tell whether it is an answer; everything else is none."""
        return answer.outcome == Answer.Outcome.ANSWERED

    def get_gate(self, answer: Answer) -> Gate | None:
        return Gate(answer.gate) if answer.gate else None

    def get_reason(self, answer: Answer) -> Reason | None:
        """Return the reason that may be told."""
        return Reason(answer.shown_reason) if answer.shown_reason else None

    def get_text(self, answer: Answer) -> str:
        undecided = _SAID_UNTIL_DECIDED.get(Answer.Outcome(answer.outcome), "")
        return answer.shown_text or undecided

    def get_vote(self, answer: Answer) -> Literal["up", "down"] | None:
        """Return the reader's own thumb."""
        is_up = getattr(answer, "own_vote", None)
        return None if is_up is None else "up" if is_up else "down"


class SegmentSerializer(serializers.Serializer[object]):
    """A sentence that was watched while it was written."""

    text = serializers.CharField()
    sourced = serializers.BooleanField(
        source="is_sourced", help_text="It stands in an entry."
    )
    triggers = serializers.CharField(
        allow_blank=True,
        help_text="The words in doubt, that evidence was looked for by.",
    )
    queries = serializers.ListField(
        child=serializers.CharField(), help_text="What was looked for."
    )


class AnswerSerializer(AnswerSummarySerializer):
    """An answer with its evidence and everything that it was decided by."""

    segments = serializers.SerializerMethodField(
        help_text="Sentence by sentence, where the policy's retrieval timing is monitored."
    )
    short_answer = serializers.SerializerMethodField(
        help_text='The words of `text` that answer the question; "" where the model does '
        "not tell them from the rest."
    )
    confidence = serializers.SerializerMethodField(
        help_text="null where no probe was asked."
    )
    reasoning = serializers.CharField(source="shown_reasoning", allow_blank=True)
    citations = serializers.SerializerMethodField(
        help_text="What the answer rests on; empty unless it is an answer."
    )
    evidence = serializers.SerializerMethodField(
        help_text="All that the language model saw; or the entry shown word for word."
    )
    near_misses = serializers.SerializerMethodField(
        help_text="What was near a refused question, and no reason to answer it; where "
        "the language model was asked, it is in `evidence` too."
    )
    disagreements = serializers.SerializerMethodField(
        help_text="Entries that contradict what the answer rests on, with both quotes."
    )
    signals = SignalSerializer(many=True)
    effective = serializers.SerializerMethodField(help_text="null until it is decided.")
    milliseconds = serializers.DictField(
        child=serializers.FloatField(), help_text="By stage."
    )

    @extend_schema_field(SegmentSerializer(many=True))
    def get_segments(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the sentences that were watched."""
        if not answer.boundary.get("segments"):
            return []
        return list(
            SegmentSerializer(segments_of(answer, answer.pieces), many=True).data
        )

    def get_short_answer(self, answer: Answer) -> str:
        """Return the words that answer, as far as they may be read."""
        return short_answer_of(answer)

    @extend_schema_field(ConfidenceSerializer(allow_null=True))
    def get_confidence(self, answer: Answer) -> dict[str, Any] | None:
        """Return what the probes said, if any did."""
        found = confidence_of(answer)
        return ConfidenceSerializer(found).data if found else None

    @extend_schema_field(PieceSerializer(many=True))
    def get_citations(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the cited pieces, numbered from 1."""
        if not self.get_answered(answer):
            return []
        return _pieces(PieceSerializer, answer, Role.CITED)

    @extend_schema_field(EvidenceSerializer(many=True))
    def get_evidence(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the cited pieces, then the others, numbered on."""
        seen = [
            Role.CITED,
            Role.UNUSED,
            *([Role.NEAR_MISS] if answer.generation else []),
        ]
        return _pieces(EvidenceSerializer, answer, *seen)

    @extend_schema_field(PieceSerializer(many=True))
    def get_near_misses(self, answer: Answer) -> list[dict[str, Any]]:
        return _pieces(PieceSerializer, answer, Role.NEAR_MISS)

    @extend_schema_field(DisagreementSerializer(many=True))
    def get_disagreements(self, answer: Answer) -> list[dict[str, Any]]:
        """Return the contradictions among its evidence."""
        if not answer.contradictions:
            return []
        found = disagreements_of(answer, answer.pieces)
        return list(DisagreementSerializer(found, many=True).data)

    @extend_schema_field(EffectiveSerializer(allow_null=True))
    def get_effective(self, answer: Answer) -> dict[str, Any] | None:
        """Return what it was decided by, once it is."""
        if answer.policy is None or not answer.calibration:
            return None
        return _shared(EffectiveSerializer).to_representation(answer)


def _pieces(
    serializer: type[PieceSerializer], answer: Answer, *roles: AnswerEvidence.Role
) -> list[dict[str, Any]]:
    rows = [row for row in answer.pieces if row.role in roles]
    rows.sort(key=lambda row: row.role != Role.CITED)  # by rank below
    one = serializer()
    shown = []
    for one.number, row in enumerate(rows, start=1):
        shown.append(one.to_representation(row))
    return shown
