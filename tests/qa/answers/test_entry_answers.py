"""The bundled verifier at work: a verified entry that answers is shown whole."""

import shutil
from typing import Any

import pytest
from django.urls import reverse

from accounts.roles import Role
from kb.embedding.embedder import load_bundled
from probes.verifier.card import BUNDLED
from probes.verifier.scoring import load_verifier
from qa.answers.asking import ask, decide, keep_question
from qa.answers.sources import configured_verifier
from qa.models import Answer
from qa.pipeline.weighing import Passage
from qa.policies.services import activate, active_policy, new_version
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
    set_role,
)
from tests.qa.answer_rows import make_answer
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
    assert active_policy(make_knowledge_base()).alpha == 1.25


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


def test_two_entries_that_may_be_meant_are_shown_side_by_side(client):
    for card, fee in (("Gold", 72), ("Silver", 40)):
        make_entry(f"The annual fee of the Tarn {card} card is {fee} euros.")
    knowledge()
    curator = make_curator()
    answer = ask("What is the annual fee?", asker=curator, channel="page")
    assert answer.gate == "entry"
    paragraphs = answer.text.split("\n\n")
    assert [text[-3:] for text in paragraphs] == ["[1]", "[2]"]
    cited = answer.evidence.filter(role="cited").order_by("rank")
    assert [*cited.values_list("entry__text", flat=True)] == [
        text[:-4] for text in paragraphs
    ]
    client.force_login(curator)
    page = client.get(reverse("answer", args=[answer.pk])).content.decode()
    assert "2 verified entries, shown as they are" in page
    assert page.count('class="citation') >= 2


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


@pytest.mark.slow
def test_the_verifier_reads_by_the_embedder_that_is_loaded(settings, tmp_path):
    directory = shutil.copytree(BUNDLED, tmp_path / "verifier")
    settings.VERIFIER = str(directory)
    configured_verifier()
    verifier = load_verifier(directory)
    shared: Any = load_bundled().network
    reader = verifier._reader
    assert reader._below.embeddings is shared.embeddings
    assert [*reader._below.encoder.layer, *reader._own] == [*shared.encoder.layer]
    passages = [Passage("Fees", "", "", text) for text in (PAY, FEE, STUDENT)]
    expected = load_verifier(shutil.copytree(BUNDLED, tmp_path / "alone"))
    assert verifier.score("what does paying late cost", passages) == pytest.approx(
        expected.score("what does paying late cost", passages), abs=2e-3
    )


TOLD = "Tarn cards can be added to Apple Pay in the Tarn app 📱."
LONG = f"The hotline is open from 8 to 18. {TOLD} Late payments cost 10 euros."
OWN = "How do I add my card to Apple Pay?"
ASKED = "how can I put my Tarn card into Apple Pay"


@pytest.fixture
def long_entry():
    policy = active_policy(make_knowledge_base())
    activate(new_version(policy, by=None, min_entry_answer=0.3, min_answerability=0.1))
    return make_entry(LONG, question=OWN)


def page_of(client, answer, reader) -> str:
    client.force_login(reader)
    page: bytes = client.get(reverse("answer", args=[answer.pk])).content
    return page.decode()


def test_the_sentence_that_answers_is_marked_in_the_answer_and_its_source(
    client, long_entry
):
    asker = make_user()
    answer = asked(ASKED, asker=asker)

    assert (answer.gate, answer.text) == ("entry", LONG)
    assert [piece.quote for piece in answer.evidence.all()] == [TOLD]
    assert answer.milliseconds["mark"] > 0
    page = page_of(client, answer, asker)
    assert page.count(f"<mark>{TOLD}</mark>") == 2
    assert f"{LONG} </template>" in page  # what is copied has no marks
    shown = client.get(f"/api/v1/answers/{answer.pk}").json()
    assert (shown["text"], shown["short_answer"]) == (LONG, TOLD)
    assert [piece["quote"] for piece in shown["citations"]] == [TOLD]

    reviewer = make_user(username="rita")
    set_role(reviewer, role=Role.SME)
    client.force_login(reviewer)
    row = client.get(reverse("admin:qa_answer_change", args=[answer.pk]))
    assert f">{TOLD}</td>" in row.content.decode()


def test_a_stored_question_in_its_own_words_marks_too(long_entry):
    answer = asked(OWN)
    assert (answer.gate, answer.text) == ("verbatim", LONG)
    assert answer.evidence.get().quote == TOLD


def test_in_an_answer_of_one_sentence_nothing_is_marked(client):
    knowledge()
    asker = make_user()
    answer = asked("how do i add my card to apple pay", asker=asker)
    assert answer.evidence.get().quote == PAY
    assert "<mark>" not in page_of(client, answer, asker)
    assert client.get(f"/api/v1/answers/{answer.pk}").json()["short_answer"] == ""


def test_who_may_not_see_the_entry_sees_no_marked_words(client):
    inner = make_audience("wallets", groups=["wallets"])
    entry = make_entry(LONG, audience=inner)
    asker = make_user(username="pia", groups=["wallets"])
    answer = make_answer(asker, cited=(entry,), text=LONG, gate="entry")
    answer.evidence.update(quote=TOLD)
    assert f"<mark>{TOLD}</mark>" in page_of(client, answer, asker)

    reviewer = make_user(username="rita")
    set_role(reviewer, role=Role.SME)
    page = page_of(client, answer, reviewer)
    shown = client.get(f"/api/v1/answers/{answer.pk}")

    assert shown.json()["short_answer"] == ""
    assert "Apple Pay" not in page + shown.content.decode()


@pytest.mark.slow
def test_a_table_answers_by_its_rows_and_the_row_is_marked():
    make_entry(
        "The usual closure periods are:\n"
        "Kind of record | Closed for | Who may give access earlier\n"
        "Hospital patient files | 100 years | The health trust\n"
        "School admission registers | 80 years | The head teacher\n"
        "Police charge books | 75 years | The chief constable\n"
        "Adoption files | 100 years | The court only"
    )
    knowledge()

    answer = asked("For how long are police charge books closed?")
    beside = asked("For how long are prison registers closed?")

    assert answer.gate == "entry"
    assert answer.evidence.all()[0].quote == (
        "Police charge books | 75 years | The chief constable"
    )
    assert beside.outcome == "refused"
