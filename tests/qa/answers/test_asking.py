"""Asking on the real parts: embedded PostgreSQL, bundled embedder and language model."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, connection
from django.utils import timezone

from kb.entries.services import edit_entry
from kb.entries.states import erase_entry, retire_entry
from kb.exceptions import KnowledgeBaseNotFoundError
from probes.taps import Tap
from qa.answers.asking import ask, decide, keep_question
from qa.answers.presentation import thresholds_from
from qa.answers.questions import find_knowledge_base, new_question
from qa.exceptions import (
    AnswerDecidedError,
    InvalidQuestionError,
    LanguageModelBusyError,
    LanguageModelUnavailableError,
)
from qa.models import Answer, RefusalWording
from qa.pipeline.gates import Reason
from qa.pipeline.language_model import (
    NO_CAPTURE,
    Confidence,
    Generation,
    KeptActivations,
)
from qa.pipeline.values import Outcome, VerbatimMatch, stage_name
from qa.policies.services import activate, active_policy, new_version
from qa.policies.wording import refusal_text
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.qa.answer_rows import make_self_calibration
from tests.qa.pipeline.values import (
    INSIDE,
    PROBES,
    GivenModel,
    GivenProbes,
    make_generation,
    never_load,
)

pytestmark = pytest.mark.django_db

FEE = "A replacement card costs 12 euros."
FEE_QUESTION = "How much does a replacement card cost?"


class DownModel(GivenModel):
    def generate(self, prompt, capture=NO_CAPTURE):
        raise LanguageModelUnavailableError("The server is down. Try again later.")


def decided(text, *, model=never_load, probes=None, asker=None, **options):
    """Ask with a given model and return the stored row."""
    answer = keep_question(
        text, asker=asker or make_user(), channel=Answer.Channel.API, **options
    )
    list(decide(answer, language_model=model, probes=probes))
    return Answer.objects.get(pk=answer.pk)


def test_the_bundled_models_answer_from_what_is_known():
    entry = make_entry(FEE)

    answer = ask("How much does a replacement card cost?", asker=make_user(), channel="api")  # fmt: skip

    answer.refresh_from_db()
    # A weak model may decline; what it says comes from the entry or is not shown.
    assert answer.outcome in {"answered", "refused"}
    assert answer.generation["raw"]
    assert len(answer.embedder) == 64
    assert answer.language_model
    assert [piece.entry_id for piece in answer.evidence.all()] == [entry.pk]
    assert set(answer.milliseconds) >= {"retrieve", "retrieve.embed", "generate"}


def test_an_answer_says_that_own_questions_chose_its_thresholds():
    base = make_knowledge_base()
    make_self_calibration(active_policy(base))

    answer = ask("Who won the chess game?", asker=make_user(), channel="api")

    assert Answer.objects.get(pk=answer.pk).calibration == "self_calibrated"
    assert "the knowledge base's own questions" in thresholds_from(answer)


def test_an_answer_is_stored_with_everything_it_was_decided_by():
    entry = make_entry(FEE)
    other = make_entry("The replacement card has a new card number.")
    model = GivenModel(make_generation("It costs 12 euros.", cited=(1,)))

    answer = decided("How much does a replacement card cost?", model=lambda: model)

    assert (answer.outcome, answer.gate, answer.reason) == ("answered", "", "")
    assert answer.text == "It costs 12 euros."
    assert answer.policy == active_policy(answer.knowledge_base)
    assert answer.calibration == "stale"  # not the model that min_verdict is for
    assert answer.language_model == model.fingerprint
    assert answer.generation["raw"] == "It costs 12 euros."
    assert {s["gate"] for s in answer.signals} == {
        "verbatim", "hard_refusal", "soft_refusal", "abstention", "agreement",
    }  # fmt: skip
    roles = {e.entry_id: (e.role, e.quote) for e in answer.evidence.all()}
    assert roles == {entry.pk: ("cited", FEE), other.pk: ("unused", "")}
    assert answer.decided_at is not None


def test_how_sure_it_is_is_stored_with_an_answer_and_no_activations():
    make_entry(FEE)
    inside = KeptActivations(answer={Tap(3): INSIDE}, prompt={Tap(1): INSIDE})
    written = make_generation(
        "It costs 12 euros.",
        short_answer="12 euros",
        tokens=("12", " euros"),
        trace=inside,
    )
    confidence = Confidence(
        answer=0.75, early=0.5, along=(1 / 3, 2 / 3, 0.75), probes=PROBES
    )
    given = GivenProbes(confidence)

    answer = decided(
        "How much does a replacement card cost?",
        model=lambda: GivenModel(written),
        probes=lambda _model: given,
    )

    assert answer.outcome == "answered"
    assert answer.probes == PROBES
    assert answer.confidence == {"along": [0.3333, 0.6667, 0.75], "missing": ""}
    assert answer.generation["tokens"] == ["12", " euros"]
    assert answer.generation["short_answer"] == "12 euros"
    assert "trace" not in answer.generation
    stored = {signal["name"]: signal["value"] for signal in answer.signals}
    assert (stored["answer_confidence"], stored["early_confidence"]) == (0.75, 0.5)


def test_too_little_confidence_is_a_refusal_that_says_so():
    make_entry(FEE)
    base = active_policy(make_knowledge_base())
    activate(new_version(base, by=None, abstention=True, min_confidence=0.5))

    unsure, unknown = (
        decided(
            "How much does a replacement card cost?",
            model=lambda: GivenModel(make_generation("It costs 12 euros.")),
            probes=lambda _model, confidence=confidence: GivenProbes(confidence),
        )
        for confidence in (Confidence(answer=0.4), Confidence(missing="No probe."))
    )

    assert (unsure.gate, unsure.reason) == ("abstention", "low_confidence")
    assert unsure.text == refusal_text(Reason.LOW_CONFIDENCE, "en")
    assert unsure.evidence.get().role == "near_miss"
    assert unknown.outcome == "answered"
    assert unknown.confidence["missing"] == "No probe."


def test_a_hard_refusal_is_one_insert_and_few_queries(django_assert_max_num_queries):
    make_entry(FEE)
    asker = make_user()
    ask("Why is the sky blue?", asker=asker, channel="api")

    # Knowledge base, policy, audiences, embedding model, search, what is withheld, wording,
    # and the insert between its savepoint and release.
    with django_assert_max_num_queries(10) as queries:
        answer = ask("Why is the sky blue?", asker=asker, channel="api")

    answer.refresh_from_db()
    assert (answer.gate, answer.reason) == ("hard_refusal", "nothing_known")
    written = [q["sql"] for q in queries if q["sql"].startswith(("INSERT", "UPDATE"))]
    assert len(written) == 1
    assert 'INSERT INTO "qa_answer"' in written[0]


def test_a_near_miss_is_kept_apart_and_never_cited():
    entry = make_entry("The card can be used with Apple Pay.")

    answer = decided("Can I buy shares with my card?")

    assert answer.reason == "too_far"
    assert [(e.role, e.entry_id) for e in answer.evidence.all()] == [
        ("near_miss", entry.pk)
    ]


def test_what_is_near_a_soft_refusal_is_a_near_miss_in_row_json_and_page(client):
    entry = make_entry(FEE)
    model = GivenModel(make_generation(answer="", cited=()))
    asker = make_user()

    answer = decided(
        "How much does a replacement card cost?", model=lambda: model, asker=asker
    )

    assert answer.gate == "soft_refusal"
    assert [(e.role, e.entry_id) for e in answer.evidence.all()] == [
        ("near_miss", entry.pk)
    ]
    client.force_login(asker)
    shown = client.get(f"/api/v1/answers/{answer.pk}").json()
    assert shown["citations"] == []
    assert [p["entry"] for p in shown["near_misses"]] == [entry.pk]
    assert [(p["entry"], p["cited"]) for p in shown["evidence"]] == [(entry.pk, False)]
    page = client.get(f"/answers/{answer.pk}").content.decode()
    assert "Related entries" in page
    assert page.count(FEE) == 1


def test_a_verbatim_answer_is_shown_word_for_word():
    make_entry("Open Cards, Block.\nThen call us.", question="How do I block a card?")

    answer = decided("how can i block my card")

    assert (answer.outcome, answer.gate) == ("answered", "verbatim")
    assert answer.text == "Open Cards, Block.\nThen call us."


def test_what_another_audience_knows_is_no_reason_that_the_asker_is_told():
    secret = "Fraud alerts are raised after three declined payments."
    make_entry(secret, audience=make_audience("fraud", groups=["fraud"]))
    question = "When is a fraud alert raised?"

    refused = decided(question)
    shown = decided(question, asker=make_user(groups=["fraud"]), model=lambda: GivenModel(make_generation("After three declined payments.")))  # fmt: skip

    assert (refused.reason, refused.shown_reason) == ("not_entitled", "nothing_known")
    assert refused.text == refusal_text(Reason.NOTHING_KNOWN, "en")
    assert not refused.evidence.exists()
    assert "entitled" not in str(refused.signals)
    assert shown.outcome == "answered"


def test_a_policy_may_reveal_that_the_asker_is_not_entitled():
    make_entry(FEE, audience=make_audience("fraud", groups=["fraud"]))
    policy = active_policy(make_knowledge_base())
    activate(new_version(policy, by=None, reveal_not_entitled=True))

    answer = decided("How much does a replacement card cost?")

    assert answer.shown_reason == "not_entitled"
    assert answer.text == refusal_text(Reason.NOT_ENTITLED, "en")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"confidence": 0.3, "state": "in_review"}, "unverified_only"),
        ({"valid_until": "yesterday"}, "expired_only"),
    ],
)
def test_expired_and_unverified_knowledge_are_reasons_of_their_own(fields, reason):
    if "valid_until" in fields:
        fields = {"valid_until": timezone.now() - timedelta(days=1)}
    make_entry(FEE, **fields)

    assert decided("How much does a replacement card cost?").reason == reason


HAND_WRITTEN = {"state": "in_review", "confidence": 0.8, "question": FEE_QUESTION}


def test_what_nobody_verified_answers_nothing_however_sure_and_near_it_is():
    make_entry(FEE, **HAND_WRITTEN)

    answer = decided(FEE_QUESTION, asker=make_user())

    assert (answer.outcome, answer.shown_reason) == ("refused", "unverified_only")
    assert answer.text == refusal_text(Reason.UNVERIFIED_ONLY, "en")
    assert not answer.evidence.exists()


def test_a_policy_may_let_sure_enough_unverified_entries_answer():
    make_entry(FEE, **HAND_WRITTEN)
    policy = active_policy(make_knowledge_base())
    activate(new_version(policy, by=None, unverified_floor=0.75))

    model = GivenModel(make_generation("It costs 12 euros.", cited=(1,)))
    answer = decided(FEE_QUESTION, model=lambda: model)

    assert (answer.outcome, answer.text) == ("answered", "It costs 12 euros.")
    assert not answer.evidence.get(role="cited").is_verified


def test_retiring_and_editing_change_what_is_answered_at_once():
    entry = make_entry("Open Cards, Block.", question="How do I block a card?")
    question = "How do I block a card?"
    assert decided(question).text == "Open Cards, Block."

    edit_entry(entry_id=entry.pk, author=make_curator(), may_verify=True, text="Call us.")  # fmt: skip
    assert decided(question, model=lambda: GivenModel(make_generation("Call us."))).text == "Call us."  # fmt: skip

    retire_entry(entry_id=entry.pk, by=make_curator())
    assert decided(question).reason == "nothing_known"


def test_the_anonymous_see_nothing():
    make_entry(FEE)

    answer = decided("How much does a replacement card cost?", asker=AnonymousUser())

    assert answer.asker is None
    assert answer.shown_reason == "nothing_known"


def test_a_question_whose_model_is_down_is_kept_and_can_be_decided_later():
    make_entry(FEE)
    answer = keep_question("How much does a replacement card cost?", asker=make_user(), channel="api")  # fmt: skip

    with pytest.raises(LanguageModelUnavailableError):
        list(decide(answer, language_model=lambda: DownModel(make_generation())))

    kept = Answer.objects.get(pk=answer.pk)
    assert (kept.outcome, kept.error) == ("failed", "The server is down. Try again later.")  # fmt: skip
    list(decide(kept, language_model=lambda: GivenModel(make_generation("12 euros."))))
    kept.refresh_from_db()
    assert (kept.outcome, kept.text, kept.error) == ("answered", "12 euros.", "")


class BrokenModel(GivenModel):
    def generate(self, prompt, capture=NO_CAPTURE):
        raise ZeroDivisionError("a defect of ours")


def test_what_breaks_leaves_a_failed_question_that_can_be_decided_later():
    make_entry(FEE)
    answer = keep_question("How much does a replacement card cost?", asker=make_user(), channel="api")  # fmt: skip

    with pytest.raises(ZeroDivisionError):
        list(decide(answer, language_model=lambda: BrokenModel(make_generation())))

    kept = Answer.objects.get(pk=answer.pk)
    assert (kept.outcome, bool(kept.error)) == ("failed", True)
    list(decide(kept, language_model=lambda: GivenModel(make_generation("12 euros."))))
    assert Answer.objects.get(pk=answer.pk).text == "12 euros."


class ErasingModel(GivenModel):
    """Somebody erases the entry while the model is thinking."""

    def generate(self, prompt, capture=NO_CAPTURE):
        erase_entry(entry_id=prompt.evidence[0].entry_id)
        return super().generate(prompt, capture)


@pytest.mark.django_db(transaction=True)
def test_an_outcome_that_cannot_be_stored_leaves_a_failed_question():
    make_entry(FEE)
    answer = keep_question("How much does a replacement card cost?", asker=make_user(), channel="api")  # fmt: skip

    with pytest.raises(IntegrityError):
        list(decide(answer, language_model=lambda: ErasingModel(make_generation("12 euros."))))  # fmt: skip

    kept = Answer.objects.get(pk=answer.pk)
    assert (kept.outcome, kept.text, kept.evidence.count()) == ("failed", "", 0)
    list(decide(kept, language_model=never_load))
    assert Answer.objects.get(pk=answer.pk).reason == "nothing_known"


@pytest.mark.django_db(transaction=True)
def test_a_refusal_that_cannot_be_stored_says_what_broke():
    near = make_entry(FEE)
    answer = new_question("Do you sell umbrellas and cards?", asker=make_user(), channel="api")  # fmt: skip

    stages = decide(answer, language_model=never_load)
    while not isinstance(next(stages), VerbatimMatch):
        pass
    erase_entry(entry_id=near.pk)

    with pytest.raises(IntegrityError):
        list(stages)

    assert not Answer.objects.exists()


class WatchingModel(GivenModel):
    def generate(self, prompt, capture=NO_CAPTURE):
        assert connection.connection is None
        return super().generate(prompt, capture)


@pytest.mark.django_db(transaction=True)
def test_no_database_connection_is_held_while_the_language_model_thinks():
    make_entry(FEE)

    answer = decided("How much does a replacement card cost?", model=lambda: WatchingModel(make_generation("12 euros.")))  # fmt: skip

    assert (answer.outcome, answer.text) == ("answered", "12 euros.")


def test_a_caller_who_hangs_up_leaves_no_question_pending():
    make_entry(FEE)
    answer = keep_question("How much does a replacement card cost?", asker=make_user(), channel="api")  # fmt: skip
    stages = decide(answer, language_model=lambda: GivenModel(make_generation()))
    next(stages)

    stages.close()

    assert Answer.objects.get(pk=answer.pk).outcome == "failed"


def test_beyond_the_queue_before_the_model_only_who_needs_it_is_sent_away(settings):
    settings.LANGUAGE_QUEUE = 1
    make_entry(FEE)
    waiting = keep_question("How much does a replacement card cost?", asker=make_user(), channel="api")  # fmt: skip
    stages = decide(waiting, language_model=lambda: GivenModel(make_generation("12 euros.")))  # fmt: skip
    while not isinstance(next(stages), Generation):
        pass

    with pytest.raises(LanguageModelBusyError, match="1 questions wait"):
        decided("What does a replacement card cost?")
    waits = {LanguageModelBusyError("Later.").retry_seconds for _ in range(50)}
    assert min(waits) >= 10
    assert len(waits) > 5

    refused = Answer.objects.exclude(pk=waiting.pk).get()
    assert (refused.outcome, "NESCIO_LANGUAGE_QUEUE" in refused.error) == ("failed", True)  # fmt: skip
    assert decided("Who won the cup in 1974?").outcome == "refused"
    list(stages)
    list(decide(refused, language_model=lambda: GivenModel(make_generation("12 euros."))))  # fmt: skip
    assert Answer.objects.filter(outcome="answered").count() == 2


def test_a_model_that_breaks_gives_its_place_back(settings):
    settings.LANGUAGE_QUEUE = 1
    make_entry(FEE)

    for _ in range(2):
        with pytest.raises(LanguageModelUnavailableError) as raised:
            decided("How much does a replacement card cost?", model=lambda: DownModel(make_generation()))  # fmt: skip
        assert raised.type is LanguageModelUnavailableError


def test_ask_keeps_the_question_before_the_model_is_asked(settings):
    make_entry(FEE)
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:9/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0

    with pytest.raises(LanguageModelUnavailableError):
        ask("How much does a replacement card cost?", asker=make_user(), channel="api")

    assert Answer.objects.get().outcome == "failed"


def test_a_decided_question_is_never_decided_again():
    make_entry(FEE)
    answer = keep_question("Why is the sky blue?", asker=make_user(), channel="api")
    stale_copy = Answer.objects.get(pk=answer.pk)
    list(decide(answer))

    with pytest.raises(AnswerDecidedError):
        list(decide(answer))
    with pytest.raises(AnswerDecidedError):
        list(decide(stale_copy))

    assert Answer.objects.get().evidence.count() == answer.evidence.count()


def test_the_outcome_is_stored_before_it_is_yielded():
    make_entry(FEE)
    answer = keep_question("Why is the sky blue?", asker=make_user(), channel="api")

    for value in decide(answer):
        stored = Answer.objects.get(pk=answer.pk).outcome
        assert stored == ("refused" if isinstance(value, Outcome) else "pending")
    assert stage_name(value) == "outcome"


@pytest.mark.parametrize(
    "text",
    ["", "   \n\t", "?!", "\u200b\u202e", "a\x00b", "half \ud83d a pair", "x" * 2_001],
)
def test_what_is_no_question_is_refused_and_nothing_is_kept(text):
    make_entry(FEE)

    with pytest.raises(InvalidQuestionError) as caught:
        keep_question(text, asker=make_user(), channel="api")

    assert caught.value.status == 400
    assert not Answer.objects.exists()


def test_a_language_that_is_not_known_is_refused():
    make_entry(FEE)

    with pytest.raises(InvalidQuestionError, match="'fr'"):
        keep_question("Why?", asker=make_user(), channel="api", language="fr")


def test_the_oldest_knowledge_base_is_asked_unless_one_is_named():
    with pytest.raises(KnowledgeBaseNotFoundError):
        find_knowledge_base()
    first, second = make_knowledge_base("first"), make_knowledge_base("second")

    assert find_knowledge_base() == first
    assert find_knowledge_base("second") == second
    with pytest.raises(KnowledgeBaseNotFoundError, match="first, second"):
        find_knowledge_base("third")


@pytest.mark.parametrize("asks", [True, False])
def test_another_default_may_be_set_or_none_of_several(settings, asks):
    def found() -> str:
        return find_knowledge_base(asker=make_user() if asks else None).slug

    def defaults() -> set[str]:
        rows = rest_client(make_user()).get("/api/v1/knowledge-bases").json()
        return {row["slug"] for row in rows["results"] if row["is_default"]}

    make_knowledge_base("first")
    settings.DEFAULT_KNOWLEDGE_BASE = "none"
    assert (found(), defaults()) == ("first", {"first"})

    make_knowledge_base("second")
    with pytest.raises(KnowledgeBaseNotFoundError, match="available: first, second"):
        found()
    assert defaults() == set()

    settings.DEFAULT_KNOWLEDGE_BASE = "second"
    assert (found(), defaults()) == ("second", {"second"})


def test_a_refusal_speaks_the_asked_language_and_the_knowledge_bases_own_words():
    make_entry(FEE)
    knowledge_base = make_knowledge_base()
    own = RefusalWording.objects.create
    question = "Warum ist der Himmel blau?"

    assert decided(question, language="de").text == refusal_text(Reason.NOTHING_KNOWN, "de")  # fmt: skip
    own(knowledge_base=knowledge_base, language="de", reason="", text="Leider nein.")
    assert decided(question, language="de").text == "Leider nein."
    own(knowledge_base=knowledge_base, language="de", reason="nothing_known", text="Nichts da.")  # fmt: skip
    assert decided(question, language="de").text == "Nichts da."
    assert decided(question).text == "Nichts da."
    assert decided(question, language="en").text == refusal_text(Reason.NOTHING_KNOWN, "en")  # fmt: skip
    own(knowledge_base=knowledge_base, language="en", reason="", text="Ask Berta.")
    RefusalWording.objects.filter(language="de").delete()
    assert decided(question).text == "Ask Berta."


@pytest.mark.parametrize("language", ["en", "de", "xx"])
@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_words_that_say_what_to_do(reason, language):
    text = refusal_text(reason, language)

    assert len(text) > 60
    assert text.endswith(".")
    assert reason.value not in text


def test_a_long_message_is_asked_by_its_question_and_kept_as_it_was_sent():
    make_entry(FEE)
    letter = f"Dear team,\n{'it has been a long and stormy year for all of us here. ' * 4}\nWhat is the annual fee of a Gold card?\nMany thanks"

    answer = keep_question(letter, asker=make_user(), channel="api")

    assert answer.question == "What is the annual fee of a Gold card?"
    assert answer.typed == " ".join(letter.split())
