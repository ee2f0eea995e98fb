"""Links with which a person chooses a password: who makes them, and what they open."""

import html
import re
from smtplib import SMTPRecipientsRefused, SMTPServerDisconnected
from urllib.parse import urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from django.urls import reverse

from accounts.invitations import invite
from accounts.models import AuditEntry
from accounts.roles import Role
from tests.clients import inline_rows, page_client
from tests.factories import make_staff, make_user

pytestmark = pytest.mark.django_db

WORDS = "another horse, another battery"


class Down(EmailBackend):
    """A mail server that takes nothing."""

    def send_messages(self, messages):
        raise SMTPServerDisconnected("Connection unexpectedly closed")


class Knowing(EmailBackend):
    """A mail server that knows nobody."""

    def send_messages(self, messages):
        raise SMTPRecipientsRefused({"carla@example.org": (550, b"No such user")})


@pytest.fixture(autouse=True)
def without_a_mail_server(settings):
    settings.MAIL_URL = ""


@pytest.fixture
def admin_page(client):
    client.force_login(make_staff(Role.ADMIN, username="ada"))
    return client


def add_carla(page: Client, **changes: object):
    given: dict[str, object] = {"username": "carla", "email": "carla@example.org"}
    given |= {"usable_password": "false", **inline_rows("knowledge_roles")}
    given["groups"] = str(Group.objects.get(name="curator").pk)
    return page.post(reverse("admin:auth_user_add"), {**given, **changes})


def test_the_form_of_a_new_user_promises_no_second_page(admin_page):
    assert "edit more user options" not in unspaced(
        admin_page.get(reverse("admin:auth_user_add"))
    )


def unspaced(response) -> str:
    return " ".join(response.content.decode().split())


def path_in(text: str) -> str:
    links: list[str] = re.findall(r"http\S*/login/password/[^\s<]+", text)
    (link,) = links
    return urlsplit(link).path


def path_of(user: User) -> str:
    return urlsplit(invite(user).link).path


def choose(path: str, browser: Client):
    """Follow a link and send the form to which it leads."""
    (form, _) = browser.get(path, follow=True).redirect_chain[-1]
    return browser.post(form, {"new_password1": WORDS, "new_password2": WORDS})


def test_the_link_is_shown_once_and_the_person_chooses_a_password(admin_page, caplog):
    shown = add_carla(admin_page)
    assert "carla was added. Pass this link on" in unspaced(shown)
    assert "edit it again" not in unspaced(shown)
    path = path_in(shown.content.decode())
    carla = User.objects.get(username="carla")
    assert (carla.has_usable_password(), carla.is_staff) == (False, True)
    assert "no-store" in shown["Cache-Control"]
    token = path.rpartition("/")[2]
    assert token not in caplog.text
    assert not LogEntry.objects.filter(change_message__contains=token).exists()

    browser = Client()
    done = choose(path, browser)

    carla.refresh_from_db()
    assert (done.status_code, done["Location"]) == (302, "/")
    assert carla.check_password(WORDS)
    assert browser.session["_auth_user_id"] == str(carla.pk)
    assert Client().get(path).status_code == 403  # once
    changed = AuditEntry.objects.filter(actor="carla", subject="carla").get()
    assert changed.changes == {"password": ["…", "…"]}


def test_a_password_that_is_too_short_is_refused_and_the_link_works_on():
    user, browser = make_user(), Client()
    path = path_of(user)
    (form, _) = browser.get(path, follow=True).redirect_chain[-1]

    refused = browser.post(form, {"new_password1": "short", "new_password2": "short"})

    assert 'role="alert"' in refused.content.decode()
    assert choose(path, browser).status_code == 302


