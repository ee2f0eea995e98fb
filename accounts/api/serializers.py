from rest_framework import serializers

from accounts.models import ApiToken


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token without its secret."""

    user = serializers.CharField(source="user.username", read_only=True)
    created_at = serializers.DateTimeField(source="created", read_only=True)
    expires_at = serializers.DateTimeField(
        source="expiry", read_only=True, allow_null=True
    )

    class Meta:
        model = ApiToken
        fields = ["id", "name", "user", "created_at", "expires_at"]
        read_only_fields = fields


class IssuedTokenSerializer(TokenSerializer):
    """A new token with its secret, which is shown this once."""

    token = serializers.CharField(
        read_only=True,
        help_text="Send it as `Authorization: Token ...`; it can't be shown again.",
    )

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]
        read_only_fields = fields


class CredentialsSerializer(serializers.Serializer[None]):
    """Who wants a token, and for what."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(
        max_length=1000, trim_whitespace=False, style={"input_type": "password"}
    )
    name = serializers.CharField(
        max_length=100, default="", allow_blank=True, help_text="What it is for."
    )
    expires_in_days = serializers.IntegerField(
        min_value=1,
        max_value=3650,
        allow_null=True,
        default=None,
        help_text="null never expires.",
    )
