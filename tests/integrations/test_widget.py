"""The widget's three addresses: who may call them, from where, and what they give away."""

import time

import jwt
import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from rest_framework.test import APIClient

from accounts.models import AuditEntry
from accounts.roles import Role
from accounts.services import create_token
from integrations.widget import tokens
from integrations.widget.models import Widget
from integrations.widget.tokens import OriginFormError, as_origin
from qa.models import Answer, Vote
from qa.policies.wording import WORDS
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_user,
    set_role,
)
from tests.qa.answer_rows import make_answer

HOME = "https://intranet.example"
FEE = "What does a replacement card cost?"
CODEWORD = "What is the codeword?"

pytestmark = pytest.mark.django_db


@pytest.fixture
def widget() -> Widget:
    make_entry("It costs 12 euros.", question=FEE)
    return Widget.objects.create(
        name="cards-help",
        knowledge_base=make_knowledge_base(),
        account=make_user(username="cards widget"),
        origins=[HOME],
    )


def call(path: str, body=None, *, token="", origin: str | None = HOME, method="post"):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if origin is not None:
        headers["origin"] = origin
    send = getattr(APIClient(), method)
    return send(f"/widget/cards-help/{path}", body or {}, "json", headers=headers)


def token_of(**fields: object) -> str:
    token: str = call("token", fields).json()["token"]
    return token


def claim_of(widget: Widget, sub: str, **fields: object) -> str:
    now = int(time.time())
    said = {"sub": sub, "aud": widget.name, "iat": now, "exp": now + 300, **fields}
    return jwt.encode(said, widget.secret, "HS256")


