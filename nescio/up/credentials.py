"""The first administrator and the token of `up`: generated, kept, never fixed.

The file is written before the database, so that a killed start leaves no account whose
password nobody knows.
"""

import json
import os
import secrets
import string
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from django.contrib.auth.models import User
from rest_framework.exceptions import AuthenticationFailed

from accounts.authentication import ApiTokenAuthentication
from accounts.services import create_token
from nescio.up import UpError

USERNAME = "admin"
_PASSWORD_LETTERS = string.ascii_letters + string.digits
_PASSWORD_LENGTH = 20  # 119 bits


@dataclass(frozen=True, slots=True)
class Credentials:
    """What signs in; no password once the administrator has chosen another one."""

    username: str = USERNAME
    admin_password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


def ensure_credentials(file: Path) -> Credentials:
    """Return what signs in, made where it is missing; a changed password stays."""
    kept = _read(file)
    account = _administrator()
    if account is None:
        password = kept.admin_password or "".join(
            secrets.choice(_PASSWORD_LETTERS) for _ in range(_PASSWORD_LENGTH)
        )
        kept = replace(kept, username=USERNAME, admin_password=password)
        write_private(file, asdict(kept))
        account = _make_administrator(password)
    elif not account.check_password(kept.admin_password):
        kept = replace(kept, admin_password=None)
    kept = replace(kept, username=account.get_username())
    if not _works(kept.token):
        issued = create_token(user=account, name="make up")
        kept = replace(kept, token=issued.secret)
    if kept != _read(file):
        write_private(file, asdict(kept))
    return kept


def write_private(file: Path, content: dict[str, object]) -> None:
    """Write JSON that only its owner may read, whole or not at all."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(content, stream, indent=1)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)


def _read(file: Path) -> Credentials:
    try:
        content = json.loads(file.read_text())
        return Credentials(**content)
    except (FileNotFoundError, ValueError, TypeError):
        return Credentials()


def _administrator() -> User | None:
    able = User.objects.filter(is_superuser=True, is_active=True)
    return able.filter(username=USERNAME).first() or able.order_by("pk").first()


def _make_administrator(password: str) -> User:
    if User.objects.filter(username=USERNAME).exists():
        raise UpError(
            f"There is no active administrator, and the user {USERNAME!r} is none. Make "
            "one: .venv/bin/python manage.py createsuperuser"
        )
    return User.objects.create_superuser(USERNAME, password=password)


def _works(token: str | None) -> bool:
    if not token:
        return False
    try:
        ApiTokenAuthentication().authenticate_credentials(token.encode())
    except AuthenticationFailed:
        return False
    return True
