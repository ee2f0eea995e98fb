import pytest

from accounts.authentication import find_user
from accounts.roles import Role
from accounts.services import set_knowledge_roles
from jobs.models import Job
from kb.models import Audience, Document, KnowledgeBase
from qa.answers.questions import find_knowledge_base
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

BASES = "/api/v1/knowledge-bases"
DOCUMENTS = "/api/v1/documents"
AUDIENCES = "/api/v1/audiences"
RULES = {"review_interval_days": 180, "when_overdue": "mark", "overdue_grace_days": 30, "keep_texts_days": None, "archived_at": None}  # fmt: skip


def _without_ids(sections):
    return [
        {"heading": each["heading"], "sections": _without_ids(each["sections"])}
        for each in sections
    ]


def test_document_is_made_changed_and_read_with_its_tree(api):
    make_knowledge_base()
    make_audience()
    client = api(make_curator())

    made = client.post(
        DOCUMENTS,
        {
            "title": "Price list",
            "source": "Edition 4",
            "audience": "everyone",
            "sections": [
                {"heading": "Fees", "sections": [{"heading": "Cash"}]},
                {"heading": "Limits"},
            ],
        },
        format="json",
    )
    fees, limits = made.json()["sections"]
    changed = client.patch(
        f"{DOCUMENTS}/{made.json()['id']}",
        {
            "title": "Prices",
            "sections": [limits, {"id": fees["id"], "heading": "All fees"}],
        },
        format="json",
    )

    assert made.status_code == 201, made.json()
    assert changed.status_code == 200, changed.json()
    shown = client.get(f"{DOCUMENTS}/{made.json()['id']}").json()
    assert shown == changed.json()
    assert (shown["title"], shown["source"]) == ("Prices", "Edition 4")
    assert (shown["created_by"], shown["knowledge_base"]) == ("curator", "cards")
    assert shown["sections"] == [
        {"id": limits["id"], "heading": "Limits", "sections": []},
        {"id": fees["id"], "heading": "All fees", "sections": []},
    ]


@pytest.mark.parametrize("rows", [1, 20])
def test_list_costs_the_same_queries_for_any_number_of_rows(
    api, rows, django_assert_num_queries
):
    for number in range(rows):
        make_document(f"Document {number}")
    client = api(make_user())

    with django_assert_num_queries(2):  # role, rows
        response = client.get(DOCUMENTS)

    assert len(response.json()["results"]) == rows


def test_reading_a_document_costs_the_same_for_any_tree(api, django_assert_num_queries):
    document = make_document()
    client = api(make_curator())
    client.patch(
        f"{DOCUMENTS}/{document.pk}",
        {"sections": [{"heading": str(n)} for n in range(30)]},
        format="json",
    )

    with django_assert_num_queries(3):  # role, document, sections
        response = client.get(f"{DOCUMENTS}/{document.pk}")

    assert len(response.json()["sections"]) == 30


@pytest.mark.parametrize(
    "change",
    [
        {"title": ""},
        {"title": 7},
        {"title": "two\nlines"},
        {"source": "x" * 501},
        {"audience": "lost"},
        {"audience": "hidden"},
        {"sections": {}},
        {"sections": [7]},
        {"sections": [{"id": 1, "sections": []}]},
        {"sections": [{"heading": ""}]},
        {"sections": [{"id": 999_999, "heading": "Lost"}]},
        {"sections": [{"id": 10**30, "heading": "Lost"}]},
        {"sections": [{"heading": "A", "children": []}]},
        {"titel": "Misspelt"},
    ],
)
def test_bad_input_is_told_and_changes_nothing(api, change):
    make_audience("hidden", groups=["hidden"])
    document = make_document()
    document.sections.create(heading="Fees", position=0)
    client = api(make_curator())
    before = client.get(f"{DOCUMENTS}/{document.pk}").json()

    patched = client.patch(f"{DOCUMENTS}/{document.pk}", change, format="json")
    made = client.post(
        DOCUMENTS, {"title": "New", "audience": "everyone", **change}, format="json"
    )

    assert (patched.status_code, made.status_code) == (400, 400)
    assert client.get(f"{DOCUMENTS}/{document.pk}").json() == before
    assert Document.objects.count() == 1


def test_tree_too_deep_is_refused(api):
    document = make_document()
    sections: list[object] = []
    for _ in range(9):
        sections = [{"heading": "Deeper", "sections": sections}]

    response = api(make_curator()).patch(
        f"{DOCUMENTS}/{document.pk}", {"sections": sections}, format="json"
    )

    assert response.status_code == 400
    assert "nested deeper than 8" in response.json()["error"]["message"]


