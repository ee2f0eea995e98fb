"""Sign-in by a real OpenID Connect provider, which runs as a process of its own."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.management import call_command
from django.db import connections
from django.db.models.signals import pre_save
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import ApiToken, AuditEntry, ProviderAccount, ProviderGroup
from accounts.provider.linking import sign_in_by_claims
from accounts.provider.pages import sign_in_path
from accounts.roles import Role
from accounts.services import create_token
from tests.accounts import identity_provider
from tests.clients import inline_rows, page_client
from tests.factories import make_audience, make_user, set_role
from tests.nescio.running import free_port

PASSWORD = "correct horse battery"
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def issuer():
    with identity_provider.running(free_port()) as address:
        yield address


@pytest.fixture(autouse=True)
def provider(issuer, settings):
    identity_provider.use(settings, issuer)
    maps("desk", "agent")
    return issuer


def maps(name: str, *groups: str, **fields) -> ProviderGroup:
    row, _ = ProviderGroup.objects.update_or_create(name=name, defaults=fields)
    row.groups.set([Group.objects.get_or_create(name=each)[0] for each in groups])
    return row


def begin(client: Client) -> str:
    """Return the provider's address that the browser is sent to."""
    return client.get("/login/provider", {"next": "/answers"})["Location"]


def consent(address: str, subject: str, **claims) -> str:
    """Sign in at the provider; return where it sends the browser back to."""
    parts = urlsplit(address)
    described = {"groups": ["desk"], "preferred_username": subject, **claims}
    users = f"{parts.scheme}://{parts.netloc}/users/{subject}"
    requests.put(users, json=described, timeout=10).raise_for_status()
    given = requests.post(
        address, data={"sub": subject}, allow_redirects=False, timeout=10
    )
    return given.headers["Location"].removeprefix("http://testserver")


def sign_in(client: Client, subject: str = "ada", **claims):
    return client.get(consent(begin(client), subject, **claims))


def is_signed_in(client: Client) -> bool:
    return client.get("/tokens").status_code == 200


def test_the_first_sign_in_makes_an_account_with_what_its_groups_open(client):
    maps("cards-experts", "sme", "cards-staff")
    make_audience("cards-staff", groups=["cards-staff"])
    page = client.get("/login").content.decode()

    done = sign_in(
        client, given_name="Ada", email="ada@example.org", groups=["cards-experts", "x"]
    )

    assert "Sign in with Example ID" in page
    assert (done.status_code, done["Location"]) == (302, "/answers")
    ada = User.objects.get(username="ada")
    assert {group.name for group in ada.groups.all()} == {"sme", "cards-staff"}
    assert (ada.first_name, ada.email) == ("Ada", "ada@example.org")
    assert (ada.is_staff, ada.is_superuser) == (True, False)
    assert not ada.has_usable_password()
    assert client.session.get_expiry_age() <= 12 * 3600
    given = AuditEntry.objects.filter(kind="membership", reader="nescio:sign-in")
    assert {row.subject for row in given} == {"ada, sme", "ada, cards-staff"}


def test_a_group_that_was_taken_away_takes_its_role_at_the_next_sign_in(client):
    maps("experts", "sme")
    sign_in(client, groups=["desk", "experts"])
    ada = User.objects.get(username="ada")
    ada.groups.add(Group.objects.get(name="curator"))  # by hand

    sign_in(Client(), groups=["desk"])
    ada.refresh_from_db()
    assert [group.name for group in ada.groups.all()] == ["agent"]
    assert not ada.is_staff

    refused = sign_in(Client(), groups=["canteen"])
    assert refused.status_code == 403
    assert "(canteen) open nothing here" in refused.content.decode()
    assert not ada.groups.exists()


