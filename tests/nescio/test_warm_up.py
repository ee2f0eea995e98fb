"""What active policies ask is there, or is told, before the first question."""

import pytest

from accounts.loaded_once import LoadedOnce
from nescio.warm_up import prepare_policies
from probes.cards import ProbeKind
from probes.models import Probe
from probes.services import promote, register
from qa.inference import known_by_probe as boundary
from qa.inference import policy_models
from qa.inference.closed_book_form import FORM, ClosedBookForm
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.policies.services import active_policy, new_version
from tests.factories import make_knowledge_base, put_in_force
from tests.probes import tiny_models
from tests.probes.probe_files import activation_files


@pytest.fixture
def form(settings, monkeypatch):
    """Let a tiny model be the language model."""
    form = ClosedBookForm(tiny_models.model("llama", 2_048))
    settings.LANGUAGE_MODEL = "tiny"
    settings.LANGUAGE_SERVER_URL = ""
    monkeypatch.setattr(policy_models, "_forms", tiny_models.holding("tiny", form))
    monkeypatch.setattr(boundary, "_loaded", LoadedOnce())
    return form


def ask_for(timing=RetrievalTiming.ALWAYS, **changes):
    is_plain = timing is RetrievalTiming.ALWAYS
    put_in_force(
        new_version(
            active_policy(make_knowledge_base(f"for-{timing.replace('_', '-')}")),
            by=None,
            scope=Scope.KNOWLEDGE_BASE if is_plain else Scope.ADAPTIVE,
            retrieval_timing=timing,
            **changes,
        )
    )


@pytest.mark.django_db
def test_the_boundary_probe_is_there_before_the_first_question(form, caplog):
    key = form.model.fingerprint
    files = activation_files(
        ProbeKind.BOUNDARY,
        language_model=key,
        form=FORM,
        opens_with_prompt=False,
    )
    promote(register(files).pk, Probe.State.ACTIVE, by=None)
    prepare_policies()
    assert not boundary._loaded.find(key)  # no policy asks it yet
    ask_for(RetrievalTiming.BOUNDARY)

    prepare_policies()

    assert boundary._loaded.find(key)
    assert not caplog.records


@pytest.mark.django_db
def test_the_model_that_drafts_by_itself_is_loaded_before_the_first_question(
    form, settings, bundled_base
):
    settings.LANGUAGE_MODEL = "bundled"
    ask_for(RetrievalTiming.LOG_PROBABILITY)

    prepare_policies()

    form = policy_models._forms.find("bundled")
    assert form is not None
    assert form.model is bundled_base


@pytest.mark.django_db
def test_all_that_can_not_be_used_is_told_at_start(form, settings, tmp_path, caplog):
    settings.RERANKER = str(tmp_path)
    ask_for(RetrievalTiming.MONITORED)
    ask_for(rerank=True)

    prepare_policies()

    assert [record.args for record in caplog.records] == [
        ("directions",),
        ("a reranker",),
    ]
    assert "No directions are active" in caplog.text
    assert f"The reranker in {tmp_path} cannot be used" in caplog.text
