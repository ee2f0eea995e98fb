from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import ApiToken
from accounts.roles import Role
from accounts.services import create_token
from tests.factories import make_user

pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery"


@pytest.fixture
def agent(db) -> User:
    user = make_user(Role.AGENT, username="agnes")
    user.set_password(PASSWORD)
    user.save()
    return user


def with_token(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    return client


def sign_in(**given: object):
    asked = {"username": "agnes", "password": PASSWORD, **given}
    return APIClient().post("/api/v1/tokens", asked, format="json")


def test_signing_in_returns_a_token_that_works(agent):
    response = sign_in(name="help desk")

    assert response.status_code == 201
    made = response.json()
    assert made["name"] == "help desk"
    left = datetime.fromisoformat(made["expires_at"]) - timezone.now()
    assert timedelta(days=89) < left <= timedelta(days=90)
    listed = with_token(made["token"]).get("/api/v1/tokens").json()["results"]
    assert [token["id"] for token in listed] == [made["id"]]
    assert "token" not in listed[0]


def test_a_token_that_never_expires_is_asked_for_by_name(agent):
    assert sign_in(expires_in_days=None).json()["expires_at"] is None


def test_how_long_tokens_work_is_a_setting(agent, settings):
    settings.REST_KNOX = {**settings.REST_KNOX, "TOKEN_TTL": timedelta(days=7)}

    row = create_token(user=agent).row

    assert timedelta(days=6) < row.expiry - timezone.now() <= timedelta(days=7)


def test_bearer_is_accepted_as_token_is(agent):
    secret = create_token(user=agent).secret

    statuses = [
        APIClient().get("/api/v1/tokens", HTTP_AUTHORIZATION=header).status_code
        for header in (f"Bearer {secret}", f"bearer {secret}", f"Bearer {secret}0")
    ]

    assert statuses == [200, 200, 401]


def test_the_database_holds_nothing_that_authenticates(agent):
    issued = create_token(user=agent)

    kept = ApiToken.objects.values().get()

    assert all(issued.secret not in str(value) for value in kept.values())
    assert with_token(kept["digest"]).get("/api/v1/tokens").status_code == 401


@pytest.mark.parametrize(
    "given",
    [{"password": "wrong"}, {"username": "nobody"}, {"username": "ag\\u0000nes"}],
)
def test_wrong_credentials_are_401_and_make_nothing(agent, given):
    response = sign_in(**given)

    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_credentials"
    assert response["WWW-Authenticate"] == "Bearer, Token"
    assert not ApiToken.objects.exists()


def test_an_inactive_user_gets_no_token(agent):
    User.objects.update(is_active=False)

    assert sign_in().status_code == 401


def test_an_old_token_does_not_hinder_signing_in(agent):
    client = with_token("nsc_" + "0" * 64)

    response = client.post(
        "/api/v1/tokens",
        {"username": "agnes", "password": PASSWORD},
        format="json",
    )

    assert response.status_code == 201


def test_signing_in_is_throttled_by_name_and_address(agent, settings):
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {
            **settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"],
            "login": "3/day",
        },
    }
    wrong = [sign_in(password="wrong").status_code for _ in range(3)]

    throttled = sign_in()
    other_name = sign_in(username="someone else", password="wrong")

    assert wrong == [401, 401, 401]
    assert throttled.status_code == 429
    assert throttled.json()["error"]["code"] == "throttled"
    assert int(throttled["Retry-After"]) > 0
    said = [throttled[f"RateLimit-{name}"] for name in ("Limit", "Remaining", "Reset")]
    assert said == ["3", "0", throttled["Retry-After"]]
    assert other_name.status_code == 401


def test_the_admins_sign_in_page_counts_too(agent, settings, client):
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {
            **settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"],
            "login": "1/day",
        },
    }
    client.post("/admin/login/", {"username": "agnes", "password": "wrong"})

    assert sign_in().status_code == 429


@pytest.mark.parametrize("address", ["/login", "/admin/login/"])
def test_a_throttled_sign_in_says_so_on_pages(agent, settings, client, address):
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {
            **settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"],
            "login": "1/day",
        },
    }
    given = {"username": "agnes", "password": PASSWORD}
    client.post(address, {**given, "password": "wrong"})

    throttled = client.post(address, given)

    assert throttled.status_code == 429
    assert int(throttled["Retry-After"]) > 0
    assert "Too many attempts" in throttled.content.decode()
    assert "_auth_user_id" not in client.session


def test_a_forwarded_address_counts_only_behind_a_proxy_of_ours(agent, settings):
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {
            **settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"],
            "login": "1/day",
        },
    }
    asked = {"username": "agnes", "password": "wrong"}

    statuses = [
        APIClient().post(
            "/api/v1/tokens", asked, format="json", HTTP_X_FORWARDED_FOR=f"10.0.0.{n}"
        ).status_code
        for n in range(2)
    ]  # fmt: skip

    assert statuses == [401, 429]