@pytest.mark.django_db(transaction=True)
def test_two_first_sign_ins_at_once_are_one_account(provider):
    claims = {
        "iss": provider,
        "sub": "ada",
        "preferred_username": "ada",
        "groups": ["desk"],
    }
    others = []

    def sign_in_elsewhere(**kwargs):
        pre_save.disconnect(sign_in_elsewhere, sender=User)
        with ThreadPoolExecutor(1) as thread:
            others.append(thread.submit(sign_in_by_claims, claims).result())
            thread.submit(connections.close_all).result()

    pre_save.connect(sign_in_elsewhere, sender=User)

    assert [sign_in_by_claims(claims)] == others
    assert ProviderAccount.objects.get().user == User.objects.get() == others[0]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"groups": ["canteen"]}, "open nothing here"),
        ({"groups": None}, "no groups in the claim"),
        ({"preferred_username": "a b"}, "can&#x27;t be a user name"),
    ],
)
def test_who_has_nothing_to_do_here_gets_no_account(client, claims, said):
    refused = sign_in(client, **claims)

    assert refused.status_code == 403
    assert said in refused.content.decode()
    assert not User.objects.filter(username="ada").exists()
    assert not is_signed_in(client)


def test_no_account_is_taken_over_by_an_equal_name_or_mail(client):
    root = User.objects.create_superuser("root", "root@example.org", PASSWORD)

    refused = sign_in(client, "by-name", preferred_username="Root")
    sign_in(client, "by-mail", email="root@example.org", groups=["desk", "root"])

    assert refused.status_code == 403
    assert "subject &#x27;by-name&#x27;" in refused.content.decode()
    assert User.objects.get(email="root@example.org", is_superuser=False).pk != root.pk
    assert client.session["_auth_user_id"] != str(root.pk)
    assert not ProviderAccount.objects.filter(user=root).exists()


def test_superusers_are_made_by_a_row_that_says_so_and_by_no_other(client):
    maps("operators", "admin")
    sign_in(client, groups=["operators"])
    assert not User.objects.get(username="ada").is_superuser

    maps("operators", "admin", is_superuser=True)
    sign_in(Client(), groups=["operators"])
    assert User.objects.get(username="ada").is_superuser

    sign_in(Client(), groups=["desk"])
    assert not User.objects.get(username="ada").is_superuser


def test_who_becomes_a_superuser_begins_without_password_token_and_session(
    client, issuer
):
    maps("operators", "admin", is_superuser=True)
    set_role(mallory := make_user(username="mallory"), role=Role.ADMIN)
    mallory.set_password(PASSWORD)
    mallory.save()
    ProviderAccount.objects.create(user=mallory, issuer=issuer, subject="boss")
    create_token(user=mallory)
    own = page_client(mallory)
    assert is_signed_in(own)

    assert sign_in(client, "boss", groups=["operators"]).status_code == 302

    mallory.refresh_from_db()
    assert mallory.is_superuser
    assert not mallory.has_usable_password()
    assert not ApiToken.objects.exists()
    assert is_signed_in(client)
    assert not is_signed_in(own)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("wrong-audience", "InvalidAudienceError"),
        ("several-audiences", "InvalidAudienceError"),
        ("wrong-issuer", "InvalidIssuerError"),
        ("wrong-nonce", "SuspiciousOperation"),
        ("no-nonce", "SuspiciousOperation"),
        ("expired", "ExpiredSignatureError"),
        ("unsigned", "InvalidAlgorithmError"),
        ("foreign-key", "InvalidSignatureError"),
        ("other-person", "another person"),
    ],
)
def test_a_token_that_does_not_hold_signs_nobody_in(client, fault, found):
    refused = sign_in(client, fault)

    assert refused.status_code == 403
    assert found in refused.content.decode()
    assert not is_signed_in(client)
    assert not User.objects.filter(username=fault).exists()


def test_a_code_counts_only_in_the_browser_and_for_the_start_that_it_was_given_to(
    client,
):
    back = consent(begin(client), "ada")
    stranger = Client()
    begin(stranger)
    assert stranger.get(back).status_code == 403  # another's state

    own = parse_qs(urlsplit(begin(stranger)).query)["state"][0]
    (code,) = parse_qs(urlsplit(back).query)["code"]
    mixed = {"code": code, "state": own}
    injected = stranger.get("/login/provider/callback", mixed)
    assert injected.status_code == 403  # PKCE: another's verifier

    back = consent(begin(client), "ada")
    assert client.get(back).status_code == 302
    assert Client().get(back).status_code == 403
    assert client.get(back).status_code == 403  # a second time


