"""Who reviews answers reads no words of an audience they are not in, wherever they look."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.acting import acting_for
from accounts.roles import Role
from kb.models import Revision
from qa.models import Answer
from tests.clients import page_client
from tests.factories import (
    make_audience,
    make_document,
    make_entry,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SECRET = "SECRET"
OPEN = "Cards are blue."


def make_secret(**fields):
    audience = make_audience("fraud", groups=["fraud"])
    document = make_document("SECRET handbook", audience=audience, source="SECRET.pdf")
    return make_entry(
        "The SECRET limit is 900 euros.",
        question="What is the SECRET limit?",
        audience=audience,
        document=document,
        **fields,
    )


@pytest.fixture
def asker():
    return make_user(username="agnes", groups=["fraud"])


@pytest.fixture
def answer(asker):
    """Rests on the secret; every column that a model or an expert wrote tells it."""
    return make_answer(
        asker,
        question="How high is the limit?",
        cited=(make_secret(),),
        unused=(make_entry(OPEN),),
        text="It is SECRET.",
        reasoning="The SECRET handbook says so.",
        generation={"raw": "SECRET", "answer": "SECRET", "reasoning": "SECRET"},
    )


def places(answer: Answer) -> list[str]:
    """Return every address that shows the answer."""
    return [
        "/api/v1/answers",
        f"/api/v1/answers/{answer.pk}",
        f"/answers/{answer.pk}",
        reverse("admin:qa_answer_changelist"),
        reverse("admin:qa_answer_change", args=[answer.pk]),
    ]


def reviewer(role: Role = Role.SME, *, groups=()):
    user = make_staff(role, groups=groups)
    for group in groups:
        user.groups.add(make_audience("fraud").groups.get(name=group))
    return user


def read(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return response.getvalue().decode()


@pytest.mark.parametrize("role", [Role.SME, Role.CURATOR])
def test_no_place_shows_a_reviewer_what_another_audience_reads(answer, role):
    client = page_client(reviewer(role))

    for address in places(answer):
        body = read(client, address)
        assert answer.question in body, address
        assert SECRET not in body, address


def test_the_measures_of_a_withheld_piece_stay(answer):
    client = page_client(reviewer())

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert shown["withheld"] is True
    assert shown["text"] == "This answer is based on entries that you may not see."
    assert shown["reasoning"] == ""
    secret, open_one = shown["evidence"]
    assert secret["withheld"] is True
    assert (secret["distance"], secret["confidence"]) == (0.5, 1.0)
    assert (open_one["withheld"], open_one["text"]) == (False, OPEN)
    page = read(client, f"/answers/{answer.pk}")
    assert "You are not in the audience of this entry" in page
    assert OPEN in page


def test_near_misses_of_a_refusal_are_withheld_and_its_wording_is_not(asker):
    answer = make_answer(asker, near_misses=(make_secret(),))
    client = page_client(reviewer())

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert (shown["withheld"], shown["text"]) == (False, "I do not know.")
    assert [piece["withheld"] for piece in shown["near_misses"]] == [True]
    for address in places(answer):
        assert SECRET not in read(client, address), address


def test_an_unused_piece_withholds_the_reasoning_and_not_the_text(asker):
    answer = make_answer(
        asker,
        cited=(make_entry(OPEN),),
        unused=(make_secret(),),
        reasoning="Not SECRET.",
        generation={"raw": "SECRET"},
    )
    client = page_client(reviewer())

    shown = client.get(f"/api/v1/answers/{answer.pk}").json()

    assert (shown["withheld"], shown["text"]) == (False, "It costs 12 euros.")
    for address in places(answer):
        assert SECRET not in read(client, address), address


def test_asker_members_and_superusers_read_everything(answer, asker):
    member = reviewer(groups=["fraud"])
    superuser = make_user(role=None)
    superuser.is_staff = superuser.is_superuser = True
    superuser.save()

    for user, addresses in (
        (asker, places(answer)[:4]),
        (member, places(answer)),
        (superuser, places(answer)),
    ):
        client = page_client(user)
        for address in addresses:
            if address != reverse("admin:qa_answer_changelist"):
                assert SECRET in read(client, address), (user, address)


def test_an_answer_of_nobody_is_withheld_too(answer):
    Answer.objects.update(asker=None)
    client = page_client(reviewer())

    for address in places(answer):
        assert SECRET not in read(client, address), address


def test_the_admins_search_tells_nothing_about_a_withheld_text(answer):
    client = page_client(reviewer())

    found = client.get(reverse("admin:qa_answer_changelist"), {"q": SECRET})

    assert found.context["cl"].result_count == 0


def test_a_revision_is_looked_up_by_its_entry_before_it_is_by_ones_own_evidence(answer):
    with acting_for(reviewer()):
        plan = Revision.objects.order_by().explain()

    assert plan.index("kb_entry") < plan.index("qa_answerevidence")