def test_a_revoked_token_is_401(agent):
    issued = create_token(user=agent)
    client = with_token(issued.secret)

    revoked = client.delete(f"/api/v1/tokens/{issued.row.pk}")

    assert revoked.status_code == 204
    after = client.get("/api/v1/tokens")
    assert after.status_code == 401
    assert after.json()["error"]["code"] == "authentication_failed"


def test_an_expired_token_is_401(agent):
    issued = create_token(user=agent, expires_in=timedelta(days=1))
    ApiToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))

    response = with_token(issued.secret).get("/api/v1/tokens")

    assert response.status_code == 401
    error = response.json()["error"]
    assert error["code"] == "token_expired"
    assert error["message"].startswith("This token has expired; create a new one.")


def test_the_token_of_an_inactive_user_is_401(agent):
    issued = create_token(user=agent)
    User.objects.update(is_active=False)

    assert with_token(issued.secret).get("/api/v1/tokens").status_code == 401


@pytest.mark.parametrize(
    "header",
    ["Token", "Token a b", "Token \xff\xfe", "Token ünknown", "Token nsc_0", "Bearer"],
)
def test_a_malformed_header_is_401(db, header):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)

    assert client.get("/api/v1/tokens").status_code == 401


@pytest.mark.parametrize("method", ["PUT", "TRACE"])
def test_a_method_that_there_is_none_of_is_405_for_anybody(db, method):
    assert APIClient().generic(method, "/api/v1/tokens").status_code == 405


def test_another_users_token_is_404_and_stays(agent):
    other = create_token(user=make_user(Role.AGENT))
    client = with_token(create_token(user=agent).secret)

    response = client.delete(f"/api/v1/tokens/{other.row.pk}")

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "token_not_found"
    assert ApiToken.objects.filter(pk=other.row.pk).exists()


def test_an_admin_sees_and_revokes_everybodys_tokens(agent):
    other = create_token(user=agent)
    client = with_token(create_token(user=make_user(Role.ADMIN)).secret)

    listed = client.get("/api/v1/tokens").json()["results"]
    revoked = client.delete(f"/api/v1/tokens/{other.row.pk}")

    assert len(listed) == 2
    assert revoked.status_code == 204
    assert not ApiToken.objects.filter(pk=other.row.pk).exists()


def test_an_admin_revokes_no_superusers_token(agent):
    root = create_token(user=User.objects.create_superuser("root"))
    client = with_token(create_token(user=make_user(Role.ADMIN)).secret)

    refused = client.delete(f"/api/v1/tokens/{root.row.pk}")
    by_root = with_token(root.secret).delete(f"/api/v1/tokens/{root.row.pk}")

    assert refused.status_code == 404
    assert by_root.status_code == 204


def test_authentication_is_one_query(agent, django_assert_num_queries):
    client = with_token(create_token(user=agent).secret)

    with django_assert_num_queries(2):  # the token with its user's groups, the tokens
        client.get("/api/v1/tokens")


def test_a_role_taken_away_is_gone_with_the_next_request(agent):
    client = with_token(create_token(user=agent).secret)
    assert client.get("/api/v1/answers").status_code == 200

    agent.groups.clear()

    assert client.get("/api/v1/answers").status_code == 403


def test_the_command_prints_a_token_alone(agent, capsys):
    call_command("create_token", "agnes", "--name", "cron", "--days", "30")

    secret = capsys.readouterr().out.strip()
    assert with_token(secret).get("/api/v1/tokens").status_code == 200
    row = ApiToken.objects.get()
    assert row.name == "cron"
    assert timedelta(days=29) < row.expiry - timezone.now() <= timedelta(days=30)


def test_the_command_makes_a_token_that_never_expires_only_when_told(agent):
    call_command("create_token", "agnes", "--never-expires")
    call_command("create_token", "agnes", "--name", "default")

    assert ApiToken.objects.get(name="").expiry is None
    assert ApiToken.objects.get(name="default").expiry is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "no user 'nobody'"),
        (["agnes", "--days", "0"], "--days is 0"),
        (["agnes", "--days", "4000"], "--days is 4000"),
    ],
)
def test_the_command_says_what_is_wrong(agent, arguments, said):
    with pytest.raises(CommandError, match=said):
        call_command("create_token", *arguments)

    assert not ApiToken.objects.exists()


def test_the_command_makes_nothing_for_an_inactive_user(agent):
    User.objects.update(is_active=False)

    with pytest.raises(CommandError, match="not active"):
        call_command("create_token", "agnes")