def test_a_code_in_the_address_of_the_password_form_is_not_redeemed(client):
    back = consent(begin(client), "no-nonce")

    form = client.post(
        back.replace("/login/provider/callback", "/login"),
        {"username": "x", "password": "y"},
    )

    assert form.status_code == 200
    assert not is_signed_in(client)
    assert not User.objects.filter(username="no-nonce").exists()


def test_what_the_person_denied_at_the_provider_is_said(client):
    denied = requests.post(
        begin(client), data={"action": "deny"}, allow_redirects=False, timeout=10
    )

    page = client.get(denied.headers["Location"].removeprefix("http://testserver"))

    assert page.status_code == 403
    assert "cancelled" in page.content.decode()


def test_a_link_that_makes_up_an_error_ends_no_session_and_says_nothing(client):
    sign_in(client)
    made_up = {"error": "x", "error_description": "Call 555", "state": "y"}

    page = client.get("/login/provider/callback", made_up)

    assert page.status_code == 403
    assert "Call 555" not in page.content.decode()
    assert is_signed_in(client)


def test_who_is_closed_here_is_out_for_good_and_stays_out(client, admin_client):
    sign_in(client)
    ada = User.objects.get(username="ada")
    create_token(user=ada)
    address = reverse("admin:auth_user_change", args=[ada.pk])
    inline = {
        f"provider_account-{name}": value
        for name, value in {
            "TOTAL_FORMS": 1, "INITIAL_FORMS": 1, "0-user": ada.pk,
            "0-id": ada.provider_account.pk, "0-issuer": ada.provider_account.issuer,
            "0-subject": "ada",
        }.items()
    }  # fmt: skip

    closed = admin_client.post(
        address, {"username": "ada", **inline, **inline_rows("knowledge_roles")}
    )
    assert closed.status_code == 302
    assert not ApiToken.objects.exists()
    assert not is_signed_in(client)
    refused = sign_in(Client())
    assert "is closed here" in refused.content.decode()

    User.objects.filter(pk=ada.pk).update(is_active=True)
    assert not is_signed_in(client)


def test_an_administrator_connects_an_account_that_was_here_before(
    client, admin_client, provider
):
    set_role(old := make_user(Role.AGENT, username="ada"), role=Role.SME)
    address = reverse("admin:auth_user_change", args=[old.pk])
    account = {"user": old.pk, "issuer": provider, "subject": "4711"}
    given = {
        **inline_rows("provider_account", account),
        **inline_rows("knowledge_roles"),
    }
    admin_client.post(address, {"username": "ada", "is_active": "on", **given})

    assert sign_in(client, "4711", preferred_username="other").status_code == 302
    assert client.session["_auth_user_id"] == str(old.pk)
    assert [group.name for group in old.groups.all()] == ["agent"]


def test_without_a_claim_of_groups_only_connected_accounts_come_in(client, settings):
    settings.OIDC_GROUPS_CLAIM = ""
    refused = sign_in(client)
    assert "must create and connect one" in refused.content.decode()

    ada = make_user(Role.CURATOR, username="ada")
    ProviderAccount.objects.create(user=ada, issuer=settings.OIDC_ISSUER, subject="ada")
    assert sign_in(client).status_code == 302
    assert [group.name for group in ada.groups.all()] == ["curator"]


def test_groups_are_found_by_a_path_and_one_row_is_for_everybody(client, settings):
    settings.OIDC_GROUPS_CLAIM = "realm_access.roles"
    maps("experts", "sme")
    maps("*", "cards-staff")

    sign_in(client, groups=None, realm_access={"roles": ["experts", 7]})

    names = User.objects.get(username="ada").groups.values_list("name", flat=True)
    assert set(names) == {"sme", "cards-staff"}


