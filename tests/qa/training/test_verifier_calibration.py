"""What turns readings into odds: fitted on questions about knowledge that no net saw."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from probes.verifier.card import Calibration
from probes.verifier.scoring import load_verifier
from qa.pipeline.weighing import Passage, log_odds
from qa.training.knowledge_sets import KnowledgeSet, SourceEntry
from qa.training.verifier_calibration import Asked, ask, chosen, fit_choice
from tests.qa.pipeline.values import GivenScorer

pytestmark = pytest.mark.slow

ENTRIES = 4


def readings(count: int, seed: int = 0, *, kind: int = 0, share: float = 0.6) -> Asked:
    """Questions whose right entry's own question is near; the logits say nothing."""
    chance = np.random.default_rng(seed)
    whole = np.zeros((count, ENTRIES, 1, 3))
    whole[..., 0] = chance.normal(0, 1, (count, ENTRIES, 1))
    whole[..., 1] = chance.uniform(0.3, 0.6, (count, ENTRIES, 1))
    whole[..., 2] = chance.uniform(0.2, 0.5, (count, ENTRIES, 1))
    right = np.zeros((count, ENTRIES), bool)
    answered = chance.random(count) < share
    right[answered, chance.integers(0, ENTRIES, answered.sum())] = True
    whole[..., 0, 2] += 0.4 * right
    parts = np.zeros_like(whole)
    parts[..., 0] = -1e4
    return Asked(
        whole,
        parts,
        np.zeros((count, ENTRIES, 2, 0)),
        np.zeros((count, ENTRIES)),
        right,
        np.full(count, kind),
    )


def test_what_tells_right_entries_apart_is_what_counts():
    asked = readings(400)

    by = fit_choice(asked)

    assert by.paraphrase > 1.0
    assert by.paraphrase > 3 * abs(by.logit)
    unseen = readings(300, seed=1)
    chance, is_right = chosen(unseen.log_odds(by), unseen.right)
    assert is_right[unseen.answerable].mean() > 0.95
    assert chance[is_right].mean() > chance[~is_right].mean() + 0.4


def test_each_kind_of_question_counts_as_much_however_many_there_are():
    few, many = readings(100, kind=0), readings(100, seed=1, kind=1, share=0.2)

    def together(*parts: Asked) -> Asked:
        fields = ("whole", "parts", "joint", "alike", "right", "kind")
        return Asked(
            *(np.concatenate([getattr(p, name) for p in parts]) for name in fields)
        )

    once = fit_choice(together(few, many))
    repeated = fit_choice(together(few, *[many] * 5))

    assert repeated.paired_none == pytest.approx(once.paired_none, abs=0.05)
    assert repeated.paraphrase == pytest.approx(once.paraphrase, abs=0.05)


ODDS = st.lists(st.floats(-9, 9), min_size=5, max_size=5, unique=True)


@given(ODDS, ODDS, st.lists(st.floats(-1, 1), min_size=5, max_size=5))
def test_readings_are_weighed_as_in_use(apart, together, similar):
    class Given(GivenScorer):
        def likeness(
            self, question: str, texts: Sequence[object]
        ) -> NDArray[np.float64]:
            return np.array(similar)

        def log_odds(self, _question: str, texts: Sequence[Passage]) -> list[float]:
            return [apart[int(each.text)] for each in texts]

        def joint_log_odds(
            self, _question: str, texts: Sequence[Passage]
        ) -> list[float]:
            return [together[int(each.text)] for each in texts]

    passages = [Passage("", "", "", str(at)) for at in range(5)]
    in_use = log_odds("How much?", passages, Given([], reads_jointly=True))

    whole, parts = np.zeros((1, 5, 1, 3)), np.zeros((1, 5, 1, 3))
    joint = np.zeros((1, 5, 2, 3))
    whole[0, :, 0, 0], joint[0, :, 0, 0] = apart, together
    parts[..., 0] = joint[0, :, 1, 0] = -1e4
    alike = np.array([similar])
    asked = Asked(whole, parts, joint, alike, np.zeros((1, 5), bool), np.zeros(1, int))
    assert asked.log_odds(Calibration())[0] == pytest.approx(in_use)


@pytest.mark.parametrize("has_unanswerable", [False, True])
def test_half_of_the_questions_lose_their_answer_where_each_has_one(has_unanswerable):
    known = KnowledgeSet("fees", "ours")
    for what in ("card", "account", "transfer", "statement"):
        entry = SourceEntry(
            f"It costs {len(what)} euros.", question=f"Fee of a {what}?"
        )
        known.ask(f"What does a {what} cost?", [known.place(entry)])
    if has_unanswerable:
        known.ask("Who founded the bank?", [])

    asked = ask(load_verifier(), [known], on_progress=lambda *_: None)

    expected = [True] * 4 + [False] if has_unanswerable else [True, False] * 2
    assert asked.answerable.tolist() == expected
    assert set(asked.kind) == {0 if has_unanswerable else 1}
    assert asked.whole.shape[3] == asked.joint.shape[3] == 3
