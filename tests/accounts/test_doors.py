"""Every place that reads more than its user may see is listed here, with its reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

APPS = (
    "accounts",
    "jobs",
    "kb",
    "probes",
    "qa",
    "integrations",
    "workers",
    "nescio",
    "studies",
)
# (file, reason): add one only with a reason that holds for every user.
DOORS = {
    # Work that is nobody's.
    ("jobs/run.py", "jobs"),
    ("manage.py", "commands"),
    ("studies/__main__.py", "studies"),
    ("qa/votes/entry_uses.py", "what answers are about"),
    # As of a moment: vectors for everybody at once, which tell no text; what a conflict
    # was, of entries that the asker sees; what refusals said, whoever was refused.
    ("kb/search/past.py", "vectors of what entries said"),
    ("kb/search/past.py", "conflicts as they were"),
    ("qa/answers/past.py", "wordings as they were"),
    # For who runs commands, and so sees everything.
    ("qa/answers/replaying.py", "an answer decided again"),
    ("integrations/events/services.py", "expired entries"),
    ("workers/tasks.py", "abandoned questions"),
    ("workers/tasks.py", "filled gaps"),
    ("workers/tasks.py", "entries that were voted down"),
    ("workers/tasks.py", "followed sources"),
    ("workers/tasks.py", "plans that nobody applied"),
    # A section goes with whoever stands in it; nothing of them is told.
    ("kb/documents/services.py", "sections that go"),
    # It goes whole, also what its eraser was never to read of it.
    ("kb/entries/states.py", "an erased entry's history"),
    # The tables themselves and their statistics: no row of knowledge is read.
    ("accounts/management/commands/migrate.py", "migrations"),
    ("kb/search/evidence.py", "frequencies of words"),
    # Whether anything is to be embedded again; a job does it.
    ("kb/embedding/switch.py", "outdated vectors"),
    ("kb/embedding/vector_index.py", "vector indexes"),
    ("manage.py", "Django's commands"),
    # Theirs, and ids; for who may export it.
    ("qa/privacy/persons.py", "all that is stored of a person"),
    # The audit, which only its triggers write.
    ("qa/privacy/persons.py", "an erased person's name in the audit"),
    ("nescio/fitness.py", "start-up checks"),
    # What a deployment has and lacks: counts, no row of knowledge.
    ("nescio/management/commands/doctor.py", "doctor"),
    ("nescio/up/preparation.py", "the look for migrations"),
    ("qa/evaluation/knowledge.py", "statistics"),
}
# Views of the database that no policy lies below; see kb/migrations/rules.sql.
VIEWS = {
    "kb_entryoutline": {
        "kb/search/past_tables.py",  # as it was, under the same name
        "kb/search/related.py",
    },  # why nothing could be said
    "kb_revisionoutline": {"kb/entries/models.py"},
    "kb_entrywords": {
        "kb/search/evidence.py",
        "kb/search/past_tables.py",  # the same, of entries as they were
        "kb/search/sql.py",  # words of visible entries alone, to respell by
        "kb/entries/models.py",
        "kb/synonyms/services.py",  # whether an entry that one sees uses a word
    },
}


def sources() -> Iterator[Path]:
    """Yield the product's own files."""
    yield settings.BASE_DIR / "manage.py"
    for app in APPS:
        for path in sorted((settings.BASE_DIR / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def name(path: Path) -> str:
    return path.relative_to(settings.BASE_DIR).as_posix()


@pytest.mark.slow
def test_every_door_is_listed():
    found = set()
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if called in {"unrestricted", "as_owner"}:
                    (reason,) = node.args
                    assert isinstance(reason, ast.Constant), f"{path}: say it literally"
                    found.add((name(path), reason.value))

    assert found == DOORS


def test_every_use_of_a_view_without_a_policy_is_listed():
    found = {
        view: {name(path) for path in sources() if view in path.read_text()}
        for view in VIEWS
    }

    assert found == VIEWS
