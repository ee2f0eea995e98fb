"""Preparation before the first question: tables, models, knowledge, an administrator.

Every step checks whether it is done, so that a start continues after one that was
killed.
"""

import json
import os
import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from rest_framework.exceptions import AuthenticationFailed
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from accounts.acting import as_owner
from accounts.authentication import ApiTokenAuthentication
from accounts.replaced_migrations import count_missing
from accounts.services import create_token
from kb.demonstration import SLUG, load_demonstration
from kb.documents.models import KnowledgeBase
from kb.embedding.models import EmbeddingModel
from kb.embedding.services import active_model
from nescio.up import UpError
from probes import bundled, bundled_encoder
from probes.services import register_shipped, unregistered
from qa.policies.services import ensure_default_policy


def is_done() -> bool:
    """Return whether models and knowledge are already prepared, by files and tables."""
    return (
        all(model.place(settings.PLACES.models).exists() for model in _needed())
        and EmbeddingModel.objects.filter(state=EmbeddingModel.State.ACTIVE).exists()
        and KnowledgeBase.objects.filter(policies__is_active=True).exists()
        and not (_reads_with_bundled_model() and unregistered())
    )


def _needed() -> list[ModuleType]:
    """Return the bundled models that the settings ask for."""
    return [model for model in (bundled, bundled_encoder) if model.is_needed()]


def migrate(console: Console) -> None:
    """Apply missing migrations."""
    with as_owner("the look for migrations"):  # one of them creates the usual role
        missing = count_missing()
    if not missing:
        console.print("Database: up to date")
        return
    with console.status(f"Database: applying {missing} migrations"):
        call_command("migrate", interactive=False, verbosity=0)
    console.print(f"Database: {missing} migrations applied")


def prepare_models(console: Console) -> None:
    with _bar(console) as progress:
        for needed in _needed():
            task = progress.add_task("Bundled models", total=1.0)

            def show(doing: str, fraction: float, task: TaskID = task) -> None:
                progress.update(task, description=doing, completed=fraction)

            needed.prepare(settings.PLACES.models, show)
    with console.status("Embedding model: checking and loading"):
        model = active_model()
    console.print(f"Embedding model: {model}")


def register_probes(console: Console) -> None:
    made = register_shipped() if _reads_with_bundled_model() else []
    if made:
        console.print(f"Probes: {len(made)} registered")


def load_knowledge(console: Console) -> None:
    author = User.objects.filter(is_superuser=True, is_active=True).first()
    if author is None:
        raise UpError(
            "There is no administrator yet. Create one: .venv/bin/python manage.py createsuperuser"
        )
    others = KnowledgeBase.objects.exclude(slug=SLUG)
    if others.exists() and not KnowledgeBase.objects.filter(slug=SLUG).exists():
        console.print("Knowledge: your own; the demonstration was left out")
        return
    with console.status("Knowledge: loading the demonstration"):
        is_new = load_demonstration(author=author)
        for knowledge_base in KnowledgeBase.objects.all():
            ensure_default_policy(knowledge_base)
    console.print(
        "Knowledge: demonstration loaded" if is_new else "Knowledge: already loaded"
    )


def _reads_with_bundled_model() -> bool:
    reads: str = settings.LANGUAGE_MODEL
    if settings.LANGUAGE_SERVER_URL:
        reads = settings.SURROGATE_MODEL
    return reads == "bundled"


@contextmanager
def _bar(console: Console) -> Iterator[Progress]:
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        yield progress


USERNAME = "admin"
_PASSWORD_LETTERS = string.ascii_letters + string.digits
_PASSWORD_LENGTH = 20  # 119 bits


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of the administrator; no password once they have changed it."""

    username: str = USERNAME
    admin_password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


def ensure_credentials(file: Path) -> Credentials:
    """Return the credentials, generating missing ones; a changed password is kept.

    The file is written before the database, so that a killed start does not leave an
    account whose password nobody knows.
    """
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
    """Write JSON to a file with mode 0600, atomically."""
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
            f"There is no active administrator, and the user {USERNAME!r} is not one. "
            "Create one: .venv/bin/python manage.py createsuperuser"
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
