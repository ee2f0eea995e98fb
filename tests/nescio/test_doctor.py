"""manage.py doctor, on a deployment that is fit and on one that lacks something."""

import socket
from io import StringIO

import pytest
from django.core.management import call_command

from kb.embedding.models import EntryEmbedding
from qa.policies.services import activate, active_policy, new_version
from tests.factories import make_entry, make_knowledge_base, make_user

pytestmark = pytest.mark.django_db


def look(**options) -> str:
    out = StringIO()
    call_command("doctor", stdout=out, no_color=True, **options)
    return out.getvalue()


def line(said: str, name: str) -> str:
    return next(each for each in said.splitlines() if f" {name} " in each)


def test_what_a_fit_deployment_has_is_listed_with_its_models():
    said = look()

    for name in ("database", "pgvector", "migrations", "clock", "vectors", "embedder"):
        assert line(said, name).startswith("ok"), said
    assert "384 dimensions, as registered" in line(said, "embedder")
    assert "not needed up to 20,000" in line(said, "vector index")


def test_an_entry_without_its_vectors_fails_with_the_remedy():
    make_entry()
    EntryEmbedding.objects.all().delete()

    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("doctor", "--no-models", stdout=out, no_color=True)

    assert end.value.code == 1
    assert line(out.getvalue(), "vectors").startswith("FAIL")
    assert "1 entries wait to be embedded" in out.getvalue()
    assert "Start workers" in out.getvalue()


def test_settings_unfit_for_the_open_internet_warn_and_do_not_fail(settings):
    settings.SESSION_COOKIE_SECURE = False

    said = look(no_models=True)

    assert "SESSION_COOKIE_SECURE is not set to True (security.W012)" in said


def test_a_knowledge_base_whose_language_the_embedder_does_not_read_warns():
    make_knowledge_base(language="de")

    said = look(no_models=True)

    assert line(said, "languages").startswith("warn")
    assert "read English, not the language of " in line(said, "languages")
    assert "use-another-language" in said


@pytest.mark.slow
def test_knowledge_bases_in_which_unverified_entries_answer_are_named():
    assert "answers nothing by default" in line(look(no_models=True), "unverified")

    base = active_policy(make_knowledge_base())
    activate(new_version(base, by=None, unverified_floor=0.75), by=None)

    said = line(look(no_models=True), "unverified")
    assert said.startswith("ok")
    assert said.endswith("answers by unverified_floor in cards")


def test_a_mail_server_that_does_not_answer_warns_with_its_address(settings):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings.MAIL_URL = f"smtp://127.0.0.1:{port}"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"

    said = look(no_models=True)

    assert line(said, "mail").startswith("warn")
    assert f"127.0.0.1:{port}: " in line(said, "mail")
    assert "Correct NESCIO_MAIL_URL" in said


@pytest.mark.slow
def test_a_chat_whose_account_is_missing_warns(settings):
    settings.TEAMS_SECRETS, settings.TEAMS_ACCOUNT = ["c2VjcmV0"], "teams"
    assert "'teams' of this chat is a superuser's, or it does not" in line(
        look(no_models=True), "teams"
    )

    make_user(username="teams")
    assert line(look(no_models=True), "teams").startswith("ok")
