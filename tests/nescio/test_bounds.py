"""What a request may hold: bounded lists, known parameters, moments on the calendar."""

from base64 import b64encode

import pytest
from django.contrib.auth.models import Group
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient
from rest_framework.views import APIView

from accounts.models import ApiToken
from accounts.rest import KnownQueryView
from accounts.roles import Role
from tests.factories import make_document, make_knowledge_base, make_user
from tests.nescio.test_permissions import API, example
from tests.qa.answer_rows import make_answer

DESCRIPTION = {"api/v1/schema", "api/v1/docs"}
BEFORE_THE_CALENDAR = "0001-01-01T00:00:00%2B14:00"
AFTER_THE_CALENDAR = "9999-12-31T23:59:59-14:00"


@pytest.fixture
def client(db) -> APIClient:
    client = APIClient(raise_request_exception=False)
    admin = make_user(Role.ADMIN)
    token = ApiToken(user=admin, may_manage_users=True)
    client.force_authenticate(admin, token=token)
    make_knowledge_base()
    return client


def error_of(response, status: int = 400):
    assert response.status_code == status, response.content[:500]
    return response.json()["error"]


@pytest.mark.parametrize(("address", "view"), API)
def test_every_view_refuses_parameters_that_it_does_not_know(
    client, address: str, view: type[APIView]
):
    if address in DESCRIPTION:
        return
    assert issubclass(view, KnownQueryView)
    for method in ("get", "post", "patch", "delete"):
        response = getattr(client, method)(f"{example(address)}?unheard_of=1")
        if response.status_code != 405:
            assert list(error_of(response)["detail"]) == ["unheard_of"]


@pytest.mark.parametrize("name", ["limit", "search", "page"])
def test_an_unknown_parameter_is_named_with_the_known_ones(client, name):
    error = error_of(client.get(f"/api/v1/votes?{name}=1&rating=up"))

    assert list(error["detail"]) == [name]
    assert "created_after, created_before, cursor, gate" in error["message"]


@pytest.mark.parametrize(
    "address",
    [
        "answers?outcome=answered&page_size=5&created_after=2026-01-01",
        "dashboard?days=7",
        "entries/due?whose=mine&page_size=7",
        "entries?q=card&state=verified&state=draft",
        "entries.csv",
        "conflicts?state=open",
        "drift?has_drifted=true",
    ],
)
def test_known_parameters_are_taken(client, address):
    assert client.get(f"/api/v1/{address}").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("value", ["", "%20"])
def test_a_filter_that_names_nothing_is_no_filter_at_all(client, value):
    schema = SchemaGenerator().get_schema(request=None, public=True)
    filters = {
        f"{address}?{parameter['name']}"
        for address, methods in schema["paths"].items()
        for parameter in methods.get("get", {}).get("parameters", ())
        if parameter["in"] == "query" and "{" not in address
    }

    for named in filters:
        if not named.endswith(("?cursor", "?format")):  # the library's
            assert client.get(f"{named}={value}").status_code == 400, named


@pytest.mark.parametrize("moment", [BEFORE_THE_CALENDAR, AFTER_THE_CALENDAR])
@pytest.mark.parametrize(
    "filter_of",
    ["answers?created", "votes?created", "reviews?reviewed"],
)
@pytest.mark.parametrize("side", ["after", "before"])
def test_a_moment_beyond_the_calendar_is_400(client, filter_of, side, moment):
    error = error_of(client.get(f"/api/v1/{filter_of}_{side}={moment}"))

    assert "years 1 to 9999" in error["message"]


@pytest.mark.parametrize("side", ["after", "before"])
def test_an_offset_that_the_database_does_not_know_is_taken_as_its_moment(client, side):
    moment = "2026-01-01T00:00:00%2B20:00"

    assert client.get(f"/api/v1/answers?created_{side}={moment}").status_code == 200


def test_a_cursor_of_another_offset_is_none_of_ours(client):
    position = b64encode(b"p=2026-01-01 00:00:00%2B20:00").decode()

    error = error_of(client.get("/api/v1/answers", {"cursor": position}))

    assert list(error["detail"]) == ["cursor"]


@pytest.mark.parametrize("name", ["knowledge_base", "tag"])
def test_no_text_that_names_nothing_reaches_the_database(client, name):
    error = error_of(client.get(f"/api/v1/dashboard?{name}=a%00b"))

    assert list(error["detail"]) == [name]


def test_a_list_is_bounded_before_its_elements_are_checked(
    client, django_assert_max_num_queries
):
    body = {"question": "What does a card cost?", "tags": ["gold"] * 20_000}

    with django_assert_max_num_queries(3):
        error = error_of(client.post("/api/v1/ask", body, format="json"))

    assert error["message"] == "tags: The list has 20,000 elements and may have 2."


@pytest.mark.parametrize(
    ("method", "address", "name", "element"),
    [
        ("put", "/api/v1/answers/{answer}/vote", "reasons", "x"),
        ("post", "/api/v1/audiences", "groups", 1),
        ("post", "/api/v1/tags", "experts", "x"),
        ("post", "/api/v1/proposals/decide", "ids", "x"),
    ],
)
def test_no_list_gives_an_error_for_each_of_its_elements(
    client, method, address, name, element
):
    url = address.format(answer=make_answer(make_user()).pk)

    error = error_of(
        getattr(client, method)(url, {name: [element] * 30_000}, format="json")
    )

    assert "30,000 elements" in str(error["detail"][name])


def test_rows_that_a_list_names_are_found_by_one_query(
    client, django_assert_max_num_queries
):
    names = [make_user(Role.SME).username for _ in range(30)]
    body = {"slug": "gold", "name": "Gold", "facet": "product_line"}

    with django_assert_max_num_queries(20):
        made = client.post("/api/v1/tags", {**body, "experts": names}, format="json")
    unknown = [f"nobody{n}" for n in range(100)]
    missing = error_of(
        client.post(
            "/api/v1/tags", {**body, "slug": "b", "experts": unknown}, format="json"
        )
    )

    assert made.json()["experts"] == sorted(names)
    assert "'nobody0'" in missing["message"]
    assert "'nobody20'" not in missing["message"]


def test_at_most_twenty_unknown_fields_are_reported(client):
    body = {"question": "?", **{f"field{n}": n for n in range(30_000)}}

    error = error_of(client.post("/api/v1/ask", body, format="json"))

    assert len(error["detail"]) == 20


def test_at_most_twenty_errors_of_a_list_are_reported(client):
    Group.objects.create(name="x")
    body = {"slug": "a", "name": "A", "groups": [1] * 900}

    error = error_of(client.post("/api/v1/audiences", body, format="json"))

    assert len(error["detail"]["groups"]) == 20
    assert error["message"].count("groups.") == 20
    assert error["message"].endswith("and 880 more")


@pytest.mark.parametrize("tree", ["wide", "deep"])
def test_a_tree_of_sections_is_bounded_before_it_is_looked_at(client, tree):
    leaves = [{"heading": ""}] * 2_001
    sections = leaves if tree == "wide" else [{"heading": "", "sections": leaves}]

    error = error_of(
        client.patch(
            f"/api/v1/documents/{make_document().pk}",
            {"sections": sections},
            format="json",
        )
    )

    assert error["detail"] == {
        "sections": ["more than 2000 sections; split the document."]
    }
