import math

import pytest

from probes.language_model import copy_span, copy_whole
from tests.probes import tiny_models

MODEL = tiny_models.model("llama")
SOURCE = tuple(range(60, 80))
STOPS = [10]


def test_the_span_is_the_likeliest_of_all_that_are_allowed():
    after = MODEL.read(range(5, 25))
    starts, ends = [0, 4, 9, 15], [4, 9, 15, 20]

    copied = copy_span(MODEL, after, SOURCE, starts=starts, ends=ends, stops=STOPS)

    spans = [(start, end) for start in starts for end in ends if end > start]
    merits = {}
    for start, end in spans:
        (scored,) = MODEL.score_all([SOURCE[start:end]], after, stops=STOPS)
        merits[start, end] = scored.total + float(scored.stops[-1])
    best = max(merits, key=merits.__getitem__)
    assert (copied.start, copied.end) == best
    found = math.fsum(copied.log_probabilities) + copied.end_log_probability
    assert found == pytest.approx(merits[best], abs=1e-3)


def test_one_allowed_span_is_copied_however_unlikely():
    copied = copy_span(
        MODEL, MODEL.read([5, 6]), SOURCE, starts=[3], ends=[1, 7], stops=STOPS
    )

    assert (copied.start, copied.end) == (3, 7)


def test_no_end_behind_a_start_is_an_error():
    with pytest.raises(ValueError, match="Nothing may be copied"):
        copy_span(MODEL, MODEL.read([5]), SOURCE, starts=[9], ends=[4], stops=STOPS)


def test_copying_the_whole_source_is_what_the_only_span_gives():
    prefix = MODEL.read_prefix(range(5, 25))
    passage, lead = MODEL.read_passage((30, 31, 32), prefix), (40, 41)

    whole = copy_whole(MODEL, passage, lead, SOURCE, stops=STOPS)

    context = MODEL.read(lead, MODEL.resume(passage))
    ends = [len(SOURCE)]
    only = copy_span(MODEL, context, SOURCE, starts=[0], ends=ends, stops=STOPS)
    assert (whole.start, whole.end) == (only.start, only.end) == (0, len(SOURCE))
    assert whole.log_probabilities == pytest.approx(only.log_probabilities, abs=1e-4)
    assert whole.end_log_probability == pytest.approx(
        only.end_log_probability, abs=1e-4
    )
