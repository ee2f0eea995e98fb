"""The verifier's gate: a verified entry that answers is shown whole, what none answers is refused."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from kb.text.words import sentence_spans
from kb.types import Contradiction, Evidence, Excluded, Exclusion
from qa.pipeline.choice import chance_of, chance_of_any
from qa.pipeline.entry_gate import telling_sentence, weigh
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.language_model import NoProbes
from qa.pipeline.policy import Policy
from qa.pipeline.replay import Played, flat, replay
from qa.pipeline.values import Outcome, Question
from qa.pipeline.weighing import (
    BEHIND,
    FAR_BEHIND,
    MAX_LOST,
    MIN_READ,
    ROW,
    Passage,
    less_similar,
    log_odds,
    may_be_likely,
    weighed_together,
)
from tests.qa.pipeline.values import (
    SCORER,
    GivenModel,
    GivenRetriever,
    GivenScorer,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
    never_load,
    run_pipeline,
)

POLICY = {
    "min_entry_answer": 0.8, "min_answerability": 0.3, "alpha": 1.2,
    "min_sentence_support": 0.0,  # the scorer knows questions only
}  # fmt: skip


def outcome_of(
    scores: Sequence[float],
    *pieces: Any,
    question: str = "How much is a new card?",
    opposed: Sequence[Contradiction] = (),
    **changes: Any,
) -> Outcome:
    """Ask with these probabilities; a model answers where it is asked."""
    *_, outcome = run_pipeline(
        question,
        retriever=GivenRetriever(make_retrieval(*pieces), opposed=opposed),
        language_model=lambda: GivenModel(make_generation()),
        probes=lambda _model: NoProbes(),
        verifier=lambda: GivenScorer(scores),
        policy=make_policy(**POLICY | changes),
    )
    assert isinstance(outcome, Outcome)
    return outcome


ONE = make_evidence("A replacement card costs 12 euros.", distance=0.9, entry_id=1)
TWO = make_evidence("A lost card is blocked at once.", distance=0.7, entry_id=2)
THREE = make_evidence("A card is valid for 3 years.", distance=0.8, entry_id=4)
UNSURE = make_evidence("A new card costs 9 euros.", confidence=0.8, entry_id=3)


def test_a_verified_entry_that_answers_is_the_answer_word_for_word():
    outcome = outcome_of([0.9, 0.1], ONE, TWO)
    assert outcome.answered
    assert outcome.gate is Gate.ENTRY
    assert outcome.answer == ONE.text
    assert [citation.entry_id for citation in outcome.citations] == [1]
    assert outcome.generation is None
    assert outcome.probes == SCORER


@pytest.mark.parametrize(
    ("scores", "question", "count"),
    [
        ([0.6, 0.55, 0.01], "How much is a card?", 2),
        ([0.6, 0.55, 0.5], "How much is a card?", 2),  # the third is not verified
        ([0.6, 0.55, 0.5], "Card?", 2),  # of one word nothing answers, but is meant
        ([0.6, 0.05, 0.5], "How much is a card?", None),
        ([0.2, 0.2, 0.01], "How much is a card?", None),  # likelier that none answers
    ],
)
def test_it_is_counted_how_many_verified_entries_may_be_meant(scores, question, count):
    outcome = outcome_of(scores, ONE, TWO, UNSURE, question=question)
    found = {each.name: each.value for each in outcome.signals}
    assert found.get("competing_entries") == count


def test_which_of_three_is_meant_a_model_is_asked_only_where_it_is_trusted_more():
    scores, pieces = [0.7, 0.7, 0.7], (ONE, TWO, THREE)

    away = outcome_of(scores, *pieces, min_answerability=0.8)
    asked = outcome_of(scores, *pieces, min_answerability=0.7)
    of_two = outcome_of(
        [0.75, 0.75, 0.01], *pieces, min_answerability=0.8, min_entry_answer=0.8
    )

    assert (away.gate, away.reason) == (Gate.ENTRY, Reason.NOT_ANSWERED)
    assert away.generation is None
    assert {s.name: s.value for s in away.signals}["competing_entries"] == 3
    assert asked.generation is not None
    assert of_two.answered


def test_entries_that_say_the_same_do_not_compete():
    same = make_evidence(ONE.text, entry_id=5)
    outcome = outcome_of([0.6, 0.59], ONE, same, question="How much is a card?")
    assert "competing_entries" not in {each.name for each in outcome.signals}


def test_no_language_model_is_loaded_for_it():
    *_, outcome = run_pipeline(
        "How much is a new card?",
        retriever=GivenRetriever(make_retrieval(ONE)),
        language_model=never_load,
        probes=lambda _model: NoProbes(),
        verifier=lambda: GivenScorer([0.95]),
        policy=make_policy(**POLICY),
    )
    assert isinstance(outcome, Outcome)
    assert outcome.answered


def test_what_no_entry_answers_is_refused_before_a_model_is_asked():
    outcome = outcome_of([0.1, 0.2], ONE, TWO)
    assert (outcome.gate, outcome.reason) == (Gate.ENTRY, Reason.NOT_ANSWERED)
    assert outcome.generation is None
    assert [piece.entry_id for piece in outcome.near_misses] == [2, 1]


@pytest.mark.parametrize(
    ("cause", "reveals", "reason", "shown"),
    [
        (Exclusion.EXPIRED, False, Reason.EXPIRED_ONLY, Reason.EXPIRED_ONLY),
        (Exclusion.NOT_ENTITLED, False, Reason.NOT_ENTITLED, Reason.NOT_ANSWERED),
        (Exclusion.NOT_ENTITLED, True, Reason.NOT_ENTITLED, Reason.NOT_ENTITLED),
    ],
)
def test_what_may_not_be_evidence_is_the_reason_where_it_is_near(
    cause, reveals, reason, shown
):
    def refused(distance: float) -> Outcome:
        *_, outcome = run_pipeline(
            "How much is a new card?",
            retriever=GivenRetriever(
                make_retrieval(ONE), hidden=[Excluded(cause, distance, 1.0)]
            ),
            language_model=never_load,
            probes=lambda _model: NoProbes(),
            verifier=lambda: GivenScorer([0.1]),
            policy=make_policy(**POLICY, reveal_not_entitled=reveals),
        )
        assert isinstance(outcome, Outcome)
        return outcome

    near, far = refused(0.5), refused(1.0)
    assert (near.gate, near.reason, near.shown_reason) == (Gate.ENTRY, reason, shown)
    assert far.reason is far.shown_reason is Reason.NOT_ANSWERED


def test_in_between_a_language_model_is_asked_with_the_likeliest_entry_first():
    outcome = outcome_of([0.4, 0.6], ONE, TWO)
    assert outcome.generation is not None
    assert [piece.entry_id for piece in outcome.evidence] == [2, 1]


def test_an_unverified_entry_never_answers_by_itself():
    outcome = outcome_of([0.99, 0.4], UNSURE, ONE)
    assert outcome.gate is not Gate.ENTRY
    assert outcome.generation is not None


def test_what_hard_refusal_keeps_out_never_answers():
    far = replace(ONE, distance=1.3)
    outcome = outcome_of([0.99, 0.5], far, TWO)
    assert outcome.gate is not Gate.ENTRY


def test_an_opposite_is_no_answer():
    lower = make_evidence(
        "A limit can be lowered in the app before noon.", distance=0.5
    )
    *_, outcome = run_pipeline(
        "Can I raise my limit after noon?",
        retriever=GivenRetriever(make_retrieval(lower)),
        language_model=never_load,
        probes=lambda _model: NoProbes(),
        verifier=lambda: GivenScorer([0.99]),
        policy=make_policy(**POLICY),
    )
    assert isinstance(outcome, Outcome)
    assert outcome.reason is Reason.NOT_ANSWERED


def test_a_question_that_became_an_entry_is_no_answer():
    asked = "How do I open an account?"

    heading = make_evidence(asked, distance=0.0, entry_id=7)
    outcome = outcome_of([0.99, 0.9], heading, ONE, question=asked)

    assert [citation.entry_id for citation in outcome.citations] == [1]


def test_a_single_word_asks_nothing_that_an_entry_answers_by_itself():
    *_, outcome = run_pipeline(
        "PIN?",
        retriever=GivenRetriever(make_retrieval(ONE)),
        language_model=lambda: GivenModel(make_generation()),
        probes=lambda _model: NoProbes(),
        verifier=lambda: GivenScorer([0.99]),
        policy=make_policy(**POLICY),
    )
    assert isinstance(outcome, Outcome)
    assert outcome.gate is not Gate.ENTRY


def ask_of(question: str, *pieces: Evidence) -> Outcome:
    *_, outcome = run_pipeline(
        question,
        retriever=GivenRetriever(make_retrieval(*pieces)),
        language_model=lambda: GivenModel(make_generation()),
        probes=lambda _model: NoProbes(),
        verifier=lambda: GivenScorer([0.99] * len(pieces)),
        policy=make_policy(**POLICY),
    )
    assert isinstance(outcome, Outcome)
    return outcome


def test_a_word_behind_what_asks_for_it_is_a_question():
    assert ask_of("how to appeal", ONE).gate is Gate.ENTRY
    assert ask_of("appeal where", ONE).gate is Gate.ENTRY
    assert ask_of("fees/appeal?", ONE).gate is Gate.ENTRY
    assert ask_of("How much is it for two?", ONE).gate is Gate.ENTRY
    for single in ("appeal", "appeal ?", "and you?"):
        assert ask_of(single, ONE).gate is not Gate.ENTRY


def test_what_an_expert_said_it_does_not_answer_is_not_shown_for_it():
    denied = replace(ONE, denied=("What does the card cost in Peru?",))

    assert ask_of("what does the card cost in Peru", ONE).answered
    assert not ask_of("what does the card cost in Peru", denied).answered
    assert ask_of("what does the card cost in Chile", denied).answered


def test_another_year_is_no_answer():
    cup = make_evidence("West Germany won the cup in 1974.", distance=0.5)

    assert ask_of("Who won the cup in 1974?", cup).answered
    assert not ask_of("Who won the cup in 1975?", cup).answered


def test_an_entry_without_the_name_that_is_asked_for_is_far_less_likely():
    north = make_evidence("Dogs sail free on the Norna.", distance=0.5, entry_id=1)
    south = make_evidence("Dogs cost 4 euros on the Solveig.", distance=0.5, entry_id=2)
    any_ship = make_evidence("Cats cost 2 euros.", distance=0.5, entry_id=3)
    pieces = [north, south, any_ship]

    def found(text: str, **changes: str) -> dict[int, float]:
        question = replace(Question(text), **changes)
        weighed = weigh(question, pieces, GivenScorer([0.9] * 3), Policy())
        return {piece.entry_id: odds for odds, piece in weighed.pieces}

    usual = found("What do dogs cost?")
    asked = found("What do dogs cost on the Norna?")
    assert asked[1] == usual[1]
    assert asked[2] < usual[2] - 2
    assert asked[3] < usual[3] - 2
    # In German every noun is written so.
    assert found("What do dogs cost on the Norna?", language="de") == usual


def test_the_entries_most_similar_by_tokens_are_weighed_and_the_nearest_one():
    class Similar(GivenScorer):
        def likeness(self, question: str, texts: Sequence[object]) -> np.ndarray:
            self.asked.append((question, texts))
            return np.arange(len(texts)) / 100

    policy = Policy(top_k=2, verification=True)
    pieces = [
        make_evidence(f"Card {at} costs {at} euros.", distance=0.5, entry_id=at)
        for at in range(policy.retrieved)
    ]
    pieces[3] = replace(pieces[3], distance=0.4)
    asked = Question("What does the card cost")
    by = Similar([0.9] * policy.weighed)

    weighed = weigh(asked, pieces, by, policy)

    assert [piece.entry_id for _, piece in weighed.pieces] == [19, 18, 17, 3]
    named = [*pieces[:5], replace(pieces[5], text_rank=1), *pieces[6:]]
    kept = [piece.entry_id for _, piece in weigh(asked, named, by, policy).pieces]
    assert kept == [19, 18, 5, 3]
    assert by.asked[0][0] == "What does the card cost?"
    odds = [odds for odds, _ in weighed.pieces]
    similar = np.array([0.19, 0.18, 0.17, 0.03])
    assert np.subtract(odds[0], odds) == pytest.approx(less_similar(similar))
    assert less_similar(similar)[0] == 0.0
    assert weigh(asked, [], by, policy).answerability is None


def test_a_row_of_a_table_is_less_likely_than_a_text():
    row = "Fees:\nItem | Fee\n--- | ---\nSecond card | 12 euros"
    table = f"{row}\nThird card | 14 euros"

    def odds(text: str) -> float:
        passage = Passage("", "", "", text)
        return log_odds("What is it?", [passage], GivenScorer([0.9]))[0]

    assert odds(row) == pytest.approx(odds(table) - ROW)
    assert odds(table) == odds("A second card costs 12 euros.")


def test_in_shadow_it_decides_nothing_and_is_measured():
    outcome = outcome_of([0.1, 0.05], ONE, TWO, verification=False)
    assert outcome.answered
    assert outcome.gate is None
    odds = 0.1 / 0.9 + 0.05 / 0.95
    signals = flat([vars_of(signal) for signal in outcome.signals])
    assert signals["answerability"] == pytest.approx(odds / (1 + odds))


def test_a_threshold_above_1_shows_no_entry_by_itself():
    assert outcome_of([1.0], ONE, min_entry_answer=1.01).gate is not Gate.ENTRY


def test_the_same_words_as_a_stored_question_need_no_verifier():
    known = make_evidence("12 euros.", question="How much is a new card?", distance=0.0)
    outcome = outcome_of([0.0], known)
    assert outcome.gate is Gate.VERBATIM


@given(
    scores=st.lists(st.floats(0, 1), min_size=2, max_size=2),
    low=st.floats(0, 1),
    high=st.floats(0, 1.01),
)
def test_stored_signals_decide_again_as_the_gate_did(scores, low, high):
    changes = {"min_answerability": low, "min_entry_answer": high}
    outcome = outcome_of(scores, ONE, TWO, **changes)
    stored = flat([vars_of(signal) for signal in outcome.signals])
    played = replay(stored, outcome.policy)
    assert played.outcome is (Played.ANSWERED if outcome.answered else Played.REFUSED)
    assert played.gate == (None if outcome.answered else outcome.gate)


@given(scores=st.lists(st.floats(0, 1), min_size=2, max_size=2), limit=st.floats(0, 1))
def test_a_higher_threshold_shows_no_entry_more(scores, limit):
    strict = outcome_of(scores, ONE, TWO, min_entry_answer=min(1.01, limit + 0.1))
    loose = outcome_of(scores, ONE, TWO, min_entry_answer=limit)
    assert strict.gate is not Gate.ENTRY or loose.gate is Gate.ENTRY


def vars_of(signal: Any) -> dict[str, Any]:
    return {"name": signal.name, "value": signal.value}


def test_unverified_entries_that_seem_likelier_do_not_keep_the_answer_out():
    others = [replace(UNSURE, entry_id=number) for number in range(10, 14)]
    retriever = GivenRetriever(make_retrieval(*others, ONE, TWO))

    *_, outcome = run_pipeline(
        "How much is a new card?",
        retriever=retriever,
        language_model=never_load,
        probes=lambda _model: NoProbes(),
        verifier=lambda: GivenScorer([0.95, 0.95, 0.95, 0.95, 0.9, 0.1]),
        policy=make_policy(**POLICY, top_k=3),
    )

    assert isinstance(outcome, Outcome)
    assert outcome.answer == ONE.text
    assert any(ONE.entry_id in looked for looked in retriever.looked_up)


def test_an_entry_is_worth_less_beside_another_that_fits_as_well():
    def chances_of(*scores: float) -> list[float]:
        pieces = (ONE, TWO)[: len(scores)]
        weighed = weigh(Question("How much?"), pieces, GivenScorer(scores), Policy())
        odds = [each for each, _ in weighed.pieces]
        return [
            chance_of(odds, [piece.text for _, piece in weighed.pieces], [at])
            for at in range(len(odds))
        ]

    # 9 to 1 against none, and no other comes near.
    assert chances_of(0.9) == pytest.approx([with_lead(9, math.inf)])
    # The other, with none 10 to 1, counts by its root.
    one = with_lead(9 / math.sqrt(10), 0)
    assert chances_of(0.9, 0.9) == pytest.approx([one, one])


def with_lead(odds: float, lead: float) -> float:
    """Return the probability of something that is so far ahead of the next."""
    odds *= math.exp(0.2 * (min(lead, 4.0) - 2.5))
    return odds / (1 + odds)


def test_an_entry_that_stands_out_is_likelier_than_one_that_others_come_near():
    texts = ["It costs 9 euros.", "It is blue.", "It is sent by post."]
    near, far, farther, farthest = (
        chance_of([2.0, 2.0 - lead, -60.0], texts, [0]) for lead in (1.0, 3.0, 4.0, 5.0)
    )
    assert near < far < farther
    # As far ahead as counts; what is left is that the other is less likely itself.
    assert farthest == pytest.approx(farther, abs=0.02)


def test_entries_that_say_the_same_in_the_same_words_count_together():
    texts = (
        "A new card costs 9 euros.",
        "A new card costs 9 Euros",
        "A new card costs 19 euros.",
        "A new card does not cost 9 euros.",
    )
    odds = [1.0, 1.0, 1.0, 1.0]
    both = with_lead(2 * math.e / math.sqrt(2 * math.e + 1), math.log(2))
    one = with_lead(math.e / math.sqrt(3 * math.e + 1), 0)
    chances = [chance_of(odds, texts, [at]) for at in range(4)]
    assert chances == pytest.approx([both, both, one, one])
    assert chance_of(odds, texts, [0, 1]) == pytest.approx(both)


@given(st.lists(st.floats(-60, 60), min_size=1, max_size=6), st.data())
def test_what_is_shown_is_likelier_with_more_of_it_and_less_with_rivals(odds, data):
    texts = [f"It costs {at} euros." for at in range(len(odds))]
    places = st.sampled_from(range(len(odds)))
    shown = data.draw(st.lists(places, min_size=1, unique=True))
    chance = chance_of(odds, texts, shown)
    every = with_lead(math.exp(logsumexp(odds)), math.inf)
    assert 0 <= chance <= every + 1e-9
    assert chance_of(odds, texts, range(len(odds))) == pytest.approx(every)
    more = sorted({*shown, data.draw(places)})
    assert chance_of(odds, texts, more) >= chance - 1e-12
    rival = [*odds, data.draw(st.floats(-60, 60))]
    assert chance_of(rival, [*texts, "It costs a lot."], shown) <= chance + 1e-12


def test_the_three_likeliest_are_read_together_with_the_question():
    class Joint(GivenScorer):
        def joint_log_odds(
            self, _question: str, texts: Sequence[Passage]
        ) -> list[float]:
            return [4.0 if "nine" in text.text else -4.0 for text in texts]

    passages = [
        Passage("", "", "", text) for text in ("ten", "nine", "eight", "seven nine")
    ]
    scores = (0.9, 0.8, 0.7, 0.6)
    found = log_odds("How much?", passages, Joint(scores, reads_jointly=True))
    apart = [math.log(each / (1 - each)) for each in scores]
    # The last one was not read, and is taken to be behind.
    read = zip(apart, (-4, 4, -4), strict=False)
    expected = [*((one + other) / 2 for one, other in read), apart[3] - 1]
    assert found == pytest.approx(expected)


READINGS = st.floats(-20, 20)


@given(READINGS, READINGS, READINGS | st.just(math.nan), st.floats(0, 20))
def test_what_was_read_together_counts_by_half_and_a_sentence_alone_drags_little(
    apart, whole, sentence, more
):
    def weighed(apart: float, *joint: float) -> float:
        return float(weighed_together(np.array(apart), np.array(joint)))

    found = weighed(apart, whole, sentence)
    together = whole if math.isnan(sentence) else max(sentence, whole - MAX_LOST)
    if not math.isnan(sentence) and not may_be_likely(np.array(apart), np.array(whole)):
        together = whole - MAX_LOST
    assert found == pytest.approx(apart / 2 + (whole + together) / 4)
    assert weighed(apart, whole + more, sentence) >= found
    assert weighed(apart + more, whole, sentence) >= found
    assert weighed(apart, math.nan, math.nan) == apart - BEHIND


@pytest.mark.parametrize(
    ("question", "jointly"), [("", 1.0), ("How much is it?", -4.0)]
)
def test_the_likeliest_sentence_of_a_text_is_read_together_with_the_question_too(
    question, jointly
):
    class Joint(GivenScorer):
        def log_odds(self, _question: str, texts: Sequence[Passage]) -> list[float]:
            return [
                1.0 if text.text == "It costs nine euros." else 0.0 for text in texts
            ]

        def joint_log_odds(
            self, _question: str, texts: Sequence[Passage]
        ) -> list[float]:
            return [
                6.0 if text.text == "It costs nine euros." else -4.0 for text in texts
            ]

    text = "A letter is sent. It costs nine euros. It comes by post."
    found = log_odds(
        "How much?", [Passage("", "", question, text)], Joint([], reads_jointly=True)
    )

    assert found == [pytest.approx((1.0 + jointly) / 2)]


def test_a_sentence_that_can_no_longer_make_an_entry_likely_is_not_read():
    read: list[str] = []

    class Joint(GivenScorer):
        def joint_log_odds(
            self, _question: str, texts: Sequence[Passage]
        ) -> list[float]:
            read.extend(text.text for text in texts)
            return [-12.0 if "hopeless" in text.text else 2.0 for text in texts]

    texts = ["A hopeless one. It is short.", "It costs nine euros. It comes by post."]
    passages = [Passage("", "", "", text) for text in texts]
    found = log_odds("How much?", passages, Joint((0.5, 0.5), reads_jointly=True))
    assert read == [*texts, "It costs nine euros."]
    assert found == pytest.approx([(-12.0 - MAX_LOST / 2) / 2, 1.0])


@pytest.mark.parametrize(
    ("likely", "unlikely"),
    [(0.0, MIN_READ - 0.1), (4.0, 4.0 - FAR_BEHIND - 0.1)],
)
def test_what_seems_unlikely_is_not_read_together_with_the_question(likely, unlikely):
    read: list[Sequence[Passage]] = []

    class Joint(GivenScorer):
        def joint_log_odds(
            self, _question: str, texts: Sequence[Passage]
        ) -> list[float]:
            read.append(texts)
            return [9.0] * len(texts)

    passages = [Passage("", "", "", text) for text in ("ten", "nine")]
    odds = [likely, unlikely]
    scorer = Joint([float(expit(each)) for each in odds], reads_jointly=True)
    found = log_odds("How much?", passages, scorer)
    assert read == [passages[:1]]
    assert found == pytest.approx([(likely + 9.0) / 2, unlikely - BEHIND])


def test_a_slip_of_the_pen_is_read_as_the_word_of_an_entry():
    class Strict(GivenScorer):
        def is_word(self, word: str) -> bool:
            return word in {"employer"}

    scorer = Strict([0.9])
    said = Passage("", "", "How do I get a library card?", "An employee hands it out.")

    log_odds("libary card from my employer?", [said], scorer)

    assert scorer.asked[0][0] == "library card from my employer?"


@pytest.mark.parametrize("end", ["", "?", " ??", ".", "!"])
def test_every_question_is_read_with_its_mark(end):
    scorer = GivenScorer([0.9])

    log_odds(f"how much is it{end}", [Passage("", "", "", "Nine.")], scorer)

    assert scorer.asked[0][0] == "how much is it?"


def test_one_entry_of_many_facts_counts_by_its_best_sentence():
    class Close(GivenScorer):
        def log_odds(self, _question: str, texts: Sequence[Passage]) -> list[float]:
            return [2.0 if "euros" in text.text else 0.0 for text in texts]

    said = make_evidence("It is sent by post. It costs 12 of them. 9 euros come back.")
    weighed = weigh(Question("How much comes back?"), [said], Close([]), Policy())
    assert weighed.answerability == pytest.approx(chance_of_any([2.0]))


def test_two_entries_that_are_nearly_as_likely_are_one_answer():
    outcome = outcome_of([0.9, 0.8, 0.01], ONE, TWO, THREE)
    assert outcome.gate is Gate.ENTRY
    assert outcome.answer == f"{ONE.text} [1]\n\n{TWO.text} [2]"
    assert [citation.entry_id for citation in outcome.citations] == [1, 2]
    assert [piece.entry_id for piece in outcome.evidence] == [1, 2]
    signals = flat([vars_of(signal) for signal in outcome.signals])
    lead = math.log(13 * 99)
    expected = with_lead(13 / math.sqrt(1 + 1 / 99), lead)
    assert signals["entry_answers"] == pytest.approx(expected)


def test_where_three_are_as_likely_none_is_the_answer():
    assert outcome_of([0.9, 0.9, 0.9], ONE, TWO, THREE).gate is not Gate.ENTRY


def test_a_policy_of_one_piece_of_evidence_shows_one_entry():
    outcome = outcome_of([0.9, 0.8], ONE, TWO, top_k=1, min_entry_answer=0.5)
    assert outcome.answer == ONE.text
    assert outcome.evidence == (ONE,)


def test_an_entry_that_says_the_same_is_not_shown_twice():
    again = replace(ONE, entry_id=9)
    outcome = outcome_of([0.9, 0.9], ONE, again)
    assert outcome.answer == ONE.text
    signals = flat([vars_of(signal) for signal in outcome.signals])
    assert signals["entry_answers"] == pytest.approx(with_lead(18, math.inf))


def test_two_entries_that_contradict_each_other_are_no_answer():
    opposed = [Contradiction(7, (1, 2), (ONE.text, TWO.text))]
    outcome = outcome_of([0.9, 0.8], ONE, TWO, opposed=opposed)
    assert outcome.reason is Reason.SOURCES_DISAGREE


STEPS = "Cards are sent by post.\n送料は5ユーロです 🎉!\nIt takes 4 days 👍🏽."


def quote_of(scores: Sequence[float], text: str = STEPS, **changes: Any) -> str:
    """Return what is quoted of an entry whose sentences have these probabilities."""
    scorer = GivenMarks(scores)
    piece = make_evidence(text, distance=0.7, **changes)
    *_, outcome = run_pipeline(
        "How long does a card take?",
        retriever=GivenRetriever(make_retrieval(piece)),
        language_model=never_load,
        probes=lambda _model: NoProbes(),
        verifier=lambda: scorer,
        policy=make_policy(**POLICY),
    )
    assert isinstance(outcome, Outcome)
    assert outcome.answer == text
    return outcome.citations[0].quote


class GivenMarks(GivenScorer):
    """Takes the one entry for the answer, and scores its sentences."""

    def log_odds(self, _question: str, texts: Sequence[Passage]) -> Sequence[float]:
        return [3.0] * len(texts)

    def score(self, question: str, texts: Sequence[object]) -> Sequence[float]:
        assert len(self.scores) == len(texts)
        return super().score(question, texts)


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([0.1, 0.2, 0.9], "It takes 4 days 👍🏽."),
        ([0.1, 0.9, 0.2], "送料は5ユーロです 🎉!"),
        ([0.95, 0.1, 0.1], "Cards are sent by post."),
    ],
)
def test_the_sentence_that_answers_is_quoted_of_an_entry_shown_whole(scores, told):
    assert quote_of(scores) == told


@pytest.mark.parametrize(
    "scores", [[0.1, 0.8, 0.9], [0.1, 0.2, 0.45], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
)
def test_where_no_sentence_stands_out_the_whole_is_quoted(scores):
    assert quote_of(scores) == STEPS


@pytest.mark.parametrize("text", ["One sentence.", "Line. " * 33, "One; two; three"])
def test_one_sentence_and_very_many_are_not_read_again(text):
    assert quote_of([], text) == text


def test_words_that_stand_in_an_earlier_sentence_too_are_not_marked():
    assert quote_of([0.1, 0.9], "A: Call us. Call us.") == "A: Call us. Call us."


@given(
    st.lists(st.sampled_from(["It is 5.", "Ask!", "\n", " ", "是。", "🎉", "A"])),
    st.data(),
)
def test_what_is_marked_is_a_part_of_the_text(parts, data):
    text = "".join(parts)
    piece = make_evidence(text)
    count = len(sentence_spans(text))
    chances = st.lists(st.floats(0, 1), min_size=count, max_size=count)
    scorer = GivenMarks(data.draw(chances))

    told = telling_sentence(Question("What?"), piece, verifier=lambda: scorer)

    assert told in text
    assert told == told.strip()
    assert told != text or not told
