import threading

import numpy as np
import pytest
import torch

from probes.exceptions import TooManyTokensError
from probes.language_model import Passage, WhiteBoxModel
from tests.probes import tiny_models

PREFIX = tuple(range(40, 75))
QUESTION = tuple(range(90, 115))


@pytest.fixture(params=tiny_models.FAMILIES)
def model(request) -> WhiteBoxModel:
    return tiny_models.model(request.param)


def plain_log_probabilities(model: WhiteBoxModel, ids) -> np.ndarray:
    """What the network says with no cache at all, (len(ids), vocabulary)."""
    with torch.inference_mode():
        logits = model._network.module(
            input_ids=torch.tensor([list(ids)]), use_cache=False
        )
    return torch.log_softmax(logits.logits[0].float(), -1).numpy()


def test_reading_on_from_a_prefix_equals_reading_it_all(model):
    context = model.read(QUESTION, model.read_prefix(PREFIX))

    expected = plain_log_probabilities(model, PREFIX + QUESTION)[-1]
    np.testing.assert_allclose(context.next_log_probabilities, expected, atol=1e-4)
    assert context.ids == PREFIX + QUESTION


def test_a_context_is_not_changed_by_what_is_read_after_it(model):
    prefix = model.read_prefix(PREFIX)
    alone = model.read(QUESTION, prefix).next_log_probabilities

    for other in range(5):
        model.read([other] * 30, prefix)
        model.score_all([[other] * 20, [other + 1] * 7], prefix)

    again = model.read(QUESTION, model.read_prefix(PREFIX)).next_log_probabilities
    assert torch.equal(alone, again)


def test_continuations_of_unequal_length_are_scored_as_if_alone(model):
    options = [QUESTION, QUESTION[:1], QUESTION[3:9], ()]
    prefix = model.read_prefix(PREFIX)

    together = model.score_all(options, prefix, stops=[10, 11])

    for option, scored in zip(options, together, strict=True):
        table = plain_log_probabilities(model, PREFIX + tuple(option))
        table = table[len(PREFIX) - 1 :]
        expected = [table[i, number] for i, number in enumerate(option)]
        np.testing.assert_allclose(scored.log_probabilities, expected, atol=1e-4)
        stops = np.logaddexp(table[:, 10], table[:, 11])
        np.testing.assert_allclose(scored.stops, stops, atol=1e-4)


def test_options_after_passages_of_unequal_length_are_scored_as_if_alone(model):
    prefix = model.read_prefix(PREFIX)
    notes = [QUESTION[:11], QUESTION[2:5], QUESTION[4:20]]
    options = [QUESTION[:4], QUESTION[3:12], QUESTION[5:7]]
    skips = [1, 3, 1]
    passages = [model.read_passage(note, prefix) for note in notes]

    together = model.score_each(options, passages, stops=[10, 11], skips=skips)

    for note, option, skip, scored in zip(notes, options, skips, together, strict=True):
        table = plain_log_probabilities(model, PREFIX + note + option)
        table = table[len(PREFIX + note) + skip - 1 :]
        expected = [table[i, number] for i, number in enumerate(option[skip:])]
        np.testing.assert_allclose(scored.log_probabilities, expected, atol=1e-4)
        stops = np.logaddexp(table[:, 10], table[:, 11])
        np.testing.assert_allclose(scored.stops, stops, atol=1e-4)


def test_a_passage_read_again_is_read_on_from_as_the_first_time(model):
    prefix = model.read_prefix(PREFIX)
    first, second = (model.read_passage(QUESTION[:9], prefix) for _ in range(2))

    after = model.read(QUESTION[9:], model.resume(second))

    expected = plain_log_probabilities(model, PREFIX + QUESTION)[-1]
    np.testing.assert_allclose(after.next_log_probabilities, expected, atol=1e-4)
    if isinstance(first, Passage):
        assert second is first


