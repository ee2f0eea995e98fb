"""A probe's files: read back as written, refused when damaged or foreign."""

import json

import numpy as np
import pytest

from probes.abstention.files import probe_files, probe_from, settings_of
from probes.abstention.fitting import FitSettings, fit
from probes.abstention.probe import AbstentionProbe, Kind
from probes.cards import CARD, ProbeCard, ProbeFiles, ProbeKind
from probes.exceptions import ProbeFileError, ProbeMismatchError
from probes.services import load_probe
from probes.taps import Part, Tap

from .answers import WIDTH, by_level

MODEL = "a" * 64
WEIGHTS = "probe.safetensors"


@pytest.fixture(scope="module", params=Kind)
def probe(request):
    settings = FitSettings(kind=request.param, hidden=8, projected=4, epochs=2)
    tap = Tap(14, Part.FFN)
    rows = by_level(120, 0), by_level(120, 1)
    return fit(*rows, language_model=MODEL, tap=tap, settings=settings), settings


@pytest.fixture
def files(probe):
    made, settings = probe
    return probe_files(
        made,
        settings,
        ProbeCard(
            kind=ProbeKind.ABSTENTION,
            language_model="",
            language_model_name="tiny",
            form="grounded-1",
            layer=None,
            part="",
            temperature=1.0,
            data_sha256="d" * 64,
            sizes={"answers": 240},
            settings={},
            metrics={"auroc": 0.75},
        ),
    )


@pytest.fixture
def saved(files, tmp_path):
    files.write(tmp_path)
    return tmp_path


def test_a_probe_is_read_back_as_it_was_written(probe, files, saved):
    made, settings = probe

    found = ProbeFiles.read(saved)
    loaded = load_probe(found, language_model=MODEL)

    assert isinstance(loaded, AbstentionProbe)
    answers = [row.activations for row in by_level(7, 2)]
    np.testing.assert_array_equal(
        loaded.confidences(answers), made.confidences(answers)
    )
    assert (loaded.kind, loaded.tap, loaded.temperature) == (
        made.kind, made.tap, made.temperature,
    )  # fmt: skip
    card = found.parsed()
    assert (card.layer, card.part) == (14, "ffn")
    assert card.sizes == {"answers": 240, "width": WIDTH}
    assert card.settings["hidden"] == settings.hidden
    assert card.metrics == {"auroc": 0.75}
    assert found.fingerprint == files.fingerprint


def test_a_probe_never_serves_a_model_that_it_was_not_fitted_for(saved):
    with pytest.raises(ProbeMismatchError, match="train probe"):
        load_probe(ProbeFiles.read(saved), language_model="b" * 64)


def _edit(**changes):
    def edit(directory):
        said = json.loads((directory / CARD).read_text())
        (directory / CARD).write_text(json.dumps(said | changes))

    return edit


def _resized(name, value):
    def edit(directory):
        said = json.loads((directory / CARD).read_text())
        said["settings"][name] = value
        (directory / CARD).write_text(json.dumps(said))

    return edit


_DAMAGES = {
    "cut weights": lambda d: (d / WEIGHTS).write_bytes((d / WEIGHTS).read_bytes()[:-1]),
    "no weights": lambda d: (d / WEIGHTS).unlink(),
    "no card": lambda d: (d / CARD).unlink(),
    "no JSON": lambda d: (d / CARD).write_text("{"),
    "no object": lambda d: (d / CARD).write_text("[]"),
    "no text": lambda d: (d / CARD).write_bytes(b"\xff\xfe"),
    "deeply nested": lambda d: (d / CARD).write_text("[" * 100_000),
    "huge card": lambda d: (d / CARD).write_text(f'{{"a": "{"x" * (1 << 20)}"}}'),
    "another format": _edit(format=1),
    "unknown kind": _edit(kind="forest"),
    "a kind without a layer": _edit(kind="joint"),
    "huge width": _edit(sizes={"width": 10**12}),
    "another width": _edit(sizes={"width": 5}),
    "no width": _edit(sizes={}),
    "no settings": _edit(settings={}),
    "unknown network": _edit(settings={"kind": "forest"}),
    "no number": _edit(layer="middle"),
    "a layer below the first": _edit(layer=-1),
    "no temperature": _edit(temperature=None),
    "no temperature above 0": _edit(temperature=0),
    "endless temperature": _edit(temperature=float("inf")),
    "no temperature that fits": _edit(temperature=10**400),
    "no fingerprint": _edit(language_model="tiny"),
    "no data": _edit(data_sha256=None),
    "another digest": _edit(weights_sha256="0" * 64),
    "huge state": _resized("hidden", 10**9),
    "no whole state": _resized("projected", 4.5),
}


@pytest.mark.parametrize("damage", _DAMAGES.values(), ids=list(_DAMAGES))
def test_damaged_files_are_refused_with_what_to_do(saved, damage):
    damage(saved)
    with pytest.raises(ProbeFileError, match="fit it again"):
        load_probe(ProbeFiles.read(saved), language_model=MODEL)


def test_a_card_of_before_the_prompt_was_read_is_read_as_it_was(files):
    said = json.loads(files.card)
    del said["settings"]["opens_with_prompt"]
    older = ProbeFiles("older", json.dumps(said).encode(), files.weights)

    # These weights are of a head on the prompt, which such a card has none of.
    if said["settings"]["kind"] == Kind.LINEAR:
        with pytest.raises(ProbeFileError, match="size mismatch"):
            probe_from(older, language_model=MODEL)
    assert not settings_of(older.parsed()).opens_with_prompt


def test_weights_are_never_unpickled(files):
    forged = ProbeFiles("a forgery", files.card, b"\x80\x04cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(ProbeFileError, match="not those that were saved"):
        probe_from(forged, language_model=MODEL)
