"""The admin's frame: navigation by task, dashboard, for each role what it may see."""

import json
import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from jobs.services import enqueue
from kb.demonstration import KNOWLEDGE, SLUG
from nescio.admin_site import UNFOLD, environment
from nescio.dashboard import add_figures, first_steps
from qa.calibration.self_calibration import set_settings
from qa.models import Answer
from tests.clients import page_client
from tests.factories import make_entry, make_knowledge_base, make_staff, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db


def figures(rf, user) -> dict[str, dict[str, int]]:
    request = rf.get("/admin/")
    request.user = user
    return {
        block.title: {figure.label: figure.count for figure in block.figures}
        for block in add_figures(request, {})["blocks"]
    }


def test_dashboard_counts_what_needs_a_person(rf):
    now = timezone.now()
    make_entry("A fact.")
    make_entry("A draft.", state="draft")
    make_entry("Due soon.", valid_until=now + timedelta(days=3))
    make_entry("Due much later.", valid_until=now + timedelta(days=300))
    make_entry("Gone.", valid_until=now - timedelta(days=1))
    make_entry("Gone, and a draft.", state="draft", valid_until=now)
    asker = make_user()
    make_answer(asker)
    make_answer(asker, reason="not_entitled", shown_reason="nothing_known")
    make_answer(asker, cited=(make_entry("Another fact."),))
    make_answer(asker, channel="evaluation")
    old = make_answer(asker)
    type(old).objects.filter(pk=old.pk).update(created_at=now - timedelta(days=8))
    enqueue("kb.embed", {})

    found = figures(rf, make_staff(Role.ADMIN))

    assert found["Entries by state"]["verified"] == 5
    assert found["Entries by state"]["draft"] == 2
    assert found["Waiting for you"]["Due entry"] == 2
    assert found["Expiry"] == {"expired": 1, "expire within 30 days": 1}
    assert found["Questions of the last 7 days"]["refused"] == 2
    assert found["Refusals of the last 7 days, by reason"] == {
        "No entry is close enough": 1,
        "Nothing is known about this": 1,
    }
    assert found["Background work"]["queued"] == 1


@pytest.mark.slow
def test_dashboard_shows_a_role_only_what_it_may_open(rf):
    make_entry()

    titles = {role: set(figures(rf, make_staff(role))) for role in Role}

    assert titles[Role.AGENT] == set()
    assert "Background work" not in titles[Role.SME]
    assert "Entries by state" in titles[Role.SME]
    assert "Background work" in titles[Role.ADMIN]


def test_who_has_no_role_in_the_admin_reads_who_is_signed_in(client):
    agent = make_user(username="nora")
    client.force_login(agent)

    page = client.get(reverse("admin:index"), follow=True).content.decode()

    assert "signed in as <strong>nora</strong>" in page
    client.logout()
    assert "signed in as" not in client.get(reverse("admin:login")).content.decode()


def test_an_empty_list_offers_to_reset_only_filters_that_are_set(client):
    client.force_login(make_staff(Role.ADMIN))
    address = reverse("admin:qa_vote_changelist")

    empty, narrowed, searched = (
        client.get(f"{address}{query}").text
        for query in ("", "?is_up__exact=1", "?q=nothing")
    )

    assert "No votes yet" in empty
    assert "Thumbs on answers and refusals are listed here" in empty
    assert "Reset filters" not in empty
    for page in (narrowed, searched):
        assert "No votes found" in page
        assert "Reset filters" in page


def test_resetting_a_list_that_opens_narrowed_shows_all_of_it(client):
    client.force_login(make_staff(Role.ADMIN))
    address = reverse("admin:qa_gap_changelist")

    opened = client.get(address, follow=True).text
    [reset] = re.findall(r'<a href="([^"]*)"[^>]*>Reset filters', opened)
    all_of_it = client.get(f"{address}{reset}")

    assert "No open gaps" in opened
    assert "Refused questions are gathered here" in opened
    assert all_of_it.status_code == 200
    assert "No gaps yet" in all_of_it.text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("qa/policy/calibration/99/", "There is no knowledge base 99."),
        ("probes/probe/99/curves/roc.svg", "There is no probe 99."),
        ("qa/evaluationrun/99/curves/roc.svg", "There is no evaluation run 99."),
        ("auth/user/99/data/", "There is no user 99."),
    ],
)
def test_a_row_that_is_not_there_is_named(client, path, said):
    client.force_login(User.objects.create_superuser("root"))

    response = client.get(f"/admin/{path}")

    assert response.status_code == 404
    assert said in response.text


def test_every_list_offers_to_add_a_row_or_says_what_it_will_hold(rf):
    request = rf.get("/admin/")
    request.user = User.objects.create_superuser("root")

    for model, model_admin in admin.site._registry.items():
        says = bool(getattr(model_admin, "when_empty", ""))
        assert says is not model_admin.has_add_permission(request), model