def test_what_is_skipped_is_read_and_not_scored(model):
    prefix = model.read_prefix(PREFIX)
    options, skips = [QUESTION, QUESTION[:8], QUESTION[2:9]], [5, 3, 0]

    whole = model.score_all(options, prefix, stops=[10])
    tails = model.score_all(options, prefix, stops=[10], skips=skips)

    for complete, part, skip in zip(whole, tails, skips, strict=True):
        np.testing.assert_allclose(
            part.log_probabilities, complete.log_probabilities[skip:], atol=1e-4
        )
        np.testing.assert_allclose(part.stops, complete.stops[skip:], atol=1e-4)


def test_more_options_than_fit_one_pass_are_scored_alike(model, monkeypatch):
    prefix = model.read_prefix(PREFIX)
    options = [QUESTION[:n] for n in (20, 3, 12, 0, 25)]
    at_once = model.score_all(options, prefix, stops=[10], skips=[2, 1, 0, 0, 9])

    monkeypatch.setattr("probes.language_model.scoring._POSITIONS_AT_ONCE", 40)
    in_parts = model.score_all(options, prefix, stops=[10], skips=[2, 1, 0, 0, 9])

    for one, other in zip(at_once, in_parts, strict=True):
        np.testing.assert_allclose(
            one.log_probabilities, other.log_probabilities, atol=1e-4
        )
        np.testing.assert_allclose(one.stops, other.stops, atol=1e-4)


def test_generation_is_greedy_and_its_log_probabilities_are_the_networks(model):
    written = model.generate(model.read(PREFIX), max_tokens=6)

    table = plain_log_probabilities(model, PREFIX + written.ids)[len(PREFIX) - 1 :]
    table[:, sorted(model.tokens.control_ids - model.tokens.end_ids)] = -np.inf
    assert written.ids == tuple(table[: len(written.ids)].argmax(1))
    np.testing.assert_allclose(
        written.log_probabilities, table.max(1)[: len(written.ids)], atol=1e-4
    )
    assert len(written.ids) == 6
    assert not written.finished


def test_only_allowed_tokens_are_written_and_an_allowed_end_ends(model):
    (end,) = model.tokens.end_ids

    written = model.generate(
        model.read(PREFIX),
        max_tokens=9,
        allowed=lambda ids: [100, 101] if len(ids) < 4 else [end],
    )

    assert len(written.ids) == 4
    assert set(written.ids) <= {100, 101}
    assert written.finished


def test_a_constraint_that_allows_nothing_is_an_error():
    model = tiny_models.model("llama")

    with pytest.raises(ValueError, match="allows no token"):
        model.generate(model.read(PREFIX), max_tokens=2, allowed=lambda _ids: [])


def test_a_stop_string_ends_the_text_and_is_not_part_of_it():
    model = tiny_models.model("llama")
    letters = [model.tokens.encode_text(letter)[0] for letter in "one\ntwo"]

    written = model.generate(
        model.read(PREFIX),
        max_tokens=20,
        stop=["\n"],
        allowed=lambda ids: [letters[len(ids)]],
    )

    assert written.text == "one"
    assert written.finished


def test_more_tokens_than_the_context_holds_are_refused(model):
    with pytest.raises(TooManyTokensError, match="513 tokens do not fit the 512"):
        model.read([5] * 513)


def test_threads_that_share_a_prefix_get_what_each_gets_alone(model):
    questions = [tuple(range(n, n + 12)) for n in range(8)]
    alone = [
        model.read(question, model.read(PREFIX)).next_log_probabilities
        for question in questions
    ]
    found: dict[int, torch.Tensor] = {}

    def ask(number: int) -> None:
        prefix = model.read_prefix(PREFIX)
        found[number] = model.read(questions[number], prefix).next_log_probabilities

    threads = [threading.Thread(target=ask, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(torch.equal(alone[n], found[n]) for n in range(8))
    assert len(found) == 8
