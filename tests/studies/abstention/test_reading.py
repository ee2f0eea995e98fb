"""What a model held inside, and says of its answers: read once, kept, asked no more."""

import json

import numpy as np
import pytest

from probes.taps import Part, Tap
from studies.abstention.insides import ReadInsides
from studies.abstention.self_assessment import SelfAssessor
from tests.probes import tiny_models
from tests.qa.training.drafts import many


@pytest.fixture(scope="module")
def model():
    return tiny_models.model("llama", context_length=2048)


@pytest.fixture
def read(model, tmp_path):
    return ReadInsides(model, many(9), directory=tmp_path)


def test_the_model_is_named_with_its_blocks(model, read):
    assert read.language_model == model.fingerprint
    assert read.blocks == 3


def test_fewer_pieces_of_evidence_are_another_reading(read):
    # These drafts have one piece each, so that one is all.
    whole, one = (read.of_sequences(Tap(1), pieces=pieces) for pieces in (None, 1))

    assert [len(row) for row in whole] == [len(d.answer) + 3 for d in read.drafts]
    for first, second in zip(whole, one, strict=True):
        np.testing.assert_array_equal(first, second)


def test_no_evidence_is_read_otherwise(read):
    whole, none = (read.of_sequences(Tap(1), pieces=pieces) for pieces in (None, 0))

    assert any((a != b).any() for a, b in zip(whole, none, strict=True))


def test_places_that_are_read_together_take_one_pass(model, read, monkeypatch):
    passes, own = [], model.read_activations

    def counted(passings, taps):
        passes.append(len(taps))
        return own(passings, taps)

    monkeypatch.setattr(model, "read_activations", counted)
    places = [Tap(0), Tap(1, Part.FFN), Tap(2)]

    read.read_together(places)
    for pieces in (None, 0):
        for place in places:
            assert len(read.of_sequences(place, pieces=pieces)) == 9

    # Once with all evidence, once with none; the longest drafts fit one batch.
    assert passes == [3, 3]


def test_prompts_give_one_position_each(read):
    assert {row.shape for row in read.of_prompts(Tap(2))} == {(1, 32)}


def test_the_model_is_asked_of_each_answer_once(model, read, tmp_path, monkeypatch):
    first = read.own_words()

    monkeypatch.delattr(SelfAssessor, "assess")  # whoever asks fails
    again = ReadInsides(model, many(9), directory=tmp_path).own_words()

    assert again == first
    assert set(first) == {"p_true", "verbalised"}
    assert {len(values) for values in first.values()} == {9}


def test_a_line_that_was_broken_off_is_asked_again(model, read, tmp_path):
    first = read.own_words()
    (file,) = tmp_path.rglob("*.jsonl")
    file.write_text(file.read_text()[:-20])

    again = ReadInsides(model, many(9), directory=tmp_path).own_words()

    assert again == first
    told = [line for line in file.read_text().splitlines() if line]
    assert len(told) == 10
    assert json.loads(told[-1])["p_true"] == first["p_true"][-1]


def test_what_is_kept_is_of_one_model_and_one_answer(model, read):
    assessor = SelfAssessor(model)
    one, other = read.drafts[:2]

    keys = {
        assessor.key(one.prompt, one.answer),
        assessor.key(one.prompt, other.answer),
        assessor.key(other.prompt, one.answer),
    }
    assert len(keys) == 3
    assert assessor.key(one.prompt, one.answer) in keys
