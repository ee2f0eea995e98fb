"""The reranker that the settings name."""

import logging
from functools import cache
from pathlib import Path

from django.conf import settings

from probes.exceptions import RerankerFileError
from probes.reranker.scoring import load_reranker
from qa.inference.closed_book_models import own_model_fingerprint
from qa.pipeline.retrieve import Reranker

logger = logging.getLogger(__name__)


def configured_reranker() -> Reranker | None:
    """Return the reranker of `NESCIO_RERANKER`, loaded once per process.

    None, which is logged once, where it learnt what helps another language model than
    the one that runs.

    Raises:
        RerankerFileError: A file of it is missing or damaged, or none is named.
    """
    if not settings.RERANKER:
        raise RerankerFileError(
            "The policy ranks what was found and NESCIO_RERANKER names no reranker. Set "
            "it to a directory that train reranker wrote, or activate a policy without."
        )
    directory = Path(settings.RERANKER)
    reranker = load_reranker(directory, device=settings.MODEL_DEVICE)
    learnt_of, runs = reranker.card.language_model, own_model_fingerprint()
    if learnt_of == runs:
        return reranker
    _tell_once(directory, learnt_of, runs)
    return None


@cache
def _tell_once(directory: Path, learnt_of: str, runs: str) -> None:
    logger.error(
        "The reranker in %s learnt what helps the language model %s, and the one that "
        "runs is %s: what is found keeps its order. Fit one for this model (manage.py "
        "train reranker), or activate a policy without rerank.",
        directory, learnt_of[:12], runs[:12] or "a server's",
    )  # fmt: skip