def test_document_the_asker_may_not_see_does_not_exist(api):
    secret = make_document(audience=make_audience("fraud", groups=["fraud"]))
    outsider, insider = api(make_curator()), api(make_user(groups=["fraud"]))

    assert outsider.get(f"{DOCUMENTS}/{secret.pk}").status_code == 404
    assert (
        outsider.patch(
            f"{DOCUMENTS}/{secret.pk}", {"title": "No"}, format="json"
        ).status_code
        == 404
    )
    assert outsider.get(DOCUMENTS).json()["results"] == []
    assert insider.get(f"{DOCUMENTS}/{secret.pk}").status_code == 200


def test_documents_are_narrowed(api):
    make_document("Price list")
    make_document("Limits", audience=make_audience("leads"))
    client = api(make_user())

    def titles(query):
        rows = client.get(f"{DOCUMENTS}?{query}").json()["results"]
        return [row["title"] for row in rows]

    assert titles("q=price") == ["Price list"]
    assert titles("audience=leads") == ["Limits"]
    limits = Document.objects.get(title="Limits")
    Document.objects.filter(pk=limits.pk).update(source="limits.csv")
    assert titles("source=limits.csv") == ["Limits"]
    assert titles("knowledge_base=cards") == ["Limits", "Price list"]


def test_writing_documents_needs_a_curator(api):
    client = api(make_user(Role.SME))

    assert client.post(DOCUMENTS, {}, format="json").status_code == 403


def test_audiences_of_the_asker_are_listed_in_bounded_queries(
    api, django_assert_num_queries
):
    make_audience("everyone")
    for number in range(5):
        make_audience(f"mine-{number}", groups=["desk"])
    make_audience("theirs", groups=["others"])
    client = api(make_user(groups=["desk"]))

    with django_assert_num_queries(4):  # role, admin?, rows, groups
        response = client.get(AUDIENCES)

    rows = response.json()["results"]
    assert [row["slug"] for row in rows] == [
        "everyone",
        *(f"mine-{n}" for n in range(5)),
    ]
    assert rows[1] == {
        "slug": "mine-0",
        "name": "Mine-0",
        "everyone": False,
        "groups": ["desk"],
    }


def test_audiences_are_paged(api):
    for number in range(5):
        make_audience(f"audience-{number}")
    client = api(make_user())

    first = client.get(f"{AUDIENCES}?page_size=3").json()
    second = client.get(first["next"]).json()

    slugs = [row["slug"] for row in first["results"] + second["results"]]
    assert slugs == [f"audience-{number}" for number in range(5)]


def test_admin_makes_and_changes_audiences(api):
    make_audience("theirs", groups=["others"])
    admin = api(make_user(Role.ADMIN))

    made = admin.post(
        AUDIENCES,
        {"slug": "desk", "name": "Desk", "groups": ["others"]},
        format="json",
    )
    again = admin.post(AUDIENCES, {"slug": "desk", "name": "Desk"}, format="json")
    changed = admin.patch(
        f"{AUDIENCES}/theirs", {"everyone": True, "groups": []}, format="json"
    )

    assert made.status_code == 201, made.json()
    assert made.json()["groups"] == ["others"]
    assert again.status_code == 409
    assert changed.json() == {
        "slug": "theirs",
        "name": "Theirs",
        "everyone": True,
        "groups": [],
    }


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": None},
        {"everyone": "yes"},
        {"everyone": None},
        {"groups": ["nobody"]},
        {"groups": "others"},
        {"groups": [7]},
        {"slug": "Not a slug"},
    ],
)
def test_bad_audience_is_told_and_changes_nothing(api, change):
    admin = api(make_user(Role.ADMIN))
    make_audience()

    answers = [
        admin.post(
            AUDIENCES, {"slug": "desk", "name": "Desk", **change}, format="json"
        ),
        admin.patch(f"{AUDIENCES}/everyone", change, format="json"),
    ]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert Audience.objects.get().name == "Everyone"


def test_audience_the_asker_does_not_belong_to_does_not_exist(api):
    make_audience("theirs", groups=["others"])

    assert api(make_curator()).get(f"{AUDIENCES}/theirs").status_code == 404
    assert (
        api(make_curator()).patch(f"{AUDIENCES}/theirs", {}, format="json").status_code
        == 403
    )


def _bases(client):
    return client.get(BASES).json()["results"]


