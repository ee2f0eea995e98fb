"""Who may open which page, and what the browser is told about it."""

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from accounts.roles import Role
from tests.clients import page_client
from tests.factories import make_entry, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db


def signed_in(role: Role | None = Role.AGENT, **fields) -> Client:
    return page_client(make_user(role, **fields))


def path_to(name: str) -> str:
    return reverse(name, args=[] if name in ("ask", "answers") else [uuid.uuid4()])


GUARDED = [
    ("get", "ask"),
    ("post", "ask"),
    ("get", "answers"),
    ("get", "answer"),
    ("post", "answer-stream"),
    ("post", "answer-retry"),
    ("post", "answer-vote"),
]


@pytest.mark.parametrize(("method", "name"), GUARDED)
def test_anonymous_is_sent_to_log_in(method, name):
    response = getattr(Client(), method)(path_to(name))

    assert response.status_code == 302
    assert response["Location"].startswith("/login?next=")


@pytest.mark.parametrize(("method", "name"), GUARDED)
def test_htmx_of_an_ended_session_is_sent_to_log_in_as_a_whole_page(method, name):
    response = getattr(Client(), method)(path_to(name), headers={"HX-Request": "true"})

    assert response.status_code == 401
    assert response["HX-Redirect"].startswith("/login")


@pytest.mark.parametrize(("method", "name"), GUARDED)
def test_account_without_a_role_is_told_what_it_needs(method, name):
    response = getattr(signed_in(None, username="newcomer"), method)(path_to(name))

    assert response.status_code == 403
    assert "newcomer has no role yet" in response.content.decode()


@pytest.mark.parametrize(("method", "name"), GUARDED[3:])
def test_foreign_answer_looks_like_a_missing_one(method, name):
    foreign = make_answer(make_user())
    client = signed_in()

    responses = [
        getattr(client, method)(reverse(name, args=[pk]))
        for pk in (foreign.pk, uuid.uuid4())
    ]

    assert [response.status_code for response in responses] == [404, 404]
    assert _shape(responses[0]) == _shape(responses[1])


def _shape(response):
    body = response.content.decode()
    return re.sub(r'value="[A-Za-z0-9]{64}"', "", body)  # the form's CSRF token


@pytest.mark.parametrize("role", [Role.SME, Role.CURATOR, Role.ADMIN])
def test_reviewers_see_every_answer(role):
    answer = make_answer(make_user(username="somebody"))

    response = signed_in(role).get(reverse("answer", args=[answer.pk]))

    assert response.status_code == 200
    assert "asked by somebody" in response.content.decode()


def test_list_holds_own_questions_alone():
    make_answer(make_user(), question="A foreign question?")
    user = make_user()
    make_answer(user, question="My own question?")
    client = page_client(user)

    body = client.get(reverse("answers")).content.decode()

    assert "My own question?" in body
    assert "A foreign question?" not in body


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("q=gold", ["gold"]),
        ("outcome=refused", ["silver"]),
        ("outcome=answered", ["gold"]),
        ("outcome=nonsense", ["gold", "silver"]),
        ("page=999", ["gold", "silver"]),
        ("page=x", ["gold", "silver"]),
        ("q=%00", ["gold", "silver"]),
        ("q=nothing+like+it", []),
    ],
)
def test_list_narrows_and_survives_nonsense(query, shown):
    user = make_user()
    make_answer(user, question="What is the gold fee?", cited=(make_entry(),))
    make_answer(user, question="What is the silver fee?")
    client = page_client(user)

    response = client.get(f"{reverse('answers')}?{query}")

    assert response.status_code == 200
    body = response.content.decode()
    assert [w for w in ("gold", "silver") if f"the {w} fee" in body] == shown


@pytest.mark.parametrize("name", ["ask", "answer-vote", "answer-retry"])
def test_every_post_needs_a_csrf_token(name):
    user = make_user()
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    answer = make_answer(user)

    response = client.post(reverse(name, args=[] if name == "ask" else [answer.pk]))

    assert response.status_code == 403
    assert "This page is too old" in response.content.decode()


@pytest.mark.parametrize("path", ["/", "/login", "/answers", "/no/such/page"])
def test_our_pages_forbid_inline_code_and_foreign_origins(path):
    policy = signed_in().get(path)["Content-Security-Policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_admin_may_eval_and_style_but_run_no_inline_script():
    client = page_client(make_user(username="boss"))

    policy = client.get("/admin/login/")["Content-Security-Policy"]

    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["script-src"] == "'self' 'unsafe-eval'"
    assert directives["style-src"] == "'self' 'unsafe-inline'"
    assert directives["default-src"] == "'none'"


def test_pages_are_kept_out_of_caches():
    assert "no-store" in signed_in().get("/")["Cache-Control"]


def test_login_leads_to_the_page_that_was_asked_for_and_nowhere_else():
    user = make_user(username="maria")
    user.set_password("correct horse battery")
    user.save()
    credentials = {"username": "maria", "password": "correct horse battery"}

    own = Client().post("/login", {**credentials, "next": "/answers"})
    foreign = Client().post("/login", {**credentials, "next": "https://evil.example/"})

    assert own["Location"] == "/answers"
    assert foreign["Location"] == "/"


def test_wrong_password_is_said_without_telling_which_part_is_wrong():
    response = Client().post("/login", {"username": "nobody", "password": "wrong"})

    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()


def test_logging_out_is_a_post_and_ends_the_session():
    client = signed_in()

    assert client.get("/logout").status_code == 405
    assert client.post("/logout")["Location"] == "/login"
    assert client.get("/").status_code == 302


@pytest.mark.parametrize("path", ["/no/such/page", "/answers/not-a-uuid"])
def test_missing_page_looks_like_the_rest(path):
    response = signed_in().get(path)

    assert response.status_code == 404
    assert "Page not found" in response.content.decode()
    assert "The address may be mistyped" in response.content.decode()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/knowledge/entries/99", "This entry does not exist, is not in use any more"),
        ("/knowledge/documents/99", "This document does not exist, or you may not"),
        (f"/answers/{uuid.UUID(int=0)}", "or somebody else asked the question."),
    ],
)
def test_a_missing_row_is_named_as_its_page_says_it(path, said):
    response = signed_in().get(path)

    assert response.status_code == 404
    body = response.content.decode()
    assert said in body
    assert "The address may be mistyped" not in body


def test_broken_page_stands_alone(client, monkeypatch):
    client.raise_request_exception = False
    monkeypatch.setattr("django.contrib.auth.views.LoginView.get", lambda *_: 1 / 0)

    response = client.get("/login")

    assert response.status_code == 500
    assert "Something went wrong" in response.content.decode()


def test_pages_load_nothing_inline_and_nothing_foreign():
    user = make_user()
    answer = make_answer(user, cited=(make_entry(),))
    client = page_client(user)

    for path in ("/", "/login", "/answers", reverse("answer", args=[answer.pk])):
        body = client.get(path, follow=True).content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)", body)
        assert not re.search(r"\s(?:style|on[a-z]+)=", body)
        assert not re.search(r'(?:src|href)="(?:https?:)?//', body)
