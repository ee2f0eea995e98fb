"""What processes do before they fork: import and load once, to be shared with what is forked."""

import gc
import importlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import django
import psutil
from django.conf import settings

from accounts.exceptions import NescioError
from accounts.torch_threads import before_forking

logger = logging.getLogger("nescio.web_server")

# Seconds of a processor each; what loads the embedder needs them.
MODEL_LIBRARIES = ("sentence_transformers", "kb.embedding.short_texts")


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
        *MODEL_LIBRARIES,
        "qa.inference.grounded",
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


def load_models() -> None:
    """Load what answers questions, without a thread or a database connection.

    The weights' memory is shared by what is forked. What can't be loaded, each process
    tries again, and says in its health check.
    """
    # Asked otherwise, CUDA would be begun, which no fork survives.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    from probes.language_model.loading import choose_device  # noqa: PLC0415  # torch

    if choose_device(settings.MODEL_DEVICE).type != "cpu":
        return  # a process has its own memory of a device
    began = time.monotonic()
    with before_forking():
        for load in _loads():
            try:
                load()
            except NescioError:
                logger.exception("What answers questions could not be loaded.")
    gc.collect()
    gc.freeze()
    logger.info("The models are loaded after %.1f s.", time.monotonic() - began)


def _loads() -> Sequence[Callable[[], object]]:
    from kb.embedding.embedder import load_embedder  # noqa: PLC0415  # torch
    from qa.inference.configured import load_language_model  # noqa: PLC0415  # torch
    from qa.inference.verifier import load_verifier  # noqa: PLC0415  # torch

    loads: list[Callable[[], object]] = [
        lambda: load_embedder(settings.EMBEDDING_MODEL)
    ]
    if settings.VERIFIER != "none":
        loads.append(load_verifier)
    if not settings.LANGUAGE_SERVER_URL:
        loads.append(load_language_model)
    return loads
