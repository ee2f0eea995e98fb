"""Imports in processes that fork: done once, and shared with the children."""

import gc
import importlib
import os
from collections.abc import Sequence
from pathlib import Path

import django
import psutil
from django.conf import settings

# Loading the embedder needs these; each takes seconds of CPU time to import.
_MODEL_LIBRARIES = ("sentence_transformers", "kb.embedding.short_texts")


def model_libraries() -> Sequence[str]:
    """Return the libraries that models need; none if other servers run all models."""
    is_elsewhere = settings.MODEL_SERVICE_URL and settings.LANGUAGE_SERVER_URL
    return () if is_elsewhere else _MODEL_LIBRARIES


def import_before_fork(*names: str) -> None:
    """Import `names` without garbage collection (a quarter faster), and freeze them.

    Collections in a child skip frozen objects, so that their memory pages stay shared.
    """
    gc.disable()
    try:
        for name in names:
            importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def import_web_server() -> None:
    """Import what the web server needs, without threads, connections or CUDA."""
    gc.disable()  # until `import_before_fork` is done
    if settings.WEB_PROCESSES > 1:
        _share_metrics()  # the library reads the directory when it is imported
    django.setup()
    libraries = [*model_libraries()]
    if libraries:
        libraries.append("qa.inference.grounded")
    import_before_fork(
        settings.ROOT_URLCONF,
        *libraries,
        "integrations.mcp.tools",
        "mcp.server.streamable_http_manager",
        "nescio.warm_up",
    )


def _share_metrics() -> None:
    """Let processes write metrics to files, so that any of them can report the sums.

    Files of ended processes are deleted; their counters would restart at 0 anyway.
    """
    os.environ.update(PROMETHEUS_MULTIPROC_DIR=settings.METRICS_DIR)
    directory = Path(settings.METRICS_DIR)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory != settings.PLACES.metrics:
        return  # set by the operator, who may share it with other programs
    for file in directory.glob("*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            file.unlink(missing_ok=True)
