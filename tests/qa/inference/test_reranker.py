"""A reranker from the command to the policy that uses it."""

from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts.loaded_once import LoadedOnce
from probes.cards import ProbeKind
from probes.exceptions import RerankerFileError
from probes.language_model import loading
from probes.models import Probe
from probes.reranker.preferences import write_preferences
from probes.reranker.scoring import read_card, write_card
from probes.services import promote, register
from qa.answers.asking import ask
from qa.exceptions import PolicyError
from qa.inference import known_by_probe as boundary
from qa.inference import policy_models
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.policy_models import configured_reranker
from qa.models import Answer
from qa.policies.services import activate, active_policy, new_version
from tests.factories import make_entry, make_knowledge_base, make_user
from tests.probes import tiny_models
from tests.probes.probe_files import activation_files
from tests.probes.reranker.tiny_encoder import preferences, save_encoder
from tests.probes.tiny_models import holding

pytestmark = pytest.mark.slow


@pytest.fixture
def running(settings, tmp_path, monkeypatch):
    """Let a tiny model be the language model, with a boundary probe in force."""
    form = ClosedBookForm(tiny_models.model("llama", 2_048))
    settings.LANGUAGE_MODEL = "tiny"
    settings.LANGUAGE_SERVER_URL = ""
    monkeypatch.setattr(policy_models, "_forms", holding("tiny", form))
    monkeypatch.setattr(boundary, "FORM", "grounded-1")
    files = activation_files(
        ProbeKind.BOUNDARY,
        language_model=form.model.fingerprint,
        opens_with_prompt=False,
    )
    promote(register(files).pk, Probe.State.ACTIVE, by=None)
    return tmp_path


@pytest.fixture
def fitted(running):
    """The directory of a reranker that the command fitted."""
    file = running / "preferences.jsonl"
    write_preferences(file, preferences(160))
    said = StringIO()
    call_command(
        "train", "reranker", file, stdout=said, output=running / "out", epochs=1, group=3, max_tokens=48,
        base=str(save_encoder(running / "encoder")), learning_rate=5e-3,
    )  # fmt: skip
    assert "MRR@10 on 20 held-out ones" in said.getvalue()
    return running / "out"


@pytest.mark.django_db
def test_the_command_writes_a_reranker_that_names_whose_preferences_it_learnt(
    fitted, settings
):
    card = read_card(fitted)
    probe = Probe.objects.get()
    settings.RERANKER = str(fitted)

    reranker = configured_reranker()

    assert reranker is not None
    assert card.language_model == probe.language_model
    assert card.boundary_probe == probe.fingerprint
    assert card.base == "encoder"
    assert card.sizes == {"preferences": 140, "held_out": 20}
    assert reranker.fingerprint == card.fingerprint
    assert len(reranker.score("cat?", ["cat!!!!", "cat...."])) == 2


@pytest.mark.django_db
def test_a_policy_that_ranks_keeps_the_pieces_that_the_reranker_puts_first(
    fitted, settings, bundled_base
):
    # Learnt of the model that will answer, as far as its card says.
    card = replace(read_card(fitted), language_model=bundled_base.fingerprint)
    write_card(fitted, card)
    settings.RERANKER = str(fitted)
    settings.LANGUAGE_MODEL = "bundled"
    texts = [f"The annual fee of card {n} is {n}0 euros." for n in range(1, 5)]
    entries = {make_entry(text).pk: text for text in texts}
    question = "What is the annual fee of the card?"
    knowledge_base = make_knowledge_base()
    policy = active_policy(knowledge_base)
    activate(new_version(policy, by=None, rerank=True, top_k=2))

    answer = ask(
        question,
        asker=make_user(),
        knowledge_base=knowledge_base,
        channel=Answer.Channel.COMMAND,
    )

    shown = {entries[row.entry_id or 0] for row in answer.evidence.all()}
    reranker = configured_reranker()
    assert reranker is not None
    scores = dict(zip(texts, reranker.score(question, texts), strict=True))
    assert shown == set(sorted(texts, key=lambda text: -scores[text])[:2])


@pytest.mark.django_db
@pytest.mark.parametrize("server", ["", "http://127.0.0.1:9/v1"])
def test_a_reranker_of_another_language_model_is_not_used_and_told_once(
    fitted, settings, bundled_base, server, caplog
):
    settings.RERANKER = str(fitted)
    settings.LANGUAGE_MODEL = "bundled"
    settings.LANGUAGE_SERVER_URL = server

    assert [configured_reranker() for _ in range(2)] == [None, None]

    (told,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert "the evidence keeps its order" in told.message


def test_a_model_s_fingerprint_is_told_by_its_files(bundled_base, monkeypatch):
    monkeypatch.setattr(loading, "_loaded", LoadedOnce())

    told = loading.fingerprint_without_adapter("bundled")

    assert told == bundled_base.fingerprint
    assert loading._loaded.find(("bundled", "none")) is None


@pytest.mark.django_db
def test_without_a_reranker_no_policy_ranks(settings):
    settings.RERANKER = ""

    with pytest.raises(PolicyError, match="train reranker"):
        new_version(active_policy(make_knowledge_base()), by=None, rerank=True)
    with pytest.raises(RerankerFileError, match="no reranker is active"):
        configured_reranker()


@pytest.mark.django_db
def test_the_command_says_what_it_can_not_fit_on(running):
    file = running / "preferences.jsonl"
    write_preferences(file, preferences(10))
    for change, said in (
        ({}, "at least 20 are needed"),
        ({"files": [running / "none.jsonl"]}, "cannot be read"),
    ):
        files = change.get("files", [file])
        with pytest.raises(CommandError, match=said):
            call_command("train", "reranker", *files, output=running / "out")
