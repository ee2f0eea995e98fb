"""The language model that the settings name, and the judge and writer based on it."""

import logging
from typing import TYPE_CHECKING, Final

from django.conf import settings

from accounts.loaded_once import LoadedOnce
from kb.conflicts.values import Judge
from kb.enrichment.forms import Writer
from probes.exceptions import AdapterMismatchError
from qa.exceptions import LanguageModelUnavailableError
from qa.inference.judges import ServerJudge, WhiteBoxJudge
from qa.inference.server import ServerLanguageModel
from qa.inference.writers import ServerWriter, WhiteBoxWriter
from qa.pipeline.language_model import LanguageModel

if TYPE_CHECKING:
    from probes.language_model import WhiteBoxModel

logger = logging.getLogger(__name__)

_loaded: Final = LoadedOnce[tuple[str, ...], LanguageModel]()

# A model with fewer parameters copies better than it follows instructions.
_INSTRUCTED_FROM: Final = 1_000_000_000


def load_language_model() -> LanguageModel:
    """Return the configured server or white-box model, created once per process."""
    key = (
        settings.LANGUAGE_SERVER_URL,
        settings.LANGUAGE_MODEL,
        settings.LANGUAGE_ADAPTER,
        settings.LANGUAGE_FORM,
    )
    return _loaded.get(key, lambda: _make(*key[:2]))


def load_without_adapter() -> "ServerLanguageModel | WhiteBoxModel":
    """Return the configured server, or the white-box model without its adapter.

    The adapter has taught the white-box model to write nothing if no note answers.
    """
    if settings.LANGUAGE_SERVER_URL:
        model = load_language_model()
        if isinstance(model, ServerLanguageModel):
            return model
    # Importing torch takes 400 MiB and seconds: only processes that need it do so.
    from probes.language_model import load_model  # noqa: PLC0415

    return load_model(settings.LANGUAGE_MODEL, adapter="none")


def _make(server_url: str, name: str) -> LanguageModel:
    if server_url:
        key = settings.LANGUAGE_SERVER_KEY
        return ServerLanguageModel(
            url=server_url,
            key=key,
            model=_only_model(server_url, key) if name == "bundled" else name,
            timeout_seconds=settings.LANGUAGE_SERVER_TIMEOUT_SECONDS,
            retries=settings.LANGUAGE_SERVER_RETRIES,
        )
    # Importing torch takes 400 MiB and seconds: only processes that need it do so.
    from probes.language_model import load_model  # noqa: PLC0415
    from qa.inference.grounded import GroundedLanguageModel  # noqa: PLC0415
    from qa.inference.grounded_form import FORM  # noqa: PLC0415
    from qa.inference.guided import GuidedLanguageModel  # noqa: PLC0415
    from qa.inference.instructed import InstructedLanguageModel  # noqa: PLC0415

    is_chosen = settings.LANGUAGE_FORM == "instructed"
    # The bundled adapter was fitted for copying.
    is_bare = is_chosen and settings.LANGUAGE_ADAPTER == "bundled"
    model = load_model(name, adapter="none" if is_bare else None)
    if is_chosen and model.adapter is not None:
        raise AdapterMismatchError(
            f"The adapter was fitted for the form {model.adapter.form!r} and "
            "NESCIO_LANGUAGE_FORM is 'instructed'. Set NESCIO_LANGUAGE_ADAPTER to "
            "'none', or the form to 'copy'."
        )
    if is_chosen or _follows_instructions(model):
        return InstructedLanguageModel(model)
    if model.adapter is None:
        return GuidedLanguageModel(model)
    if model.adapter.form != FORM:
        raise AdapterMismatchError(
            f"The adapter was fitted for the form {model.adapter.form!r}, but this "
            f"release uses {FORM!r}. Fit it again (manage.py train adapter), or set "
            "NESCIO_LANGUAGE_ADAPTER to 'none'."
        )
    return GroundedLanguageModel(model)


def _follows_instructions(model: "WhiteBoxModel") -> bool:
    is_able = model.parameters > _INSTRUCTED_FROM and model.tokens.has_template
    return settings.LANGUAGE_FORM == "auto" and is_able and model.adapter is None


def _only_model(url: str, key: str) -> str:
    import openai  # noqa: PLC0415  # see ServerLanguageModel

    client = openai.OpenAI(
        base_url=url, api_key=key or "none", max_retries=0, timeout=10
    )
    try:
        names = [model.id for model in client.models.list()]
    except openai.OpenAIError as error:
        logger.exception("The language server %s does not list its models", url)
        raise LanguageModelUnavailableError(
            "The language server does not list its models. Check that it runs, "
            "or set NESCIO_LANGUAGE_MODEL to the model's name."
        ) from error
    if len(names) != 1:
        raise LanguageModelUnavailableError(
            f"The language server has {len(names)} models ({', '.join(names[:10])}). Set "
            "NESCIO_LANGUAGE_MODEL to one of them."
        )
    return names[0]


def load_judge() -> Judge:
    model = load_without_adapter()
    if isinstance(model, ServerLanguageModel):
        return ServerJudge(model)
    return WhiteBoxJudge(model)


def configured_judge(*, asks_language_model: bool = True) -> Judge | None:
    """Return the judge that the settings name.

    None if they name none, if it is a language model that is not to be asked now, or if
    the verifier can't read two texts jointly.
    """
    if settings.CONFLICT_JUDGE == "language-model":
        return load_judge() if asks_language_model else None
    if settings.CONFLICT_JUDGE == "none" or settings.VERIFIER == "none":
        return None
    return load_cross_encoder_judge()


def load_cross_encoder_judge() -> Judge | None:
    from qa.inference.cross_encoder_judge import (  # noqa: PLC0415  # see above
        CrossEncoderJudge,
        load_head,
    )
    from qa.inference.verifier import load_verifier  # noqa: PLC0415

    verifier = load_verifier()
    return CrossEncoderJudge(verifier, load_head()) if verifier.reads_jointly else None


def load_writer() -> Writer:
    model = load_without_adapter()
    if isinstance(model, ServerLanguageModel):
        return ServerWriter(model)
    return WhiteBoxWriter(model)
