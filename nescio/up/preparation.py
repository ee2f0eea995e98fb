"""What must be there before the first question: tables, models, knowledge.

Every step looks whether it is done, so a start that was killed anywhere goes on here.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from accounts.acting import as_owner
from kb.demonstration import load_demonstration
from kb.documents.models import KnowledgeBase
from kb.embedding.models import EmbeddingModel
from kb.embedding.services import active_model
from nescio.up import UpError
from probes import bundled
from probes.services import register_shipped, unregistered
from qa.policies.services import ensure_default_policy


def is_done() -> bool:
    """Tell from the tables whether models and knowledge were prepared before."""
    has_language_model = (
        settings.LANGUAGE_MODEL != "bundled"
        or bool(settings.LANGUAGE_SERVER_URL)
        or bundled.place(settings.PLACES.models).exists()
    )
    return (
        has_language_model
        and EmbeddingModel.objects.filter(state=EmbeddingModel.State.ACTIVE).exists()
        and KnowledgeBase.objects.filter(policies__is_active=True).exists()
        and not (_reads_with_bundled_model() and unregistered())
    )


def migrate(console: Console) -> None:
    """Apply what is missing; a database that is up to date costs no more than the look."""
    with as_owner("the look for migrations"):  # the application's role is made by one
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not missing:
        console.print("Database: up to date")
        return
    with console.status(f"Database: applying {len(missing)} migrations"):
        call_command("migrate", interactive=False, verbosity=0)
    console.print(f"Database: {len(missing)} migrations applied")


def prepare_models(console: Console) -> None:
    if settings.LANGUAGE_MODEL == "bundled" and not settings.LANGUAGE_SERVER_URL:
        with _bar(console) as progress:
            task = progress.add_task("Language model", total=1.0)
            bundled.prepare(
                settings.PLACES.models,
                progress=lambda doing, fraction: progress.update(
                    task, description=doing, completed=fraction
                ),
            )
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
            "There is no administrator yet. Make one: .venv/bin/python manage.py createsuperuser"
        )
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