def test_knowledge_bases_are_listed_with_the_default_and_the_callers_roles(
    api, django_assert_num_queries
):
    travel, cards = make_knowledge_base("travel"), make_knowledge_base("cards")
    ann = make_user(role=None, username="ann")
    set_knowledge_roles(ann, {cards.pk: "curator"})
    client = api(find_user(username="ann"))  # with her roles, as a token finds her

    with django_assert_num_queries(1):
        listed = client.get(BASES)

    assert listed.status_code == 200, listed.json()
    assert listed.json()["results"] == [
        {
            "slug": "cards",
            "name": cards.name,
            "language": "en",
            "is_default": False,
            "role": "curator",
            **RULES,
        },
        {
            "slug": "travel",
            "name": travel.name,
            "language": "en",
            "is_default": True,
            "role": "agent",
            **RULES,
        },
    ]
    assert {each["role"] for each in _bases(api(make_user(Role.ADMIN)))} == {"admin"}


def test_the_default_is_the_knowledge_base_that_is_asked_where_none_is_named(api):
    for slug in ("travel", "cards", "home"):
        make_knowledge_base(slug)

    [default] = [b["slug"] for b in _bases(api(make_user())) if b["is_default"]]

    assert default == find_knowledge_base(asker=make_user()).slug


def test_knowledge_bases_come_page_by_page(api):
    for slug in ("travel", "cards", "home"):
        make_knowledge_base(slug)
    client = api(make_user())

    first = client.get(BASES, {"page_size": 2}).json()
    second = client.get(first["next"]).json()

    slugs = [each["slug"] for each in first["results"] + second["results"]]
    assert slugs == ["cards", "home", "travel"]


def test_a_knowledge_base_is_made_asked_for_and_changed(api):
    make_knowledge_base("cards")
    client = api(make_user(Role.ADMIN))

    made = client.post(BASES, {"slug": "travel", "name": " Travel "}, format="json")
    changed = client.patch(
        f"{BASES}/travel",
        {"language": "de", "keep_texts_days": 90, "when_overdue": "doubt"},
        format="json",
    )

    assert made.status_code == 201, made.json()
    assert made.json() == {
        "slug": "travel", "name": "Travel", "language": "en", "is_default": False,
        "role": "admin", **RULES,
    }  # fmt: skip
    assert changed.status_code == 200, changed.json()
    assert changed.json() == made.json() | {
        "language": "de", "keep_texts_days": 90, "when_overdue": "doubt",
    }  # fmt: skip
    assert client.get(f"{BASES}/travel").json() == changed.json()
    audiences = client.get("/api/v1/audiences").json()["results"]
    assert [(each["slug"], each["everyone"]) for each in audiences] == [
        ("everyone", True)
    ]
    assert not Job.objects.exists()  # the interval of reviews is what it was


def test_entries_get_a_new_interval_of_reviews_by_a_job(api):
    make_knowledge_base("cards")
    client = api(make_user(Role.ADMIN))

    client.patch(f"{BASES}/cards", {"review_interval_days": None}, format="json")

    assert Job.objects.get().kind == "kb.keep_upkeep"


@pytest.mark.parametrize(
    ("given", "status", "named"),
    [
        ({"slug": "cards", "name": "Other"}, 409, "'cards'"),
        ({"slug": "No slug", "name": "Other"}, 400, "slug"),
        ({"slug": "x" * 51, "name": "Other"}, 400, "slug"),
        ({"slug": "other", "name": "\u200b"}, 400, "name"),
        ({"slug": "other"}, 400, "name"),
        ({"slug": "other", "name": "Other", "language": "fr"}, 400, "language"),
        ({"slug": "other", "name": "Other", "review_interval_days": 0}, 400, "review_interval_days"),
        ({"slug": "other", "name": "Other", "owner": "ann"}, 400, "owner"),
    ],
)  # fmt: skip
def test_what_no_knowledge_base_may_be_is_refused_and_nothing_made(
    api, given, status, named
):
    make_knowledge_base("cards")

    refused = api(make_user(Role.ADMIN)).post(BASES, given, format="json")

    assert refused.status_code == status, refused.json()
    assert named in str(refused.json())
    assert [base.slug for base in KnowledgeBase.objects.all()] == ["cards"]


def test_knowledge_bases_are_for_who_may_ask_and_are_made_by_admins(api):
    make_knowledge_base("cards")
    new = {"slug": "travel", "name": "Travel"}

    assert api(make_user(role=None)).get(BASES).status_code == 403
    curator = api(make_curator())
    assert curator.get(f"{BASES}/cards").status_code == 200
    assert curator.get(f"{BASES}/travel").status_code == 404
    assert curator.post(BASES, new, format="json").status_code == 403
    assert curator.patch(f"{BASES}/cards", {}, format="json").status_code == 403
