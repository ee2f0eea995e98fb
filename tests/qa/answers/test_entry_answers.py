"""The bundled verifier at work: a verified entry that answers is shown whole."""

import shutil
from typing import Any

import pytest
from django.urls import reverse

from kb.embedding.embedder import load_embedder
from probes.verifier.scoring import BUNDLED, load_verifier
from qa.answers.asking import ask, decide, keep_question
from qa.answers.sources import configured_verifier
from qa.models import Answer
from qa.pipeline.entry_gate import Passage
from qa.policies.services import activate, active_policy, new_version
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.qa.pipeline.values import never_load

pytestmark = [pytest.mark.django_db, pytest.mark.verifier]

PAY = "Tarn cards can be added to Apple Pay in the Tarn app or in the Wallet."
FEE = "A late payment is charged with 10 euros for the first reminder."
STUDENT = "The Tarn Student card is free of charge until the holder turns 27."


def asked(text, **options) -> Answer:
    """Ask; nothing here needs a language model."""
    answer = keep_question(
        text, asker=options.pop("asker", None) or make_user(), channel="api", **options
    )
    list(decide(answer, language_model=never_load))
    return Answer.objects.get(pk=answer.pk)


def knowledge():
    return [make_entry(text) for text in (PAY, FEE, STUDENT)]


def test_a_paraphrase_is_answered_by_the_entry_word_for_word():
    entry, *_ = knowledge()
    answer = asked("how do i add my card to apple pay")
    assert (answer.outcome, answer.gate) == ("answered", "entry")
    assert answer.text == PAY
    assert [piece.entry_id for piece in answer.evidence.all()] == [entry.pk]
    assert not answer.generation
    assert len(answer.probes) == 64  # the verifier's fingerprint
    assert answer.milliseconds["verify"] > 0


def test_a_stored_answer_is_found_by_a_question_in_other_words():
    make_entry(
        "Under Settings, Personal data, tap Address and enter the new one.",
        question="How do I change my address?",
    )
    knowledge()
    answer = asked("I have moved, where do I enter my new address?")
    assert answer.gate == "entry"
    assert answer.text.startswith("Under Settings")


def test_what_no_entry_answers_is_refused_before_a_model_is_asked():
    knowledge()
    policy = active_policy(make_knowledge_base())
    activate(new_version(policy, by=None, hard_refusal=False))
    answer = asked("Which restaurants near the station serve pizza?")
    assert (answer.outcome, answer.gate, answer.reason) == (
        "refused", "entry", "not_answered",
    )  # fmt: skip
    assert not answer.generation


def test_with_a_verifier_the_distance_has_not_the_last_word():
    assert active_policy(make_knowledge_base()).alpha == 1.2


def test_a_knowledge_base_in_another_language_does_without():
    base = make_knowledge_base("karten", language="de")
    policy = active_policy(base)
    assert policy.alpha == 0.85
    make_entry("Die Karte kostet 12 Euro.", knowledge_base=base)
    answer = keep_question(
        "Gibt es Pizza am Bahnhof?",
        asker=make_user(),
        channel="api",
        knowledge_base=base,
    )
    list(decide(answer, language_model=never_load))
    answer.refresh_from_db()
    assert "answerability" not in {signal["name"] for signal in answer.signals}


def test_an_entry_for_another_audience_answers_nobody_else():
    make_entry(PAY, audience=make_audience("fraud-desk", groups=["fraud-desk"]))
    answer = asked("how do i add my card to apple pay")
    assert answer.outcome == "refused"
    assert PAY not in answer.text


def test_the_page_says_that_the_answer_is_an_entry(client):
    knowledge()
    curator = make_curator()
    answer = ask("how do i add my card to apple pay", asker=curator, channel="page")
    client.force_login(curator)
    page = client.get(reverse("answer", args=[answer.pk])).content.decode()
    assert "A verified entry, shown as it is" in page
    assert "Does an entry answer the question by itself?" in page


def test_the_playground_names_the_entry(client):
    entry, *_ = knowledge()
    client.force_login(make_curator())
    found = client.post(
        "/api/v1/search",
        {"question": "how do i add my card to apple pay"},
        content_type="application/json",
    ).json()
    assert found["entry"] == entry.pk
    assert {signal["name"] for signal in found["signals"]} >= {"answerability"}


def test_the_verifier_reads_by_the_embedder_that_is_loaded(settings, tmp_path):
    directory = shutil.copytree(BUNDLED, tmp_path / "verifier")
    settings.VERIFIER = str(directory)
    configured_verifier()
    verifier = load_verifier(directory)
    shared: Any = load_embedder("bundled").network
    own = verifier._reader._model
    assert own.embeddings is shared.embeddings
    tuned = verifier.card.tuned
    assert [*own.encoder.layer[:-tuned]] == [*shared.encoder.layer[:-tuned]]
    passages = [Passage("Fees", "", "", text) for text in (PAY, FEE, STUDENT)]
    expected = load_verifier(shutil.copytree(BUNDLED, tmp_path / "alone"))
    assert verifier.score("what does paying late cost", passages) == pytest.approx(
        expected.score("what does paying late cost", passages), abs=2e-3
    )