def test_where_mail_is_configured_the_link_is_mailed_and_not_shown(
    admin_page, settings
):
    settings.MAIL_URL = "smtp://localhost"
    settings.PUBLIC_URL = "https://nescio.example.org"

    made = add_carla(admin_page)

    page = unspaced(admin_page.get(made["Location"]))
    assert "carla was added. A link to choose a password was mailed to carla@ex" in page
    assert "edit it again" not in page
    assert "/login/password/" not in page
    (sent,) = mail.outbox
    assert sent.to == ["carla@example.org"]
    assert "https://nescio.example.org/login/password/" in sent.body
    assert choose(path_in(str(sent.body)), Client()).status_code == 302


@pytest.mark.parametrize(
    ("button", "leads_to"),
    [("_addanother", "/admin/auth/user/add/"), ("_popup", None)],
)
def test_behind_an_invitation_a_button_leads_where_it_says(
    admin_page, settings, button, leads_to
):
    settings.MAIL_URL = "smtp://localhost"

    made = add_carla(admin_page, **{button: "1"})

    assert made.get("Location") == leads_to
    assert ("popup_response" in str(made.content)) is (leads_to is None)
    assert len(mail.outbox) == 1


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (Down, "the mail server can't be reached, or broke off (Connection"),
        (Knowing, "the mail server refuses the address for good (550)"),
    ],
)
def test_a_mail_that_is_not_taken_leaves_the_link_to_the_administrator(
    admin_page, settings, caplog, server, said
):
    settings.MAIL_URL = "smtp://localhost"
    settings.EMAIL_BACKEND = f"{__name__}.{server.__name__}"

    page = html.unescape(add_carla(admin_page).content.decode())

    assert f"No mail to carla@example.org: {said}" in page
    assert ("may be mailed later" in page) is (server is Down)
    path = path_in(page)
    assert said in caplog.text
    assert "carla" not in caplog.text
    assert path not in caplog.text
    assert choose(path, Client()).status_code == 302


def test_a_new_link_is_made_for_who_forgot_the_password(admin_page):
    user = make_user(username="olga")
    address = reverse("admin:auth_user_send_link", args=[user.pk])

    assert "/login/password/" not in admin_page.get(address).content.decode()
    path = path_in(admin_page.post(address).content.decode())

    assert choose(path, Client()).status_code == 302
    user.refresh_from_db()
    assert user.check_password(WORDS)


def test_a_link_is_made_by_who_may_change_the_account_alone(admin_page):
    root = User.objects.create_superuser("root", password=WORDS)
    gone = make_user()
    User.objects.filter(pk=gone.pk).update(is_active=False)
    curator = page_client(make_staff(Role.CURATOR))

    for page, user in ((admin_page, root), (admin_page, gone), (curator, make_user())):
        address = reverse("admin:auth_user_send_link", args=[user.pk])
        assert page.get(address).status_code == page.post(address).status_code == 403


def test_a_link_ends_with_its_time_and_with_the_account(settings):
    user = make_user()
    path = path_of(user)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert Client().get(path).status_code == 403
    User.objects.filter(pk=user.pk).update(is_active=True)
    assert Client().get(path).status_code == 302

    settings.PASSWORD_RESET_TIMEOUT = -1

    assert Client().get(path).status_code == 403


def test_where_passwords_are_switched_off_there_is_no_such_offer(admin_page, settings):
    user = make_user()
    path = path_of(user)

    settings.LOCAL_SIGN_IN = False

    add = admin_page.get(reverse("admin:auth_user_add")).content.decode()
    assert "send an invitation" not in add
    assert add_carla(admin_page).status_code == 302
    address = reverse("admin:auth_user_send_link", args=[user.pk])
    assert admin_page.post(address).status_code == 403
    assert Client().get(path)["Location"] == "/login"


def test_who_signs_in_by_the_provider_gets_no_link(admin_page, settings):
    settings.OIDC_ISSUER = "https://id.example.org"

    made = add_carla(admin_page, usable_password="none")

    assert made.status_code == 302
    assert not User.objects.get(username="carla").has_usable_password()


def test_guesses_at_a_link_are_counted_as_those_at_the_sign_in():
    codes = [Client().get("/login/password/x/x").status_code for _ in range(101)]

    assert (codes[0], codes[-1]) == (403, 429)
