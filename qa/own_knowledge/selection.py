"""Which way of telling what the model knows a policy asks for, made once per process."""

import threading
from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings

from probes.language_model import load_model
from qa.exceptions import LanguageModelUnavailableError
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.own_knowledge.log_probability import OwnKnowledgeByDraft
from qa.pipeline.own_knowledge import OwnKnowledge
from qa.pipeline.policy import RetrievalTiming

_lock: Final = threading.Lock()
_forms: Final[dict[str, OwnKnowledgeForm]] = {}

_WAYS: Final[Mapping[RetrievalTiming, Callable[[OwnKnowledgeForm], OwnKnowledge]]] = {
    RetrievalTiming.LOG_PROBABILITY: OwnKnowledgeByDraft,
}


def own_knowledge_of(timing: RetrievalTiming) -> OwnKnowledge:
    """Return what tells by this timing whether the model knows.

    Raises:
        LanguageModelUnavailableError: The language model is a server's, whose insides
            nothing can read.
        ModelLoadError: The model is not there or cannot be read.
    """
    return _WAYS[timing](own_form())


def own_form() -> OwnKnowledgeForm:
    """Return the configured white-box model as it came, in the own-knowledge form.

    Raises:
        LanguageModelUnavailableError: The language model is a server's.
        ModelLoadError: The model is not there or cannot be read.
    """
    if settings.LANGUAGE_SERVER_URL:
        raise LanguageModelUnavailableError(
            "This policy asks the language model what it knows by itself, which only a "
            "white-box model can tell. Unset NESCIO_LANGUAGE_SERVER_URL, or activate a "
            "policy of the scope knowledge_base."
        )
    name = settings.LANGUAGE_MODEL
    with _lock:
        form = _forms.get(name)
        if form is None:
            model = load_model(name, adapter="none")
            form = _forms[name] = OwnKnowledgeForm(model)
        return form
