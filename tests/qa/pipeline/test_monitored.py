"""Answering segment by segment: when evidence is looked for, and what is shown."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.types import Contradiction, Evidence, Excluded
from qa.pipeline.gates import Reason
from qa.pipeline.monitored import MAX_ROUNDS, MAX_SEGMENTS, Monitored, answer_monitored
from qa.pipeline.values import Question, Retrieval
from tests.qa.pipeline.monitored_writers import WRITER, GivenWriter, draft
from tests.qa.pipeline.values import make_evidence, make_policy, make_retrieval

ASKED = "Who wrote Frankenstein?"
SHELLEY = make_evidence("Frankenstein is a novel by Mary Shelley.", entry_id=7)


@dataclass
class Shelf:
    """Finds pieces by the whole query; "" is found by any."""

    pieces: Mapping[str, Sequence[Evidence]]
    asked: list[str] = field(default_factory=list)

    def look(self, question: str, *, top_k: int, deep: bool) -> Retrieval:
        self.asked.append(question)
        found = self.pieces.get(question, self.pieces.get("", ()))
        return make_retrieval(*found[:top_k])

    def withheld(self, question: str) -> Sequence[Excluded]:
        return ()

    def contradictions(self, entry_ids: Sequence[int]) -> Sequence[Contradiction]:
        return ()

    def not_compared(self, entry_ids: Sequence[int]) -> Collection[int]:
        return ()


def run(writer: GivenWriter, shelf: Shelf | None = None, **policy) -> Monitored:
    return answer_monitored(
        Question(ASKED),
        writer=writer,
        retriever=shelf or Shelf({}),
        policy=make_policy(**policy),
    )


def test_a_confident_answer_is_given_without_looking():
    shelf = Shelf({})

    found = run(GivenWriter(lambda *_: draft("Mary Shelley wrote it.")), shelf)

    assert found.answer == "Mary Shelley wrote it."
    assert (found.refused, found.is_complete, shelf.asked) == (None, True, [])
    assert not found.is_sourced
    assert found.fingerprint == WRITER
    assert dict(found.signals)["least_token_confidence"] == 1.0


def test_one_new_word_in_doubt_makes_it_look_and_write_again():
    def writes(notes, _kept):
        return draft("Mary Shelley.") if notes else draft("Percy Shelley.", "Percy")

    shelf = Shelf({"": [SHELLEY]})

    found = run(GivenWriter(writes), shelf)

    (segment,) = found.segments
    assert shelf.asked == ["Who wrote Frankenstein? Shelley."]
    assert (segment.text, segment.triggers) == ("Mary Shelley.", ("Percy",))
    assert (segment.evidence, segment.rounds) == ((SHELLEY,), 1)
    assert segment.is_sourced
    assert found.is_sourced
    assert segment.weakest == -1.0
    assert found.refused is None


def test_a_word_of_the_question_or_a_stop_word_in_doubt_makes_it_not_look():
    shelf = Shelf({})

    found = run(
        GivenWriter(lambda *_: draft("It was written by Mary.", "It", "by", "written")),
        shelf,
        min_token_confidence=0.0,
    )
    assert found.segments[0].triggers == ("written",)

    known = Shelf({})
    echoed = run(
        GivenWriter(lambda *_: draft("Who was by Frankenstein Mary.", "Frank", "by")),
        known,
    )
    assert (echoed.refused, known.asked) == (None, [])


def test_what_is_written_again_is_watched_again():
    """The release does not: whatever comes after retrieval is taken."""
    writer = GivenWriter(lambda *_: draft("Percy Bysshe.", "Percy"))

    found = run(writer, Shelf({"": [SHELLEY]}))

    assert found.refused is Reason.LOW_CONFIDENCE
    assert found.answer == ""
    assert found.segments[-1].doubt is Reason.LOW_CONFIDENCE


def test_a_word_that_stands_in_the_evidence_is_no_longer_in_doubt():
    writer = GivenWriter(lambda *_: draft("Mary Shelley.", "Mary", "Shelley"))

    found = run(writer, Shelf({"": [SHELLEY]}))

    assert found.answer == "Mary Shelley."
    assert found.is_sourced


def test_an_answer_that_only_repeats_the_question_needs_evidence():
    writer = GivenWriter(lambda *_: draft("Frankenstein."))

    assert run(writer).refused is Reason.LOW_CONFIDENCE
    assert run(writer, Shelf({"": [SHELLEY]})).refused is None


def test_both_queries_are_asked():
    shelf = Shelf({})
    writer = GivenWriter(
        lambda *_: draft("Percy Shelley.", "Percy"),
        validates=lambda _: "Did Percy write\nFrankenstein?",
    )

    found = run(writer, shelf)

    assert shelf.asked[:2] == [
        "Who wrote Frankenstein? Shelley.",
        "Did Percy write Frankenstein?",
    ]
    assert found.segments[0].queries == tuple(dict.fromkeys(shelf.asked))


def test_what_does_not_pass_hard_refusal_is_no_evidence():
    far = make_evidence("Frankenstein is by Percy.", distance=0.9)
    seen: list[int] = []

    def writes(notes, _kept):
        seen.append(len(notes))
        return draft("Percy.", "Percy")

    found = run(GivenWriter(writes), Shelf({"": [far]}), alpha=0.85)

    assert set(seen) == {0}
    assert found.refused is Reason.LOW_CONFIDENCE
    assert run(GivenWriter(writes), Shelf({"": [far]}), alpha=0.95).refused is None


def test_of_what_was_found_the_pieces_that_pass_are_read():
    near, nearer, far = (
        make_evidence(f"Text {n}.", distance=distance, entry_id=n)
        for n, distance in ((1, 0.5), (2, 0.3), (3, 1.1))
    )
    seen: list[list[int]] = []

    def writes(notes, _kept):
        seen.append([piece.entry_id for piece in notes])
        return draft("Percy.", "Percy")

    run(GivenWriter(writes), Shelf({"": [near, far, nearer]}), top_k=4)

    assert seen[1] == [1, 2]


def test_the_best_of_each_query_comes_first():
    one, two, three = (make_evidence(f"Text {n}.", entry_id=n) for n in (1, 2, 3))
    shelf = Shelf({"Who wrote Frankenstein? Shelley.": [one, two], "Percy?": [two, three]})  # fmt: skip
    writer = GivenWriter(
        lambda *_: draft("Percy Shelley.", "Percy"), validates=lambda _: "Percy?"
    )

    found = run(writer, shelf, top_k=3)

    assert [piece.entry_id for piece in found.evidence] == [1, 2, 3]


def test_a_refusal_makes_it_look_and_a_second_one_look_anew():
    def writes(notes, _kept):
        good = any("Mary" in piece.text for piece in notes)
        return draft("Mary Shelley.") if good else draft("I don't know.")

    useless = make_evidence("Frankenstein has 24 chapters.", entry_id=2)
    shelf = Shelf({ASKED: [useless], "author of Frankenstein": [SHELLEY]})
    writer = GivenWriter(writes, rewrites="author of Frankenstein")

    found = run(writer, shelf)

    assert shelf.asked == [ASKED, "author of Frankenstein"]
    assert writer.rewritten == [ASKED]
    assert found.answer == "Mary Shelley."
    assert found.segments[0].rounds == 2


def test_a_refusal_that_stays_is_refused_and_never_shown():
    writer = GivenWriter(lambda *_: draft("I don't know."), rewrites="author?")

    found = run(writer, Shelf({"": [SHELLEY]}))

    assert (found.answer, found.refused) == ("", Reason.MODEL_DECLINED)
    assert found.segments[0].rounds <= MAX_ROUNDS


def test_a_model_that_writes_nothing_is_helped_and_else_refused():
    def writes(notes, _kept):
        return draft("Mary Shelley.") if notes else draft("")

    assert run(GivenWriter(writes), Shelf({"": [SHELLEY]})).answer == "Mary Shelley."

    found = run(GivenWriter(writes))
    assert (found.answer, found.refused) == ("", Reason.MODEL_DECLINED)
    assert found.weakest is None


def test_what_comes_to_nothing_new_once_evidence_is_read_ends_the_answer():
    def writes(notes, kept):
        if kept:
            return draft("Mary Shelley." if notes else "Percy did too.", "Percy")
        return draft("Mary Shelley.", is_last=False)

    found = run(GivenWriter(writes), Shelf({"": [SHELLEY]}))

    assert found.answer == "Mary Shelley."
    assert found.refused is None


def test_a_word_that_was_watched_badly_is_in_doubt():
    bad = replace(draft("Mary Shelley."), confidences=(float("nan"), 1.0))

    found = run(GivenWriter(lambda *_: bad))

    assert found.segments[0].triggers == ("Mary",)
    assert found.refused is Reason.LOW_CONFIDENCE


def test_what_says_nothing_new_stands_in_no_evidence():
    """A bare yes could say the opposite of what was found."""
    found = run(GivenWriter(lambda *_: draft("Yes.")), Shelf({"": [SHELLEY]}))

    assert not found.is_sourced


def test_a_later_segment_in_doubt_refuses_the_whole_answer():
    def writes(_notes, kept):
        if kept:
            return draft("She died in Bonn.", "Bonn")
        return draft("Mary Shelley wrote it.", is_last=False)

    found = run(GivenWriter(writes))

    assert [s.doubt for s in found.segments] == [None, Reason.LOW_CONFIDENCE]
    assert (found.answer, found.refused) == ("", Reason.LOW_CONFIDENCE)


def test_what_an_earlier_segment_said_is_not_new_in_a_later_one():
    def writes(_notes, kept):
        if kept:
            return draft("Mary was a novelist.", "Mary")
        return draft("Mary Shelley wrote it.", is_last=False)

    found = run(GivenWriter(writes))

    assert found.answer == "Mary Shelley wrote it. Mary was a novelist."


def test_an_answer_that_repeats_itself_ends():
    writer = GivenWriter(lambda *_: draft("Mary Shelley wrote it.", is_last=False))

    found = run(writer)

    assert found.answer == "Mary Shelley wrote it."
    assert found.is_complete


def test_an_answer_without_end_is_cut_off():
    numbers = iter(range(1_000))
    writer = GivenWriter(lambda *_: draft(f"Then {next(numbers)}.", is_last=False))

    found = run(writer)

    assert len(found.segments) == MAX_SEGMENTS
    assert not found.is_complete


def test_every_draft_is_steered_as_the_policy_says():
    writer = GivenWriter(lambda *_: draft("Percy.", "Percy"))

    run(writer, Shelf({"": [make_evidence("It is by Percy.")]}), steering=0.7)

    assert set(writer.strengths) == {0.7}
    assert len(writer.strengths) == 2


@given(
    threshold=st.floats(-3, 3),
    texts=st.lists(st.sampled_from(["I don't know.", "Percy.", "Mary S.", "Frankenstein.", "He is 4.", ""]), min_size=1, max_size=30),
    rewrites=st.text(max_size=30),
)  # fmt: skip
def test_it_always_ends_and_shows_nothing_in_doubt(threshold, texts, rewrites):
    left = list(texts)

    def writes(*_):
        return draft(left.pop() if left else "Percy.", "Percy", is_last=False)

    shelf = Shelf({ASKED: [SHELLEY]})
    writer = GivenWriter(writes, validates=lambda _: rewrites, rewrites=rewrites)

    found = run(writer, shelf, min_token_confidence=threshold)

    assert len(writer.strengths) <= (MAX_SEGMENTS + 1) * (MAX_ROUNDS + 1)
    assert bool(found.answer) == (found.refused is None)
    if found.refused is None:
        assert all(segment.doubt is None for segment in found.segments)
        assert "I don't know" not in found.answer


@pytest.mark.parametrize("threshold", [-2.0, 1.5])
def test_the_threshold_alone_tells_doubt(threshold):
    shelf = Shelf({})

    found = run(
        GivenWriter(lambda *_: draft("Mary Shelley.")),
        shelf,
        min_token_confidence=threshold,
    )

    assert (found.refused is None) == (threshold == -2.0)
    assert bool(shelf.asked) == (threshold == 1.5)
