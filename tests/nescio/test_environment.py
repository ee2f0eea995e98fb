"""What a variable can't be is refused by its name; what it is, is read as it was meant."""

import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from nescio import environment
from nescio.environment import Environment


@pytest.fixture
def env(monkeypatch):
    """Return a reader of one variable, NESCIO_X."""

    def with_value(value):
        monkeypatch.setenv("NESCIO_X", value)
        return Environment()

    return with_value


def test_spaces_after_the_commas_of_a_list_are_no_part_of_its_items(env):
    read = env(" ask.example.org, localhost ,").list("NESCIO_X", default=[])
    assert read == ["ask.example.org", "localhost"]


def test_a_secret_may_begin_with_a_dollar_sign(env):
    assert env("$3cret").str("NESCIO_X", default="") == "$3cret"


@pytest.mark.parametrize(
    ("value", "meant"), [("True", True), ("on", True), ("NO", False)]
)
def test_a_switch_is_on_or_off(env, value, meant):
    assert env(value).bool("NESCIO_X", default=not meant) is meant


def test_what_is_empty_has_its_default(env):
    read = env("")
    assert read.int("NESCIO_X", default=7) == 7
    assert read.bool("NESCIO_X", default=True) is True
    assert read.public_address("NESCIO_X", default="http://h") == "http://h"
    assert read.str("NESCIO_X", default="nescio_app") == ""  # a role may be none


@pytest.mark.parametrize(
    ("kind", "value", "remedy"),
    [
        ("bool", "enabled", "true or false"),
        ("int", "abc", "a whole number"),
        ("int", "-1", "0 or more"),
        ("float", "nan", "a number"),
        ("at_least_one", "0", "1 or more"),
        ("rate", "lots", "such as"),
        ("time_zone", "Europe/Nowhere", "Europe/Berlin"),
        ("public_address", "ask.example.org", "https://"),
    ],
)
def test_what_a_setting_cant_be_is_refused_by_its_name_and_value(
    env, kind, value, remedy
):
    with pytest.raises(ImproperlyConfigured) as refused:
        getattr(env(value), kind)("NESCIO_X", default=1)
    said = str(refused.value)
    assert "NESCIO_X" in said
    assert value in said
    assert remedy in said


def test_a_mail_servers_password_is_read_with_its_signs():
    read = environment.mail(
        "X", "smtp+tls://me%40example.org:p%2Fw@mail.example.org:587"
    )
    assert read["EMAIL_HOST_USER"] == "me@example.org"
    assert read["EMAIL_HOST_PASSWORD"] == "p/w"
    assert read["EMAIL_USE_TLS"] is True


@pytest.mark.parametrize(
    ("read", "address", "remedy"),
    [
        (environment.mail, "mail.example.org:25", "smtp+tls://"),
        (environment.mail, "smtp+tls://u:sec/ret@mail.example.org:587", "%2F for /"),
        (environment.database, "mysql://u:secret@h/nescio", "postgresql://"),
        (environment.cache, "memcached://h:11211", "rediscache://"),
    ],
)
def test_an_address_that_cant_be_read_says_why_and_shows_no_password(
    read, address, remedy
):
    with pytest.raises(ImproperlyConfigured) as refused:
        read("NESCIO_X", address)
    assert remedy in str(refused.value)
    assert "NESCIO_X" in str(refused.value)
    assert "sec" not in str(refused.value)


def test_a_wrong_setting_ends_a_command_with_one_line():
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        env={
            **os.environ,
            "NESCIO_PORT": "abc",
            "DJANGO_SETTINGS_MODULE": "nescio.settings",
        },
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "Not started: NESCIO_PORT is 'abc'; it must be a whole number, 0 or more.\n"
    )