def test_passwords_can_be_switched_off_and_an_operator_still_gets_in(client, settings):
    settings.LOCAL_SIGN_IN = False
    settings.AUTHENTICATION_BACKENDS = [
        "accounts.authentication.AccountBackend",
        settings.AUTHENTICATION_BACKENDS[-1],
    ]
    root = User.objects.create_superuser("root", password=PASSWORD)
    given = {"username": "root", "password": PASSWORD}

    assert "Password" not in client.get("/login").content.decode()
    assert client.post("/login", given).status_code == 403
    refused = APIClient().post("/api/v1/tokens", given, format="json")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "local_sign_in_off"
    assert client.get("/admin/login/?next=/admin/")["Location"].startswith("/login?")
    client.post("/admin/login/", given)
    assert not is_signed_in(client)

    out = StringIO()
    call_command("sign_in_link", "root", stdout=out)
    path = out.getvalue().strip().removeprefix(settings.PUBLIC_URL)
    assert client.get(path + "x").status_code == 403
    assert client.get(path).status_code == 302
    assert client.session["_auth_user_id"] == str(root.pk)
    assert client.session.get_expiry_age() <= 12 * 3600
    assert client.get("/admin/").status_code == 200
    assert Client().get(path).status_code == 403  # once


def test_a_link_of_an_operator_ends_after_ten_minutes(client, monkeypatch):
    path = sign_in_path(User.objects.create_superuser("root", password=PASSWORD))
    later = timezone.make_naive(timezone.now()) + timedelta(minutes=10, seconds=2)

    monkeypatch.setattr(PasswordResetTokenGenerator, "_now", lambda _: later)

    assert client.get(path).status_code == 403


def test_after_sign_out_the_providers_own_is_offered(client, provider):
    sign_in(client)

    page = client.post("/logout", follow=True).content.decode()

    (address,) = re.findall(r'href="(http[^"]*end_session[^"]*)"', page)
    assert address.startswith(f"{provider}/oauth2/end_session?client_id=nescio")
    assert not is_signed_in(client)
    assert "end_session" not in client.get("/login").content.decode()


@pytest.mark.slow
def test_a_provider_that_does_not_answer_is_said_and_found_by_doctor(
    client, settings, provider, monkeypatch
):
    said = StringIO()
    call_command("doctor", "--no-models", stdout=said, no_color=True)
    assert re.search(rf"ok +sign-in +{provider}, RS256", said.getvalue())

    settings.OIDC_ISSUER = f"http://localhost:{free_port()}"
    page = client.get("/login/provider")
    assert page.status_code == 503
    assert "NESCIO_OIDC_ISSUER" in page.content.decode()
    with monkeypatch.context() as patch:
        patch.setattr(requests, "get", None)  # it is not asked again at once
        assert client.get("/login/provider").status_code == 503
    said = StringIO()
    call_command("doctor", "--no-models", stdout=said, no_color=True)
    assert re.search(r"warn +sign-in +The identity provider", said.getvalue())

    settings.OIDC_ISSUER = provider.replace("localhost", "127.0.0.1") + "/"
    assert "names the issuer" in client.get("/login/provider").content.decode()


@pytest.mark.slow
def test_a_discovery_document_that_is_a_list_is_said(client, settings):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'["is not a discovery document"]')

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        settings.OIDC_ISSUER = f"http://127.0.0.1:{server.server_port}"
        page = client.get("/login/provider")
        server.shutdown()

    assert page.status_code == 503
    assert "is not a discovery document" in page.content.decode()


def test_the_table_is_on_record_and_only_superusers_make_superusers(client):
    set_role(boss := make_user(role=None, username="boss"), role=Role.ADMIN)
    client.force_login(boss)
    agent = Group.objects.get(name="agent")
    form = {"name": "staff", "groups": [agent.pk], "is_superuser": "on"}

    client.post(reverse("admin:accounts_providergroup_add"), form)

    row = ProviderGroup.objects.get(name="staff")
    assert not row.is_superuser
    made = AuditEntry.objects.filter(kind="provider group", actor="boss")
    assert {each.subject for each in made} == {"staff", "staff, agent"}
    listed = client.get(reverse("admin:accounts_providergroup_changelist"))
    assert listed.status_code == 200
    ProviderGroup.objects.update(is_superuser=True)
    address = reverse("admin:accounts_providergroup_change", args=[row.pk])
    assert client.post(address, {"name": "other"}).status_code == 403
