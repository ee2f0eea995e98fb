"""Which way of telling what the model knows a policy asks for, made once per process."""

from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings

from accounts.loaded_once import LoadedOnce
from probes.language_model import load_model
from probes.language_model.loading import fingerprint_without_adapter
from qa.exceptions import LanguageModelUnavailableError
from qa.inference.closed_book_form import OwnKnowledgeForm
from qa.inference.known_by_draft import OwnKnowledgeByDraft
from qa.inference.known_by_history import HistoryForm, OwnKnowledgeByHistory
from qa.inference.known_by_probe import OwnKnowledgeByProbe
from qa.inference.label_judge import LabelPair, read_pair
from qa.inference.verdict_by_history import VerdictByHistory, VerdictForm
from qa.pipeline.history import History, VerdictDebiaser
from qa.pipeline.policy import RetrievalTiming
from qa.pipeline.self_knowledge import SelfKnowledge

_forms: Final = LoadedOnce[str, OwnKnowledgeForm]()
_history_forms: Final = LoadedOnce[tuple[str, LabelPair], HistoryForm]()
_verdict_forms: Final = LoadedOnce[tuple[str, LabelPair], VerdictForm]()

_WAYS: Final[Mapping[RetrievalTiming, Callable[[OwnKnowledgeForm], SelfKnowledge]]] = {
    RetrievalTiming.BOUNDARY: OwnKnowledgeByProbe,
    RetrievalTiming.LOG_PROBABILITY: OwnKnowledgeByDraft,
}


def self_knowledge_by(timing: RetrievalTiming, *, history: History) -> SelfKnowledge:
    """Return what tells by this timing whether the model knows.

    Args:
        history: The past questions that the asker may be judged by.
    """
    form = own_form()
    if timing is RetrievalTiming.HISTORY:
        return OwnKnowledgeByHistory(form, history_form(), history)
    return _WAYS[timing](form)


def history_form() -> HistoryForm:
    """Return the form in which that model is asked after past questions."""
    model, labels = own_form().model, read_pair(settings.HISTORY_LABELS)
    key = (model.fingerprint, labels)
    return _history_forms.get(key, lambda: HistoryForm(model, labels))


def verdict_debiaser(history: History) -> VerdictDebiaser:
    """Return what corrects verdicts by past ones; raises as `verdict_form`.

    Args:
        history: The past questions that the asker may be judged by.
    """
    return VerdictByHistory(verdict_form(), history)


def verdict_form() -> VerdictForm:
    """Return the form in which verdicts are told anew; for a server by its surrogate.

    Raises:
        LanguageModelUnavailableError: The language model is a server's, and there is no
            surrogate.
    """
    name, labels = settings.LANGUAGE_MODEL, read_pair(settings.HISTORY_LABELS)
    if settings.LANGUAGE_SERVER_URL:
        name = settings.SURROGATE_MODEL
        if name == "none":
            raise LanguageModelUnavailableError(
                "This policy corrects verdicts by past ones, which a server can't tell. "
                "Set NESCIO_SURROGATE_MODEL, or activate a policy without debias_verdict."
            )
    return _verdict_forms.get(
        (name, labels), lambda: VerdictForm(load_model(name, adapter="none"), labels)
    )


def own_model_fingerprint() -> str:
    """Return the fingerprint of `own_form`'s model, which need not be loaded for it.

    "" where the language model is a server's.
    """
    if settings.LANGUAGE_SERVER_URL:
        return ""
    form = _forms.find(settings.LANGUAGE_MODEL)
    if form is not None:
        return form.model.fingerprint
    return fingerprint_without_adapter(settings.LANGUAGE_MODEL)


def own_form() -> OwnKnowledgeForm:
    """Return the configured white-box model as it came, in the own-knowledge form.

    Raises:
        LanguageModelUnavailableError: The language model is a server's.
    """
    if settings.LANGUAGE_SERVER_URL:
        raise LanguageModelUnavailableError(
            "This policy asks the language model what it knows by itself, which only a "
            "white-box model can tell. Unset NESCIO_LANGUAGE_SERVER_URL, or activate a "
            "policy of the scope knowledge_base."
        )
    name = settings.LANGUAGE_MODEL
    return _forms.get(name, lambda: OwnKnowledgeForm(load_model(name, adapter="none")))
