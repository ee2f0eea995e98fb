import threading

import pytest

from probes.language_model import WhiteBoxModel
from qa.inference.configured import load_language_model
from qa.inference.evidence_text import flatten
from qa.inference.grounded import GroundedLanguageModel
from qa.inference.guided import GuidedLanguageModel
from qa.pipeline.language_model import Prompt
from tests.probes import tiny_models
from tests.qa.inference.test_server_reply import HOSTILE
from tests.qa.pipeline.values import make_evidence

pytestmark = pytest.mark.slow

FEES = tuple(
    make_evidence(text, entry_id=number)
    for number, text in enumerate(
        (
            "The Classic card has no annual fee.",
            "The Gold card costs 72 euros a year. It is charged in January.",
            "The Student card is free until the year in which its holder turns 27.",
            "Cash machines outside the euro area charge 3 percent.",
        ),
        start=1,
    )
)


@pytest.fixture(scope="module")
def guided(bundled_model: WhiteBoxModel) -> GuidedLanguageModel:
    return GuidedLanguageModel(bundled_model)


@pytest.mark.parametrize(
    ("question", "number", "words"),
    [
        ("What does the Gold card cost per year?", 2, "72 euros"),
        ("Until what age is the Student card free?", 3, "27"),
        ("How much is the annual fee of the Classic card?", 1, "no annual fee"),
        ("What does it cost to get cash outside the euro area?", 4, "3 percent"),
    ],
)
def test_the_entry_that_answers_is_cited_and_copied(guided, question, number, words):
    generation = guided.generate(Prompt(question, FEES, "en"))

    assert generation.cited == (number,)
    assert words in generation.answer
    assert generation.answer in FEES[number - 1].text
    assert generation.quotes == ((number, generation.answer),)
    assert generation.can_answer
    assert not generation.malformed
    assert generation.log_probability < 0


def test_an_answerable_question_has_a_higher_verdict_than_a_foreign_one(guided):
    known = guided.generate(Prompt("What does the Gold card cost a year?", FEES, "en"))
    foreign = guided.generate(Prompt("How many moons does Jupiter have?", FEES, "en"))

    assert known.verdict_probability > 0.8
    assert foreign.verdict_probability < 0.5
    assert not foreign.can_answer


def test_the_same_fact_twice_does_not_lower_the_verdict_below_half(guided):
    twice = (FEES[1], make_evidence("Gold cards cost 72 euros a year."), *FEES[2:])

    generation = guided.generate(Prompt("What does the Gold card cost?", twice, "en"))

    assert generation.can_answer


@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
def test_any_number_of_pieces_is_answered_from(guided, pieces):
    prompt = Prompt("What is the fee of the Classic card?", FEES[:pieces], "en")

    generation = guided.generate(prompt)

    assert generation.cited == (1,)
    assert 0 <= generation.verdict_probability <= 1


@pytest.mark.parametrize("hostile", [*HOSTILE, "", "\u3002", "\U0001f9ff" * 2_000])
def test_hostile_text_breaks_neither_form_nor_answer(guided, hostile):
    evidence = (make_evidence(f"{hostile} The fee is 5 euros. {hostile}"), *FEES[:2])

    generation = guided.generate(Prompt(f"{hostile} What is it?", evidence, "en"))

    (number,) = generation.cited
    assert generation.answer
    assert generation.answer in evidence[number - 1].text
    assert 0 <= generation.verdict_probability <= 1
    assert generation.raw.count("\nVerdict: ") == 1 + generation.answer.count(
        "\nVerdict: "
    )


def test_a_flattened_question_is_what_the_model_reads(guided):
    plain = guided.generate(Prompt("What does  Gold cost?", FEES, "en"))
    broken = guided.generate(Prompt("What does\n\u200bGold cost?", FEES, "en"))

    assert flatten("What does\n\u200bGold cost?") == "What does  Gold cost?"
    assert broken.verdict_probability == plain.verdict_probability


def test_the_reasoning_is_in_the_questions_language(guided):
    generation = guided.generate(Prompt("Was kostet Gold?", FEES, "de"))

    assert generation.reasoning.startswith("Von 4 Belegen passt Nummer")


def test_questions_at_once_are_answered_as_alone(guided):
    questions = ["What does Gold cost?", "Is the Student card free?", "Cash abroad?"]
    alone = [guided.generate(Prompt(text, FEES, "en")) for text in questions]
    found = {}

    def ask(text):
        found[text] = guided.generate(Prompt(text, FEES, "en"))

    threads = [threading.Thread(target=ask, args=[text]) for text in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for text, expected in zip(questions, alone, strict=True):
        assert found[text].answer == expected.answer
        assert found[text].verdict_probability == expected.verdict_probability


def test_a_question_without_evidence_is_an_error_of_the_caller(guided):
    with pytest.raises(ValueError, match="without evidence"):
        guided.generate(Prompt("What?", (), "en"))


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_the_form_is_filled_in_by_any_family(family):
    # Bytes as tokens: examples and notes need a longer context than 512.
    model = tiny_models.model(family, context_length=4096)
    guided = GuidedLanguageModel(model)

    generation = guided.generate(Prompt("What does Gold cost?", FEES[:2], "en"))

    assert generation.answer in FEES[generation.cited[0] - 1].text
    assert not generation.malformed


def test_the_fingerprint_follows_the_model_and_is_not_the_models_own(guided):
    other = GuidedLanguageModel(tiny_models.model("llama"))

    assert len({guided.fingerprint, other.fingerprint, "0" * 64}) == 3


@pytest.mark.parametrize(
    ("adapter", "form"),
    [("bundled", GroundedLanguageModel), ("none", GuidedLanguageModel)],
)
def test_settings_without_a_server_load_the_bundled_model(settings, adapter, form):
    settings.LANGUAGE_SERVER_URL = ""
    settings.LANGUAGE_MODEL = "bundled"
    settings.LANGUAGE_ADAPTER = adapter

    model = load_language_model()

    assert isinstance(model, form)
    assert load_language_model() is model
