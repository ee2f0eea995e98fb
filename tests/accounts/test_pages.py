"""The page of one's own API tokens."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import ApiToken, Preferences
from accounts.services import create_token, preferences_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(client):
    user = make_user(username="agnes")
    client.force_login(user)
    return user


def test_a_token_is_made_shown_once_and_works(client, user):
    made = client.post("/tokens", {"name": "help desk", "days": "30"})
    (secret,) = re.findall(r"nsc_\w{20,}", made.content.decode())
    again = client.get("/tokens").content.decode()

    row = ApiToken.objects.get(user=user)
    assert row.name == "help desk"
    assert timedelta(days=29) < row.expiry - timezone.now() <= timedelta(days=30)
    assert "no-store" in made["Cache-Control"]
    assert "help desk" in again
    assert secret not in again
    assert 'class="token"' not in again  # underlined: a word of an answer
    program = APIClient()
    program.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert program.get("/api/v1/tokens").status_code == 200


def test_the_days_that_tokens_work_by_default_are_filled_in(client, user, settings):
    settings.TOKEN_DAYS = 45

    assert 'value="45"' in client.get("/tokens").content.decode()


@pytest.mark.parametrize("days", ["0", "4000", "", "x"])
def test_what_is_no_number_of_days_is_refused_with_the_reason(client, user, days):
    refused = client.post("/tokens", {"name": "help desk", "days": days})

    assert refused.status_code == 400
    assert 'role="alert"' in refused.content.decode()
    assert not ApiToken.objects.exists()


def test_ones_own_token_is_revoked_and_nobody_elses(client, user):
    own = create_token(user=user).row
    others = create_token(user=make_user()).row

    for row in (own, others, own):
        response = client.post(f"/tokens/{row.pk}/revoke")
        assert response.status_code == 302

    assert ApiToken.objects.get() == others


def test_a_link_revokes_nothing(client, user):
    row = create_token(user=user).row

    assert client.get(f"/tokens/{row.pk}/revoke").status_code == 405
    assert ApiToken.objects.exists()


WORDS = "another horse, another battery"


def change_password(client, old: str, **more: str):
    words = {"new_password1": WORDS, "new_password2": WORDS}
    return client.post("/profile", {"old_password": old, **words, **more})


def test_a_password_is_changed_by_who_knows_the_old_one(client, user):
    user.set_password("correct horse battery")
    user.save()
    client.force_login(user)
    create_token(user=user, name="help desk", expires_in=timedelta(days=1))

    refused = change_password(client, "a guess", revoke_tokens="on")
    user.refresh_from_db()
    assert (refused.status_code, user.check_password(WORDS)) == (400, False)
    assert ApiToken.objects.filter(user=user).exists()

    changed = change_password(client, "correct horse battery", revoke_tokens="on")
    user.refresh_from_db()
    assert (changed.status_code, user.check_password(WORDS)) == (302, True)
    assert not ApiToken.objects.filter(user=user).exists()
    assert client.get("/profile").status_code == 200  # still signed in


def test_who_has_no_password_here_is_not_offered_to_change_it(client, user, settings):
    user.set_unusable_password()
    user.save()
    client.force_login(user)

    assert "old_password" not in client.get("/profile").content.decode()
    change_password(client, "")
    user.refresh_from_db()
    assert not user.has_usable_password()
    settings.LOCAL_SIGN_IN = False
    assert change_password(client, "").status_code == 403


def test_guesses_at_a_password_are_counted_as_those_at_the_sign_in(client, user):
    user.set_password("correct horse battery")
    user.save()
    client.force_login(user)

    # Twice as many as a minute takes: another may begin in between.
    codes = [change_password(client, "a guess").status_code for _ in range(42)]

    assert codes[0] == 400
    assert 429 in codes


def test_language_and_mails_are_kept_and_shown(client, user):
    assert preferences_of(user).mails_notices

    kept = client.post("/profile/preferences", {"language": "de"}, follow=True)

    assert "Saved." in kept.content.decode()
    assert '<option value="de" selected>' in kept.content.decode()
    row = Preferences.objects.get(user=user)
    assert (row.language, row.mails_notices) == ("de", False)


def test_an_unknown_language_is_refused_with_the_reason(client, user):
    refused = client.post("/profile/preferences", {"language": "fr"}, follow=True)

    assert "fr is not one of the available choices" in refused.content.decode()
    assert not Preferences.objects.exists()
