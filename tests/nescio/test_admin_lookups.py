"""Lists of the admin are narrowed by the filters beside them, and by nothing else."""

from itertools import cycle

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from accounts.base_admin import BaseAdmin
from accounts.roles import Role
from qa.models import Vote
from tests.clients import page_client
from tests.factories import make_audience, make_entry, make_staff, make_user
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def address(model: type[Model], query: str = "") -> str:
    meta = model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist") + query


@pytest.fixture
def expert() -> Client:
    user = make_staff(Role.SME)
    return page_client(user)


@pytest.fixture
def root() -> Client:
    return page_client(User.objects.create_superuser("root"))


@pytest.fixture
def withheld():
    """An answer that an expert outside may count, and not read."""
    insider = make_user(groups=["vault"])
    vault = make_audience("vault", groups=["vault"])
    secret = make_entry("The limit is 900 euros.", audience=vault)
    answer = make_answer(insider, cited=(secret,), text="The limit is 900 euros.")
    Vote.objects.create(
        answer=answer, user=insider, is_up=False, comment="Tell nobody.",
        expected_answer="The limit is 950 euros.",
    )  # fmt: skip
    return answer


@pytest.mark.parametrize(
    "query",
    [
        "qa/answer/?text__regex=^The%20[a-m]",
        "qa/answer/?text__startswith=The",
        "qa/answer/?text=The%20limit%20is%20900%20euros.",
        "qa/answer/?reasoning__gt=a",
        "qa/answer/?generation__answer__startswith=T",
        "qa/vote/?comment__startswith=T",
        "qa/vote/?expected_answer__regex=9..%20euros",
        "qa/vote/?answer__outcome__startswith=a",
        "qa/answer/?outcome__regex=^a",
        "qa/answer/?created_at__year=2026",
        "qa/answer/?channel__in=api,page",
    ],
)
def test_a_withheld_text_is_not_read_letter_by_letter(expert, withheld, query):
    assert expert.get(f"/admin/{query}").status_code == 400


def test_no_list_takes_a_lookup_that_it_has_no_filter_for(root):
    taken = []
    lookups = ("regex", "gt", "in")
    turns = cycle(lookups)
    for model, page in admin.site._registry.items():
        assert isinstance(page, BaseAdmin), model
        # A filter might take more than it offers; without one, any lookup stands for all.
        filtered = {
            each[0] if isinstance(each, tuple) else each for each in page.list_filter
        }
        for field in model._meta.concrete_fields:
            for lookup in lookups if field.name in filtered else (next(turns),):
                query = f"?{field.name}__{lookup}=x"
                if root.get(address(model, query)).status_code != 400:
                    taken.append((model.__name__, query))

    assert taken == []


def test_every_filter_beside_a_list_still_narrows_it(root, withheld):
    followed = 0
    for model in admin.site._registry:
        page = root.get(address(model), follow=True).context["cl"]
        for spec in page.filter_specs:
            for choice in spec.choices(page):
                query = choice.get("query_string", "")
                got = root.get(address(model, query), follow=True)
                assert got.status_code == 200, query
                followed += 1

    assert followed > 100
