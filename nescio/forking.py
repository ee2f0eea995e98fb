"""Imports for processes that fork: once, fast, and shared with what is forked."""

import gc
import importlib
import os
from collections.abc import Sequence
from pathlib import Path

import django
import psutil
from django.conf import settings

# Seconds of a processor each; what loads the embedder needs them.
_MODEL_LIBRARIES = ("sentence_transformers", "kb.embedding.short_texts")


def model_libraries() -> Sequence[str]:
    """Return what models need; nothing where they are all computed elsewhere."""
    is_elsewhere = settings.MODEL_SERVICE_URL and settings.LANGUAGE_SERVER_URL
    return () if is_elsewhere else _MODEL_LIBRARIES


def import_before_fork(*names: str) -> None:
    """Import `names`, a quarter faster without collections of garbage, and freeze them.

    What is frozen is looked at by no collection of a child, whose pages stay shared.
    """
    gc.disable()
    try:
        for name in names:
            importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def import_web_server() -> None:
    """Import what the web server needs; with no thread, database connection or CUDA."""
    gc.disable()  # until all is imported
    if settings.WEB_PROCESSES > 1:
        _share_metrics()  # the library looks for the directory when it is imported
    django.setup()
    import_before_fork(
        settings.ROOT_URLCONF,
        *(libraries := model_libraries()),
        *(["qa.inference.grounded"] if libraries else []),
        "integrations.mcp.tools",
        "mcp.server.streamable_http_manager",
        "nescio.warm_up",
    )


def _share_metrics() -> None:
    """Let processes count in files that each of them can add up.

    Files of processes that have ended go: what they counted began at 0 again with each.
    """
    os.environ.update(PROMETHEUS_MULTIPROC_DIR=settings.METRICS_DIR)
    directory = Path(settings.METRICS_DIR)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory != settings.PLACES.metrics:
        return  # the operator's own, who may share it with others
    for file in directory.glob("*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            file.unlink(missing_ok=True)
