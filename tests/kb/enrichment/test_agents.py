"""The three agents, with a model that says what it is told to."""

import numpy as np

from kb.enrichment.agents import SeededQuestion, answer, generate_questions
from tests.kb.enrichment.scripted_writer import CAPITALS, ScriptedWriter, capitals

PERU, KENYA, *_ = CAPITALS


def encode(texts):
    """Give every text a direction of its own."""
    return np.eye(64, dtype=np.float32)[[hash(text) % 64 for text in texts]]


def test_questions_are_made_of_seeds_without_repetition():
    writer = ScriptedWriter(capitals)

    asked, counts = generate_questions(
        writer, ["About Peru", "Of Peru"], per_seed=2, seed=0
    )

    assert [one.question for one in asked] == [PERU]
    assert asked[0].seed == "About Peru"
    # Asked again once for what it repeated, and then no more: nothing new came.
    assert counts == {"repeated": 6}


def test_the_agent_is_asked_again_until_there_are_as_many_questions_as_wanted():
    turns = iter(range(100))

    def reply(form, about):
        # Every question twice before another one.
        return {"question": f"What is rule {next(turns) // 2}?"}

    asked, counts = generate_questions(
        ScriptedWriter(reply), ["About rules"], per_seed=4, seed=0
    )

    assert [one.question for one in asked] == [f"What is rule {n}?" for n in range(4)]
    # Four at first, of which two were new, then two, then one.
    assert counts["repeated"] == 3


def test_a_seed_is_its_own_question_where_none_are_made():
    writer = ScriptedWriter(capitals)

    asked, _ = generate_questions(writer, [PERU], per_seed=0, seed=0)

    assert asked == (SeededQuestion(PERU, PERU),)
    assert writer.asked == []


def test_an_answer_becomes_one_sentence_with_its_signals():
    made = answer(
        ScriptedWriter(capitals), encode, [SeededQuestion(PERU, PERU)], seed=0
    )

    (draft,) = made.made
    assert (draft.answer, draft.sentence) == ("Lima", "The capital of Peru is Lima.")
    assert draft.signals.stated == 0.9
    assert draft.signals.agreement == 1.0
    assert round(draft.signals.likelihood or 0, 3) == 0.905


def test_what_can_not_be_read_is_counted_and_left_out():
    asked = [
        SeededQuestion("", "Who?"),
        SeededQuestion(PERU, PERU),
        SeededQuestion("", "Why?"),
    ]

    made = answer(ScriptedWriter(capitals), encode, asked, seed=0)

    assert [draft.question for draft in made.made] == [PERU]
    assert made.counts["unreadable_answer"] == 2


def test_an_unfaithful_sentence_gives_way_to_question_and_answer():
    def reply(form, about):
        said = dict(capitals(form, about))
        return {"sentence": "Lima is not Peru."} if form == "sentence" else said

    made = answer(ScriptedWriter(reply), encode, [SeededQuestion(PERU, PERU)], seed=0)

    (draft,) = made.made
    assert (draft.sentence, draft.said) == ("", f"{PERU} Lima")
    assert made.counts["plain_sentence"] == 1


def test_a_model_that_changes_its_mind_does_not_agree_with_itself():
    turns = iter(range(100))

    def reply(form, about):
        said = dict(capitals(form, about))
        return said | {"answer": f"Number {next(turns)}"} if "answer" in said else said

    made = answer(ScriptedWriter(reply), encode, [SeededQuestion(PERU, PERU)], seed=0)

    assert made.made[0].signals.agreement == 0
