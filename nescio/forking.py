"""Imports for processes that fork: once, fast, and shared with what is forked."""

import gc
import importlib

import django
from django.conf import settings

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
    django.setup()
    import_before_fork(
        settings.ROOT_URLCONF,
        *MODEL_LIBRARIES,
        "qa.inference.grounded",
        "nescio.warm_up",
    )