def code(response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def test_a_page_asks_and_votes_as_the_widgets_account(widget):
    token = token_of()
    response = call("ask", {"question": FEE}, token=token)
    answer = response.json()

    assert answer["answered"] is True
    assert answer["text"] == "It costs 12 euros."
    (cited,) = answer["citations"]
    assert (cited["verified"], cited["question"]) == (True, FEE)
    kept = Answer.objects.get()
    assert (str(kept.asker), kept.service) == ("cards widget", "")

    path = f"answers/{answer['id']}/vote"
    for rating in ("up", "down", None):
        said = call(path, {"rating": rating}, token=token, method="put")
        assert said.json() == {"rating": rating, "entry": None}
    assert not Vote.objects.exists()


def test_a_table_comes_as_its_rows(widget):
    question = "What does a copy cost?"
    make_entry("Copy | Price\nA4 <b> | £0.60\nA3 | £0.90", question=question)

    answer = call("ask", {"question": question}, token=token_of()).json()

    rows = [["Copy", "Price"], ["A4 <b>", "£0.60"], ["A3", "£0.90"]]
    table = {"kind": "table", "first": 1, "rows": rows, "has_headings": True}
    assert answer["blocks"] == [table]
    assert answer["citations"][0]["blocks"] == answer["blocks"]
    assert answer["text"] == "Copy | Price\nA4 <b> | £0.60\nA3 | £0.90"


def test_a_refusal_says_why_and_what_was_near(widget):
    make_entry("A replacement card is sent within three days.")
    answer = call("ask", {"question": "Who won in 1974?"}, token=token_of()).json()

    assert (answer["answered"], answer["citations"]) == (False, [])
    assert answer["title"]
    assert answer["text"]


def test_a_refusal_sends_a_reader_to_no_expert(widget):
    make_entry("A replacement card is sent within three days.")

    for question in ("Who won in 1974?", "Wer hat die Partie Schach gewonnen?"):
        answer = call("ask", {"question": question}, token=token_of()).json()

        words = WORDS[answer["words"]["language"]].reasons[answer["reason"]]
        assert answer["text"] == words.reader != words.asker


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_words_for_readers_name_an_expert(language):
    for words in WORDS[language].reasons.values():
        said = (words.reader or words.asker).lower()

        for who in ("expert", "colleague", "fachperson", "administrat"):
            assert who not in said


def test_a_reader_chooses_what_the_question_means(widget):
    entry = make_entry("A replacement card is sent within three days.")
    answer = make_answer(widget.account, near_misses=(entry,))

    path, token = f"answers/{answer.pk}/choice", token_of()
    said = call(path, {"entry": entry.pk}, token=token, method="put")

    assert said.json() == {"rating": "down", "entry": entry.pk}
    assert Vote.objects.get().answering_entry == entry
    call(path, {"entry": None}, token=token, method="put")
    assert not Vote.objects.exists()
    other = make_entry("It costs nothing.")
    wrong = call(path, {"entry": other.pk}, token=token, method="put")
    assert wrong.status_code == 409
    assert call(path, {"entry": entry.pk}, method="put").status_code == 401


def test_a_german_question_is_refused_in_german(widget):
    make_entry("A replacement card is sent within three days.")
    asked = {"question": "Wer hat die Partie Schach gewonnen?"}

    answer = call("ask", asked, token=token_of()).json()

    words = WORDS["de"]
    assert answer["title"] == words.reasons[answer["reason"]].title
    assert (answer["language"], answer["entry_language"]) == ("de", "en")
    assert answer["words"].pop("language") == "de"
    assert answer["words"].items() <= words.labels.items()


def test_a_reader_gets_no_threshold_signal_or_model(widget):
    token = token_of()
    for question in (FEE, "Who won in 1974?"):
        answer = call("ask", {"question": question}, token=token).json()
        assert answer.keys() == {
            "id", "question", "language", "answered", "text", "blocks", "unsourced", "reason",
            "title", "words", "entry_language", "citations", "meanings", "near_misses", "disagreements",
        }  # fmt: skip
        for piece in answer["citations"] + answer["near_misses"]:
            assert not piece.keys() & {"entry", "revision", "distance", "confidence"}


@pytest.mark.parametrize(
    "origin", [None, "", "null", "https://evil.example", HOME.upper(), f"{HOME}.evil"]
)
def test_other_origins_get_nothing_whatever_they_hold(widget, origin):
    token = token_of()
    vote = "answers/00000000-0000-0000-0000-000000000000/vote"
    for path, method in (("token", "post"), ("ask", "post"), (vote, "put")):
        response = call(
            path, {"question": FEE}, token=token, origin=origin, method=method
        )
        if path == "token":
            response = call(path, {}, origin=origin)
        assert code(response) == (403, "origin_not_allowed")
        assert "Access-Control-Allow-Origin" not in response
        preflight = call(path, origin=origin, method="options")
        assert "Access-Control-Allow-Origin" not in preflight
    assert not Answer.objects.exists()


def test_a_token_belongs_to_its_origin_and_its_widget(widget):
    other = "https://other.example"
    widget.origins.append(other)
    widget.save()
    second = Widget.objects.create(
        name="second",
        knowledge_base=widget.knowledge_base,
        account=widget.account,
        origins=[HOME],
    )
    theirs = tokens.issue_token(second, HOME, "")

    at_other = call("ask", {"question": FEE}, token=token_of(), origin=other)
    assert code(at_other)[0] == 401
    assert code(call("ask", {"question": FEE}, token=theirs))[0] == 401


def test_browsers_are_allowed_the_exact_origin_and_no_cookies(widget):
    preflight = call("ask", method="options")

    assert preflight.status_code == 204
    assert preflight["Access-Control-Allow-Origin"] == HOME
    assert preflight["Access-Control-Allow-Headers"] == "authorization, content-type"
    assert preflight["Access-Control-Allow-Methods"] == "POST, OPTIONS"
    for response in (preflight, call("token"), call("ask"), call("ask", token="x")):
        assert response["Access-Control-Allow-Origin"] == HOME
        assert "Origin" in response["Vary"]
        assert "Access-Control-Allow-Credentials" not in response
    signed_in = APIClient()
    signed_in.force_login(make_user())
    headers = {"origin": HOME}
    response = signed_in.post(
        "/widget/cards-help/ask", {"question": FEE}, headers=headers
    )
    assert response.status_code == 401


def test_the_token_opens_nothing_else_and_no_other_token_opens_the_widget(widget):
    token = token_of()
    for address in ("/api/v1/answers", "/api/v1/entries", "/v1/models", "/mcp"):
        response = APIClient().get(
            address, headers={"authorization": f"Bearer {token}", "origin": HOME}
        )
        assert response.status_code == 401
        assert "Access-Control-Allow-Origin" not in response
    own = create_token(user=widget.account).secret
    assert call("ask", {"question": FEE}, token=own).status_code == 401


def test_an_expired_token_is_401_and_a_new_one_works(widget, monkeypatch):
    token = token_of()
    later = time.time() + tokens.TOKEN_SECONDS + 1
    monkeypatch.setattr("django.core.signing.time.time", lambda: later)

    assert code(call("ask", {"question": FEE}, token=token))[0] == 401
    assert call("ask", {"question": FEE}, token=token_of()).status_code == 200


def test_switching_off_removing_an_origin_and_a_new_secret_end_tokens_at_once(widget):
    def status() -> int:
        code: int = call("ask", {"question": FEE}, token=token).status_code
        return code

    token = token_of()
    assert status() == 200
    Widget.objects.update(origins=["https://moved.example"])
    assert status() == 403
    Widget.objects.update(origins=[HOME], secret_seed="other")
    assert status() == 401
    token = token_of()
    Widget.objects.update(is_active=False)
    assert status() == 404
    Widget.objects.update(is_active=True)
    User.objects.filter(pk=widget.account_id).update(is_active=False)
    assert status() == 404
    assert code(call("token")) == (404, "widget_not_found")


def test_readers_see_what_the_account_sees_and_no_more(widget):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Zwirbel.", question=CODEWORD, audience=vault)

    outside = call("ask", {"question": CODEWORD}, token=token_of())
    widget.account.groups.set(vault.groups.all().union(widget.account.groups.all()))
    inside = call("ask", {"question": CODEWORD}, token=token_of())

    assert "Zwirbel" not in outside.content.decode()
    assert inside.json()["text"] == "Zwirbel."


def test_no_role_above_agent_counts_and_no_superuser_is_asked_as(widget):
    answer = make_answer(make_user())
    set_role(widget.account, role=Role.ADMIN)
    token = token_of()
    assert call("ask", {"question": FEE}, token=token).status_code == 200
    vote = call(
        f"answers/{answer.pk}/vote", {"rating": "up"}, token=token, method="put"
    )
    assert vote.status_code == 404

    User.objects.filter(pk=widget.account_id).update(is_superuser=True)
    assert code(call("token")) == (403, "permission_denied")


def test_a_signed_claim_lets_a_named_reader_ask_as_themselves(widget):
    vault = make_audience("vault", groups=["vault"])
    make_entry("Zwirbel.", question=CODEWORD, audience=vault)
    make_user(username="ada", groups=["vault"])
    assert code(call("token", {"claim": claim_of(widget, "ada")}))[1] == "invalid_claim"
    Widget.objects.update(names_users=True)

    token = token_of(claim=claim_of(widget, "ada"))
    answer = call("ask", {"question": CODEWORD}, token=token).json()

    assert answer["text"] == "Zwirbel."
    kept = Answer.objects.get()
    assert (str(kept.asker), kept.service) == ("ada", "cards widget")
    assert AuditEntry.objects.get(kind="question for").subject == "ada"
    Widget.objects.update(names_users=False)
    assert call("ask", {"question": CODEWORD}, token=token).status_code == 403


def test_claims_that_are_forged_old_long_or_of_nobody_do_not_count(widget):
    Widget.objects.update(names_users=True)
    make_user(username="ada")
    User.objects.create_superuser("root")
    now = int(time.time())
    forged = jwt.encode(
        {"sub": "ada", "aud": widget.name, "iat": now, "exp": now + 60},
        "x" * 64,
        "HS256",
    )
    unsigned = jwt.encode(
        {"sub": "ada", "aud": widget.name, "iat": now, "exp": now + 60}, "", "none"
    )
    for claim in (
        forged,
        unsigned,
        "x",
        claim_of(widget, "ada", exp=now - 5),
        claim_of(widget, "ada", exp=now + 86_400),
        claim_of(widget, "ada", iat=str(now), exp=str(now + 86_400)),
        claim_of(widget, "ada", aud="another"),
    ):
        assert code(call("token", {"claim": claim})) == (403, "invalid_claim")
    assert code(call("token", {"claim": claim_of(widget, "nobody")}))[0] == 400
    assert code(call("token", {"claim": claim_of(widget, "root")}))[0] == 403


def test_one_address_is_slowed_down_and_uses_up_nobody_elses_share(widget, settings):
    rates = settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": {
            **rates, "widget": "4/hour", "widget_address": "2/hour",
        },
    }  # fmt: skip

    def fetch(address: str) -> int:
        url = "/widget/cards-help/token"
        client = APIClient(REMOTE_ADDR=address)
        return client.post(url, {}, "json", headers={"origin": HOME}).status_code

    assert [fetch("10.0.0.1") for _ in range(5)] == [200, 200, 429, 429, 429]
    assert [fetch("10.0.0.2") for _ in range(2)] == [200, 200]
    assert fetch("10.0.0.3") == 429


