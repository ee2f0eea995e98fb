from rest_framework import serializers

from jobs.models import Job


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job and its progress."""

    owner = serializers.CharField(
        source="owner.username",
        read_only=True,
        allow_null=True,
        default=None,
        help_text="Who asked for it; null for the system itself.",
    )
    parameters = serializers.DictField(read_only=True)
    result = serializers.DictField(
        read_only=True, help_text="What came out, once it succeeded."
    )
    total = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="null while it is unknown."
    )
    is_finished = serializers.BooleanField(
        read_only=True, help_text="Nothing more happens unless it is retried."
    )

    class Meta:
        model = Job
        fields = [
            "id", "kind", "parameters", "state", "is_finished", "done", "total", "result",
            "error", "attempts", "cancel_requested", "owner",
            "created_at", "started_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields
