"""A probe's files: read back as written, refused when damaged or foreign."""

import json

import numpy as np
import pytest

from probes.abstention import FitSettings, Kind, fit, load_probe, save_probe
from probes.abstention.files import CARD, WEIGHTS, ProbeCard
from probes.exceptions import ProbeFileError, ProbeMismatchError
from probes.language_model.taps import Part, Tap

from .answers import by_level

MODEL = "a" * 64


@pytest.fixture(scope="module", params=Kind)
def probe(request):
    settings = FitSettings(kind=request.param, hidden=8, projected=4, epochs=2)
    tap = Tap(14, Part.FFN)
    rows = by_level(120, 0), by_level(120, 1)
    return fit(*rows, language_model=MODEL, tap=tap, settings=settings), settings


@pytest.fixture
def saved(probe, tmp_path):
    made, settings = probe
    save_probe(tmp_path, made, ProbeCard("d" * 64, settings, {"auroc": 0.75}))
    return tmp_path


def test_a_probe_is_read_back_as_it_was_written(probe, saved):
    made, settings = probe

    found, card = load_probe(saved, language_model=MODEL)

    answers = [row.activations for row in by_level(7, 2)]
    np.testing.assert_array_equal(found.confidences(answers), made.confidences(answers))
    assert (found.kind, found.tap, found.temperature) == (
        made.kind, made.tap, made.temperature,
    )  # fmt: skip
    assert card == ProbeCard("d" * 64, settings, {"auroc": 0.75})


def test_a_probe_never_serves_a_model_that_it_was_not_fitted_for(saved):
    with pytest.raises(ProbeMismatchError, match="train_probe"):
        load_probe(saved, language_model="b" * 64)


def _edit(**changes):
    def edit(directory):
        said = json.loads((directory / CARD).read_text())
        (directory / CARD).write_text(json.dumps(said | changes))

    return edit


def _resized(directory):
    said = json.loads((directory / CARD).read_text())
    said["settings"]["hidden"] = 10**9
    (directory / CARD).write_text(json.dumps(said))


_DAMAGES = {
    "cut weights": lambda d: (d / WEIGHTS).write_bytes((d / WEIGHTS).read_bytes()[:-1]),
    "no weights": lambda d: (d / WEIGHTS).unlink(),
    "no card": lambda d: (d / CARD).unlink(),
    "no JSON": lambda d: (d / CARD).write_text("{"),
    "no object": lambda d: (d / CARD).write_text("[]"),
    "no text": lambda d: (d / CARD).write_bytes(b"\xff\xfe"),
    "another format": _edit(format=2),
    "huge width": _edit(width=10**12),
    "another width": _edit(width=5),
    "no settings": _edit(settings={}),
    "unknown kind": _edit(settings={"kind": "forest"}),
    "no number": _edit(layer="middle"),
    "no temperature": _edit(temperature=None),
    "another digest": _edit(weights_sha256="0" * 64),
    "huge state": _resized,
}


@pytest.mark.parametrize("damage", _DAMAGES.values(), ids=list(_DAMAGES))
def test_damaged_files_are_refused_with_what_to_do(saved, damage):
    damage(saved)
    with pytest.raises(ProbeFileError, match="fit it again"):
        load_probe(saved, language_model=MODEL)