@pytest.mark.parametrize(
    "given",
    [
        "https://A.Example",
        "https://a.example/",
        "https://a.example:443",
        " https://a.example ",
    ],
)
def test_an_origin_is_kept_as_browsers_write_it(given):
    assert as_origin(given) == "https://a.example"
    assert as_origin("http://LOCALHOST:8080") == "http://localhost:8080"


@pytest.mark.parametrize(
    "given",
    ["*", "null", "a.example", "https://a.example/x", "https://*", "ftp://a", "https://ü.de",
     "https://a:b", "https://u@a.example", "https://:p@a.example", "javascript:alert(1)",
     "https://*.a.example", "https://a b", "https://a,b"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(given):
    with pytest.raises(OriginFormError):
        as_origin(given)


# The admin.


@pytest.fixture
def page(client):
    admin = make_user(username="ada")
    set_role(admin, role=Role.ADMIN)
    client.force_login(admin)
    return client


def add(page, account: User, **more: str):
    form = {
        "name": "new",
        "knowledge_base": make_knowledge_base().pk,
        "account": account.pk,
        "origins": f"{HOME}/\r\nhttp://localhost:8080",
        "is_active": "on",
        **more,
    }
    return page.post(reverse("admin:integrations_widget_add"), form)


def test_an_admin_makes_a_widget_which_is_audited(page):
    assert add(page, make_user(username="w"), names_users="on").status_code == 302

    made = Widget.objects.get()
    assert made.origins == [HOME, "http://localhost:8080"]
    assert made.names_users is False  # a superuser's business
    (entry,) = AuditEntry.objects.filter(kind="widget")
    assert (entry.actor, entry.action, entry.subject) == ("ada", "insert", "w, new")
    shown = page.get(reverse("admin:integrations_widget_change", args=[made.pk]))
    assert 'data-widget="new"' in shown.content.decode()
    page.post(
        reverse("admin:integrations_widget_changelist"),
        {"action": "switch_off", "_selected_action": made.pk},
    )
    assert not Widget.objects.get().is_active


@pytest.mark.parametrize("role", [Role.SME, None])
def test_the_account_may_ask_and_nothing_else(page, role):
    shown = add(page, make_user(role))

    assert shown.status_code == 200
    assert not Widget.objects.exists()


def test_nobody_publishes_what_they_may_not_see(page):
    make_audience("vault", groups=["vault"])
    shown = add(page, make_user(groups=["vault"])).content.decode()

    assert "an audience that you do not belong to" in shown
    assert not Widget.objects.exists()


def test_only_superusers_get_a_secret_that_signs_claims(page, widget, client):
    address = reverse("admin:integrations_widget_replace_secret", args=[widget.pk])
    assert page.post(address).status_code == 403

    client.force_login(User.objects.create_superuser("root"))
    shown = client.post(address).content.decode()

    widget.refresh_from_db()
    assert widget.secret in shown
    assert (
        widget.secret
        not in client.get(
            reverse("admin:integrations_widget_change", args=[widget.pk])
        ).content.decode()
    )


def test_a_broken_origin_is_said_on_the_form(page):
    shown = add(page, make_user(), origins="https://a.example/help")

    assert "is not an origin" in shown.content.decode()
