"""The table in docs/reference/settings.md and nescio/settings.py say the same."""

import ast
import re
from pathlib import Path

import pytest
from django.conf import settings

TABLE = settings.BASE_DIR / "docs" / "reference" / "settings.md"
SETTINGS = settings.BASE_DIR / "nescio" / "settings.py"
COMPOSE = settings.BASE_DIR / "docker-compose.yml"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (.+?) \| (.+) \|$", re.MULTILINE)


def _read_calls():
    """Return {variable: the expression of its default, if any} of every env.*() call."""
    tree = ast.parse(SETTINGS.read_text())
    return {
        call.args[0].value: next(
            (word.value for word in call.keywords if word.arg == "default"), None
        )
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "env"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }


def _as_written(value):
    if isinstance(value, list):
        value = ",".join(value)
    if isinstance(value, bool):
        value = str(value).lower()
    return f"`{value}`" if value != "" else "empty"


CALLS = _read_calls()
OWN, COMPOSED = TABLE.read_text().split("## Only in docker-compose.yml")
DOCUMENTED = {name: default for name, default, _ in ROW.findall(OWN)}
LITERAL = {
    name: ast.literal_eval(default)
    for name, default in CALLS.items()
    if isinstance(default, ast.Constant | ast.List) and name != "NESCIO_SECRET_KEY"
}


def test_every_variable_is_documented_and_every_documented_one_is_read():
    assert set(DOCUMENTED) == set(CALLS)
    assert len(CALLS) > 30


@pytest.mark.parametrize("name", sorted(LITERAL))
def test_the_documented_default_is_the_one_in_force(name):
    assert DOCUMENTED[name] == _as_written(LITERAL[name])


def test_the_environment_is_read_in_one_place():
    allowed = {
        "integrations/management/commands/mcp.py",  # gets its client's token
        "nescio/settings.py",
        "nescio/probe_health.py",
        "nescio/up/processes.py",
    }
    readers = {
        str(file.relative_to(settings.BASE_DIR))
        for app in (
            "accounts",
            "jobs",
            "kb",
            "nescio",
            "probes",
            "qa",
            "integrations",
            "workers",
        )
        for file in (settings.BASE_DIR / app).rglob("*.py")
        if re.search(r"os\.(environ\[|environ\.get|getenv)", file.read_text())
    }

    assert readers <= allowed


def test_the_compose_file_sets_only_documented_variables():
    composed = {name for name, _, _ in ROW.findall(COMPOSED)}
    used = set(re.findall(r"\$\{([A-Z_]+)", Path(COMPOSE).read_text()))

    assert used <= set(DOCUMENTED) | composed
    assert composed <= used
