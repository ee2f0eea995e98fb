import json
from collections import Counter
from pathlib import Path

import pytest

import kb.conflicts
from kb.conflicts.judgement import MODEL
from kb.conflicts.values import Kind, Opinion, Unsure
from kb.embedding.embedder import load_embedder
from qa.evaluation.conflicts import (
    PARTS,
    fit_model,
    judge_tables_of,
    qualities,
    read_pairs,
)
from qa.exceptions import EvaluationDataError

pytestmark = pytest.mark.slow

LABELLED = Path(kb.conflicts.__file__).with_name("labelled_pairs.jsonl")


@pytest.fixture(scope="module")
def pairs():
    return read_pairs(LABELLED, load_embedder("bundled"))


def test_at_least_150_pairs_are_labelled_and_all_parts_hold_all_kinds(pairs):
    kinds = Counter((pair.part, pair.kind) for pair in pairs)

    assert len(pairs) >= 150
    assert min(kinds.values()) >= 25
    assert len(kinds) == 12


def test_no_pair_stands_in_two_parts():
    rows = [json.loads(line) for line in LABELLED.read_text().splitlines()]
    sides = [frozenset((r["first"]["text"], r["second"]["text"])) for r in rows]

    assert len(set(sides)) == len(rows)


def test_the_shipped_weights_are_those_of_the_development_part(pairs):
    seen = [pair for pair in pairs if pair.part == "development"]

    fitted = fit_model(seen, version=MODEL.version)

    for ours, theirs in (
        (fitted.same_matter, MODEL.same_matter),
        (fitted.says_otherwise, MODEL.says_otherwise),
    ):
        assert ours.weights == pytest.approx(theirs.weights, abs=0.02)


def test_what_is_published_of_the_held_out_part_holds(pairs):
    held_out = [pair for pair in pairs if pair.part == "held_out"]

    found = qualities(held_out, MODEL)

    for kind in (Kind.DUPLICATE, Kind.CONTRADICTION):
        precision, recall = found[kind].precision.value, found[kind].recall.value
        assert precision is not None
        assert recall is not None
        assert precision >= 0.9
        assert recall >= 0.6


def test_a_line_that_is_no_pair_is_named(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"part": "development"}\n')

    with pytest.raises(EvaluationDataError, match="line 1"):
        read_pairs(path, load_embedder("bundled"))


class Contrarian:
    """A judge that holds everything a contradiction, and says nothing of questions."""

    name = "contrarian"
    asked_about = Unsure()
    fingerprint = "0" * 64

    def weigh(self, pairs):
        opinion = Opinion(0.0, 1.0, 0.0, name=self.name, fingerprint=self.fingerprint)
        return [None if one.question else opinion for one, _ in pairs]


def test_what_a_judge_adds_is_counted_on_the_unsure_pairs_alone(pairs):
    qualities_, asked = judge_tables_of(pairs, Contrarian())

    assert len(qualities_.rows) == 16
    parts = [part.replace("_", " ") for part in PARTS]
    recalls = {row[:3]: row[4] for row in qualities_.rows}
    for part in parts:
        before = recalls[part, "contradiction", "signals"]
        assert recalls[part, "contradiction", "and the judge"] > before
    for row, part in zip(asked.rows, parts, strict=True):
        name, unsure, unreadable, right, _ = row
        own = [p for p in pairs if p.part == part.replace(" ", "_")]
        assert name == part
        assert 0 < int(right) <= int(unsure) - int(unreadable)
        assert int(unsure) < len(own) / 2
