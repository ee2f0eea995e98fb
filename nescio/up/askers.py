"""Who asks the demonstration questions: three users with other audiences."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from accounts.models import ApiToken
from accounts.services.tokens import create_token
from qa.evaluation.suites.demo import ensure_demonstration_users

_TOKEN_LIFE = timedelta(hours=1)


@contextmanager
def demonstration_tokens() -> Iterator[Mapping[str, str]]:
    """Hand out a token for each asker, and revoke them at the end."""
    issued = {
        name: create_token(user=user, name="demonstration", expires_in=_TOKEN_LIFE)
        for name, user in ensure_demonstration_users().items()
    }
    try:
        yield {name: token.secret for name, token in issued.items()}
    finally:
        ApiToken.objects.filter(
            pk__in=[token.row.pk for token in issued.values()]
        ).delete()
