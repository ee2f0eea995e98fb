from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from stat import S_IMODE
from urllib.parse import unquote

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from hypothesis import given
from hypothesis import strategies as st

from nescio.embedded.places import Places, local_secret_key, make_private


def test_secret_key_is_made_once_and_private(tmp_path):
    file = tmp_path / "var" / "secret_key"

    key = local_secret_key(file)

    assert local_secret_key(file) == key
    assert len(key) >= 50
    assert S_IMODE(file.stat().st_mode) == 0o600


def test_a_directory_is_made_private_also_where_it_was_not(tmp_path):
    there = tmp_path / "there"
    there.mkdir(mode=0o755)

    for directory in (there, tmp_path / "var" / "log"):
        make_private(directory)
        assert S_IMODE(directory.stat().st_mode) == 0o700


def test_uploads_are_for_their_owner_alone(tmp_path, settings):
    options = {**settings.STORAGES["imports"]["OPTIONS"], "location": tmp_path / "new"}

    name = FileSystemStorage(**options).save("2026/11/prices.csv", ContentFile(b"x"))

    file = tmp_path / "new" / name
    assert S_IMODE(file.stat().st_mode) == 0o600
    assert {S_IMODE(each.stat().st_mode) for each in file.parents[:3]} == {0o700}


@pytest.mark.slow
def test_processes_that_start_at_once_agree_on_the_secret_key(tmp_path):
    file = tmp_path / "secret_key"

    with ProcessPoolExecutor(8) as processes:
        keys = set(processes.map(local_secret_key, [file] * 64))

    assert len(keys) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


@pytest.mark.parametrize("length", [10, 80, 200])
def test_the_socket_fits_into_the_path_that_a_socket_may_have(length):
    places = Places(Path("/" + "v" * length))

    socket = places.postgres_socket_directory / ".s.PGSQL.5432"

    assert len(bytes(socket)) <= 103


def test_two_long_directories_have_sockets_of_their_own():
    one, other = Places(Path("/" + "a" * 200)), Places(Path("/" + "b" * 200))

    assert one.postgres_socket_directory != other.postgres_socket_directory


@given(st.text("ab /%?#@:äß", min_size=1, max_size=20))
def test_the_database_url_carries_any_directory(name):
    places = Places(Path("/v") / f"x{name}")

    host = places.database_url.removeprefix("postgresql://nescio@").partition("/")[0]

    assert unquote(host) == str(places.postgres_socket_directory)
