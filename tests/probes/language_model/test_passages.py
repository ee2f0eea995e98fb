"""Passages are kept up to a bound of memory, the latest ones."""

from probes.language_model import Passage
from probes.language_model.values import Passages
from tests.probes import tiny_models

PREFIX = tuple(range(40, 60))


def _passage(first: int) -> Passage:
    model = tiny_models.model("llama")
    passage = model.read_passage(range(first, first + 5), model.read_prefix(PREFIX))
    assert isinstance(passage, Passage)
    return passage


def test_the_passage_not_asked_for_longest_makes_room():
    one, two, three = (_passage(first) for first in (60, 70, 80))
    kept = Passages(limit=2 * one.bytes)
    kept.keep(one)
    kept.keep(two)
    assert kept.find(one.ids, one.prefix) is one

    kept.keep(three)

    assert kept.find(two.ids, two.prefix) is None
    assert kept.find(one.ids, one.prefix) is one
    assert kept.find(three.ids, three.prefix) is three


def test_a_passage_larger_than_the_bound_is_not_kept():
    one = _passage(60)
    kept = Passages(limit=one.bytes - 1)

    kept.keep(one)

    assert kept.find(one.ids, one.prefix) is None


def test_keeping_one_twice_counts_its_memory_once():
    one = _passage(60)
    kept = Passages(limit=one.bytes)

    kept.keep(one)
    kept.keep(one)

    assert kept.find(one.ids, one.prefix) is one


def test_the_same_tokens_cut_elsewhere_are_another_passage():
    model = tiny_models.model("llama")
    one = _passage(60)
    kept = Passages(limit=2**20)
    kept.keep(one)

    longer = model.read_prefix((*PREFIX, *one.ids[:2]))

    assert kept.find(one.ids[2:], longer) is None
