"""What was found, in the order in which it helps, and never without what covers it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.pipeline.language_model import NoProbes
from qa.pipeline.retrieve import rerank
from qa.pipeline.values import Outcome, Question
from tests.qa.pipeline.values import (
    SCORER,
    GivenModel,
    GivenRetriever,
    GivenScorer,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
    run_pipeline,
)


def pieces(*distances: float):
    return [
        make_evidence(f"Entry {at}.", distance=distance, entry_id=at)
        for at, distance in enumerate(distances, start=1)
    ]


def ids(scores: Sequence[float], *distances: float, top_k: int = 2) -> list[int]:
    found = make_retrieval(*pieces(*distances))
    ranked, _ = rerank(
        Question("What?"),
        found,
        reranker=lambda: GivenScorer(scores),
        policy=make_policy(top_k=top_k, rerank=True),
    )
    return [piece.entry_id for piece in ranked.evidence]


def test_the_best_come_first_and_equal_ones_keep_their_order():
    assert ids([0.1, 0.9, 0.9], 0.2, 0.3, 0.4) == [2, 3]


def test_what_covers_the_question_is_kept_though_it_helps_least():
    assert ids([0.1, 0.8, 0.9], 0.2, 1.0, 1.0) == [3, 1]


@given(
    rows=st.lists(
        st.tuples(st.floats(0, 2), st.floats(-5, 5)), min_size=1, max_size=12
    ),
    top_k=st.integers(1, 4),
)
def test_what_was_covered_stays_covered_by_so_many_of_the_found(rows, top_k):
    distances, scores = zip(*rows, strict=True)

    kept = ids(scores, *distances, top_k=top_k)

    assert len(kept) == len(set(kept)) == min(top_k, len(rows))
    covering = {at for at, distance in enumerate(distances, start=1) if distance < 0.85}
    assert bool(covering) == bool(covering & set(kept))


@pytest.mark.parametrize("reranker", [None, lambda: None], ids=["none", "unusable"])
def test_without_a_reranker_the_order_stays(reranker):
    found = make_retrieval(*pieces(0.2, 0.3, 0.4))

    ranked, by = rerank(
        Question("What?"), found, reranker=reranker, policy=make_policy(top_k=2)
    )

    assert [piece.entry_id for piece in ranked.evidence] == [1, 2]
    assert by == ""


def test_coverage_is_judged_by_all_that_was_found_and_the_reranker_is_on_record():
    model = GivenModel(make_generation("Entry 1."))
    given_reranker = GivenScorer([0.0, 0.7, 0.8, 0.9])

    values = list(
        run_pipeline(
            "What does it cost?",
            retriever=GivenRetriever(make_retrieval(*pieces(0.4, 1.0, 1.0, 1.0))),
            language_model=lambda: model,
            probes=lambda _model: NoProbes(),
            policy=make_policy(top_k=2, rerank=True),
            reranker=lambda: given_reranker,
        )
    )

    outcome = values[-1]
    assert isinstance(outcome, Outcome)
    assert [piece.entry_id for piece in model.prompts[0].evidence] == [4, 1]
    assert outcome.probes == SCORER
    assert given_reranker.asked[0][0] == "What does it cost?"
