"""The reranker that the settings name."""

from pathlib import Path

from django.conf import settings

from probes.exceptions import RerankerFileError
from probes.reranker.scoring import load_reranker
from qa.pipeline.rerank import Reranker


def configured_reranker() -> Reranker:
    """Return the reranker of `NESCIO_RERANKER`, loaded once per process.

    Raises:
        RerankerFileError: A file of it is missing or damaged, or none is named.
    """
    if not settings.RERANKER:
        raise RerankerFileError(
            "The policy ranks what was found and NESCIO_RERANKER names no reranker. Set "
            "it to a directory that train_reranker wrote, or activate a policy without."
        )
    return load_reranker(Path(settings.RERANKER), device=settings.MODEL_DEVICE)
