"""Activations are read once, kept small, and found again by what was read."""

import numpy as np
import pytest

from probes.language_model.second_pass import Passing
from probes.taps import Part, Tap
from qa.inference.grounded_form import answer_passing, prompt_ids
from qa.training.draft_activations import ActivationCache, DraftActivations, key_of
from tests.probes import tiny_models

from .drafts import draft, many

TAPS = [Tap(1), Tap(0, Part.FFN)]


@pytest.fixture(scope="module")
def model():
    return tiny_models.model("llama")


def test_one_pass_gives_the_prompts_last_token_and_the_answers_tokens(model, tmp_path):
    rows = [draft(1, is_right=True), draft(2, is_right=False, answer="a longer one")]
    activations = DraftActivations(model, rows, directory=tmp_path)

    for tap in TAPS:
        answers, prompts = activations.of_sequences(tap), activations.of_prompts(tap)

        for row, answer, prompt in zip(rows, answers, prompts, strict=True):
            own = answer_passing(model.tokens, row.prompt, row.answer)
            before = Passing.of_last(prompt_ids(model.tokens, row.prompt))
            (alone,) = model.read_activations([own], [tap])
            (early,) = model.read_activations([before], [tap])
            np.testing.assert_allclose(answer[1:], alone[tap], rtol=2e-3, atol=2e-3)
            np.testing.assert_allclose(prompt, early[tap], rtol=2e-3, atol=2e-3)
            assert prompt.shape[0] == 1
            assert answer.dtype == prompt.dtype == np.float32


def test_what_was_read_is_not_read_again(model, tmp_path, monkeypatch):
    rows = many(300)
    read = []
    own = type(model).read_activations

    def counted(self, passings, taps):
        read.append(len(passings))
        return own(self, passings, taps)

    monkeypatch.setattr(type(model), "read_activations", counted)

    class KilledError(Exception):
        pass

    def killed(done, _total):
        if done > 100:
            raise KilledError

    with pytest.raises(KilledError):
        DraftActivations(model, rows, directory=tmp_path).read(TAPS, on_progress=killed)
    assert sum(read) == 128
    seen = []
    activations = DraftActivations(model, rows, directory=tmp_path)
    activations.read(TAPS, on_progress=lambda done, total: seen.append((done, total)))
    assert sum(read) == 300
    assert seen == [(n, 300) for n in (128, 192, 256, 300)]

    again = DraftActivations(model, rows[::-1], directory=tmp_path)
    for tap in TAPS:
        found = again.of_sequences(tap)
        for one, other in zip(activations.of_sequences(tap), found[::-1], strict=True):
            np.testing.assert_array_equal(one, other)
    assert sum(read) == 300


def test_another_place_or_fewer_pieces_are_read_on_their_own(model, tmp_path):
    rows = [draft(1, is_right=True)]
    whole = DraftActivations(model, rows, directory=tmp_path).of_sequences(Tap(1))[0]
    without = DraftActivations(model, rows, directory=tmp_path, pieces=0).of_sequences(
        Tap(1)
    )[0]

    assert whole.shape == without.shape
    assert np.abs(whole - without).max() > 1e-3


def test_what_does_not_fit_the_models_context_is_left_out_and_counted(model, tmp_path):
    rows = [draft(1, is_right=True, answer="x" * 600), draft(2, is_right=True)]

    activations = DraftActivations(model, rows, directory=tmp_path)

    assert activations.drafts == (rows[1],)
    assert activations.too_long == 1
    assert len(activations.of_sequences(Tap(0))) == 1


def cache(directory, tap=TAPS[0], language_model="m"):
    return ActivationCache(directory, language_model=language_model, tap=tap)


def test_kept_numbers_are_half_as_large_and_within_a_thousandth(tmp_path):
    random = np.random.default_rng(0)
    values = random.normal(scale=30, size=(50, 64)).astype(np.float32)
    large = values * 1e5

    cache(tmp_path).keep({"a": values, "b": large})
    found = cache(tmp_path).read(["a", "b", "unknown"])

    np.testing.assert_allclose(found["a"], values, rtol=1e-3, atol=1e-4)
    # float16 would make them endless.
    np.testing.assert_array_equal(found["b"], large)
    assert set(found) == {"a", "b"}
    (file,) = tmp_path.rglob("*.safetensors")
    assert file.stat().st_size < values.nbytes / 2 + large.nbytes + 1000


def test_models_and_places_are_kept_apart(tmp_path):
    cache(tmp_path).keep({"a": np.ones((1, 2), np.float32)})

    assert "a" in cache(tmp_path)
    assert "a" not in cache(tmp_path, TAPS[1])
    assert "a" not in cache(tmp_path, language_model="n")


def test_a_damaged_file_is_made_again(tmp_path):
    cache(tmp_path).keep({"a": np.ones((1, 2), np.float32)})
    (file,) = tmp_path.rglob("*.safetensors")
    file.write_bytes(b"nothing")

    assert "a" not in cache(tmp_path)
    assert not file.exists()


def test_what_is_read_and_which_positions_tell_texts_apart():
    passings = [
        Passing((1, 2, 3), 1, 3),
        Passing((1, 2, 3), 0, 3),
        Passing((1, 2, 4), 1, 3),
        Passing((12, 3), 0, 2),
    ]
    assert len({key_of(passing) for passing in passings}) == 4