def test_dates_are_shown_by_iso_8601_in_lists_and_on_pages(client):
    client.force_login(make_staff(Role.ADMIN))
    answer = make_answer(make_user(username="ada"))
    at = datetime(2026, 11, 25, 20, 47, tzinfo=UTC)
    Answer.objects.filter(pk=answer.pk).update(created_at=at)

    listed = client.get(reverse("admin:qa_answer_changelist")).text
    record = client.get(reverse("admin:qa_answer_change", args=[answer.pk])).text
    page = client.get(reverse("answer", args=[answer.pk])).text

    for shown in (listed, record, page):
        assert "2026-11-25 20:47" in shown
        assert not re.search(r"\bNov\b|8:47 p\.m\.", shown)


@pytest.mark.parametrize("written", ["2026-11-25", "11/25/2026", "25 Nov 2026"])
def test_inputs_take_the_dates_that_they_took(written):
    assert forms.DateField().clean(written) == date(2026, 11, 25)
    assert str(forms.DateField().widget.format_value(date(2026, 11, 25))) == (
        "2026-11-25"
    )


@pytest.mark.slow
def test_every_figure_leads_to_a_list_that_holds_as_many(rf):
    now = timezone.now()
    make_entry("A draft.", state="draft")
    make_entry("Due soon.", valid_until=now + timedelta(days=3))
    make_entry("Gone.", valid_until=now - timedelta(days=1))
    make_entry("Gone, and a draft.", state="draft", valid_until=now)
    make_answer(make_user())
    make_answer(make_user(), channel="evaluation")
    old = make_answer(make_user())
    type(old).objects.filter(pk=old.pk).update(created_at=now - timedelta(days=8))
    enqueue("kb.embed", {})
    user = make_staff(Role.ADMIN)
    request = rf.get("/admin/")
    request.user = user
    client = page_client(user)

    counted = [
        (figure.link, figure.count)
        for block in add_figures(request, {})["blocks"]
        for figure in block.figures
    ]
    shown = []
    for link, _ in counted:
        response = client.get(link)
        assert response.status_code == 200, link
        page = response.context
        is_list = "cl" in page
        shown.append((link, page["cl"].result_count if is_list else len(page["rows"])))

    assert len(counted) > 10
    assert shown == counted


@pytest.mark.slow
def test_first_steps_are_listed_until_all_are_done():
    boss = make_staff(Role.ADMIN)
    demonstration = make_knowledge_base()
    assert demonstration.slug == SLUG == json.loads(KNOWLEDGE.read_text())["knowledge_base"]["slug"]  # fmt: skip

    def done() -> list[bool]:
        return [step.is_done for step in first_steps(boss)]

    assert done() == [False] * 5
    page = page_client(boss).get("/admin/").content.decode()
    assert "Import your knowledge" in page
    links = [step.link for step in first_steps(boss)]
    assert [page_client(boss).get(link, follow=True).status_code for link in links] == [
        200
    ] * 5
    make_entry("Of the demonstration.")
    make_entry("Our own.", knowledge_base=make_knowledge_base("ours"))
    set_settings(demonstration, wrong_share_target=10, calibrates_itself="off")
    make_answer(boss)
    assert done() == [True, True, True, False, True]
    page_client(make_user(username="ada"))
    assert done() == []
    assert first_steps(make_staff(Role.CURATOR)) == ()


@pytest.mark.slow
def test_navigation_holds_each_role_to_its_rights():
    links = {}
    for role in Role:
        body = page_client(make_staff(role)).get("/admin/").content.decode()
        links[role] = set(re.findall(r'href="(/admin/\w+/\w+/)"', body))

    assert links[Role.AGENT] == set()
    assert "/admin/kb/entry/" in links[Role.SME]
    assert "/admin/auth/user/" not in links[Role.CURATOR]
    assert {"/admin/auth/user/", "/admin/jobs/job/"} <= links[Role.ADMIN]
    assert links[Role.SME] < links[Role.CURATOR] < links[Role.ADMIN]


def test_every_item_of_the_navigation_has_a_registered_admin():
    items = [
        item for group in UNFOLD["SIDEBAR"]["navigation"] for item in group["items"]
    ]

    missing = [item["title"] for item in items if not str(item["link"])]

    assert missing == []


def test_every_registered_admin_is_in_the_navigation():
    from django.contrib import admin

    linked = {
        str(item["link"])
        for group in UNFOLD["SIDEBAR"]["navigation"]
        for item in group["items"]
    }
    registered = {
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    }

    assert registered - linked == set()


def test_badge_tells_a_system_that_is_no_production(rf, settings):
    request = rf.get("/admin/")

    settings.DATABASE_IS_EMBEDDED = False
    assert environment(request) is None
    settings.DATABASE_IS_EMBEDDED = True
    assert environment(request) == ["Embedded database", "info"]
    settings.DEBUG = True
    assert environment(request) == ["Debugging", "danger"]


def test_the_checks_before_each_command_need_no_tables(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert run_checks() == []
