from typing import Any

from rest_framework import serializers

from accounts.api.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
)
from kb.models import Audience
from kb.services import audiences


class AudienceSerializer(serializers.ModelSerializer[Audience]):
    """Who may see what."""

    groups = serializers.SlugRelatedField[Any](
        slug_field="name", many=True, read_only=True
    )

    class Meta:
        model = Audience
        fields = ["slug", "name", "everyone", "groups"]
        read_only_fields = fields


class AudienceChangesSerializer(StrictSerializer):
    """What to change; what is left out stays."""

    name = StrictCharField(max_length=audiences.NAME_LIMIT, required=False)
    everyone = StrictBooleanField(
        required=False, help_text="Every signed-in user belongs to it."
    )
    groups = serializers.ListField(
        child=StrictCharField(max_length=150),
        required=False,
        max_length=1000,
        help_text="Names of groups whose members belong to it.",
    )


class NewAudienceSerializer(AudienceChangesSerializer):
    """An audience to be made."""

    slug = StrictCharField(max_length=audiences.SLUG_LIMIT)
    name = StrictCharField(max_length=audiences.NAME_LIMIT)
