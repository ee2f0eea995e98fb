"""Models that policies need besides the answering one, each loaded once per process."""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings

from accounts.loaded_once import LoadedOnce
from probes.cards import ProbeKind
from probes.exceptions import RerankerFileError
from probes.language_model import load_model
from probes.language_model.loading import fingerprint_without_adapter
from probes.models import Probe
from qa.exceptions import LanguageModelUnavailableError
from qa.inference.by_history import (
    HistoryForm,
    SelfKnowledgeByHistory,
    VerdictByHistory,
    VerdictForm,
)
from qa.inference.closed_book_form import ClosedBookForm, SelfKnowledgeByDraft
from qa.inference.known_by_probe import SelfKnowledgeByProbe
from qa.inference.label_judge import LabelPair, read_pair
from qa.pipeline.history import History, VerdictDebiaser
from qa.pipeline.policy import RetrievalTiming
from qa.pipeline.retrieve import Reranker
from qa.pipeline.self_knowledge import SelfKnowledge

logger = logging.getLogger(__name__)

_forms: Final = LoadedOnce[str, ClosedBookForm]()
_history_forms: Final = LoadedOnce[tuple[str, LabelPair], HistoryForm]()
_verdict_forms: Final = LoadedOnce[tuple[str, LabelPair], VerdictForm]()

_WAYS: Final[Mapping[RetrievalTiming, Callable[[ClosedBookForm], SelfKnowledge]]] = {
    RetrievalTiming.BOUNDARY: SelfKnowledgeByProbe,
    RetrievalTiming.LOG_PROBABILITY: SelfKnowledgeByDraft,
}


def self_knowledge_by(timing: RetrievalTiming, *, history: History) -> SelfKnowledge:
    form = load_closed_book_form()
    if timing is RetrievalTiming.HISTORY:
        return SelfKnowledgeByHistory(form, history_form(), history)
    return _WAYS[timing](form)


def own_knowledge_fingerprint(timing: RetrievalTiming) -> str:
    """Load the configured way of asking without evidence; return its fingerprint."""
    if timing is RetrievalTiming.MONITORED:
        # Steering needs another part of torch, which few policies use.
        from qa.inference.monitored_writer import monitored_writer  # noqa: PLC0415

        return monitored_writer().fingerprint
    form = load_closed_book_form()
    if timing is RetrievalTiming.HISTORY:
        return history_form().fingerprint
    return _WAYS[timing](form).fingerprint


def history_form() -> HistoryForm:
    model, labels = load_closed_book_form().model, read_pair(settings.HISTORY_LABELS)
    key = (model.fingerprint, labels)
    return _history_forms.get(key, lambda: HistoryForm(model, labels))


def verdict_debiaser(history: History) -> VerdictDebiaser:
    return VerdictByHistory(verdict_form(), history)


def verdict_form() -> VerdictForm:
    """Return the form that corrects verdicts; for a server, its surrogate's."""
    name, labels = settings.LANGUAGE_MODEL, read_pair(settings.HISTORY_LABELS)
    if settings.LANGUAGE_SERVER_URL:
        name = settings.SURROGATE_MODEL
        if name == "none":
            raise LanguageModelUnavailableError(
                "This policy corrects verdicts by past ones, which a server can't do. "
                "Set NESCIO_SURROGATE_MODEL, or activate a policy without debias_verdict."
            )
    return _verdict_forms.get(
        (name, labels), lambda: VerdictForm(load_model(name, adapter="none"), labels)
    )


def closed_book_fingerprint() -> str:
    """Return the fingerprint of the model without its adapter; "" for a server.

    The model is not loaded for it.
    """
    if settings.LANGUAGE_SERVER_URL:
        return ""
    form = _forms.find(settings.LANGUAGE_MODEL)
    if form is not None:
        return form.model.fingerprint
    return fingerprint_without_adapter(settings.LANGUAGE_MODEL)


def load_closed_book_form() -> ClosedBookForm:
    if settings.LANGUAGE_SERVER_URL:
        raise LanguageModelUnavailableError(
            "This policy asks the language model about its own knowledge, which needs "
            "a white-box model. Unset NESCIO_LANGUAGE_SERVER_URL, or activate a "
            "policy of the scope knowledge_base."
        )
    name = settings.LANGUAGE_MODEL
    return _forms.get(name, lambda: ClosedBookForm(load_model(name, adapter="none")))


def configured_reranker() -> Reranker | None:
    """Return the registry's active reranker, or else that of `NESCIO_RERANKER`.

    Loaded once per process. None, which is logged once, if it was trained for another
    language model.
    """
    model = closed_book_fingerprint()
    active = Probe.objects.active_for(model).filter(kind=ProbeKind.RERANKER)
    if key := active.values_list("fingerprint", flat=True).first():
        # The verifier needs torch and the embedder, which few policies use here.
        from qa.inference.verifier import load_blended  # noqa: PLC0415

        return load_blended(model, key)
    if not settings.RERANKER:
        raise RerankerFileError(
            "The policy reranks the evidence and no reranker is active. Train and "
            "activate one on the probes' page, set NESCIO_RERANKER to a directory that "
            "train reranker wrote, or activate a policy without rerank."
        )
    # sentence-transformers takes seconds to import, and few policies need it.
    from probes.reranker.scoring import load_reranker  # noqa: PLC0415

    directory = Path(settings.RERANKER)
    reranker = load_reranker(directory, device=settings.MODEL_DEVICE)
    learnt_of = reranker.card.language_model
    if learnt_of == model:
        return reranker
    _log_once(directory, learnt_of, model)
    return None


@cache
def _log_once(directory: Path, learnt_of: str, runs: str) -> None:
    logger.error(
        "The reranker in %s was trained for the language model %s, and the one that "
        "runs is %s: the evidence keeps its order. Fit one for this model (manage.py "
        "train reranker), or activate a policy without rerank.",
        directory, learnt_of[:12], runs[:12] or "a server's",
    )  # fmt: skip
