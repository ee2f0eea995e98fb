"""What is imported is required, and what is required is pinned."""

import ast
import re
import sys
from importlib.metadata import packages_distributions

import pytest
from django.conf import settings

ROOT = settings.BASE_DIR
APPS = ("accounts", "jobs", "kb", "nescio", "probes", "qa", "integrations", "workers")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==[^\s;]+$")


def _lines(name):
    lines = (
        line.partition("#")[0].strip(" \\")
        for line in (ROOT / name).read_text().splitlines()
    )
    return [line for line in lines if line and not line.startswith("-")]


def _normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def _named(name):
    return {_normal(re.split(r"[=\[<>~!]", line)[0]) for line in _lines(name)}


def _imported_distributions():
    files = [file for app in APPS for file in (ROOT / app).rglob("*.py")]
    modules = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    installed = packages_distributions()
    ours = {*APPS, *sys.stdlib_module_names}
    return {
        _normal(installed[module][0])
        for module in modules - ours
        if module in installed
    }


@pytest.mark.slow
def test_every_package_that_is_imported_is_named_with_its_reason():
    # Celery's own parts, which it re-exports and pins to itself.
    through_celery = {"billiard", "kombu"}
    through_hub_models = {"huggingface-hub", "tokenizers"}

    imported = _imported_distributions()

    assert {"django", "celery", "torch", "rich"} <= imported
    named = _named("requirements.in") | through_celery | through_hub_models
    assert imported <= named


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "requirements-models.txt"]
)
def test_every_pin_is_exact_and_installable_from_the_public_index(name):
    lines = _lines(name)

    assert lines
    assert [line for line in lines if not PIN.match(line) or "+" in line] == []


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "requirements-models.txt"]
)
def test_every_pin_has_the_hashes_that_pip_checks(name):
    pins = re.split(r"\n(?=\S)", (ROOT / name).read_text())
    pins = [pin for pin in pins if "==" in pin]

    assert len(pins) == len(_lines(name))
    for pin in pins:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", pin), pin


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile"])
def test_nothing_but_torch_is_installed_without_its_hash(name):
    text = (ROOT / name).read_text().replace("$(LOCKED)", "pip --require-hashes")
    for line in text.splitlines():
        if "-r requirements" in line and ".txt" in line:
            assert "--require-hashes" in line, line


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_what_is_asked_for_is_pinned(name):
    pinned = _named("requirements.txt") | _named(f"{name}.txt")

    assert _named(f"{name}.in") <= pinned


def test_no_package_is_pinned_twice():
    assert not _named("requirements.txt") & _named("requirements-dev.txt")
