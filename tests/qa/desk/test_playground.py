"""The playground: what a question finds and comes to, by whom it may be asked, kept nowhere."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.roles import Role
from accounts.services import set_knowledge_roles
from kb.entries.states import retire_entry
from kb.models import Entry
from qa.models import Answer, AnswerEvidence
from qa.pipeline.gates import Reason
from qa.policies.services import activate, active_policy, new_version
from qa.policies.wording import REASONS
from tests.clients import page_client
from tests.factories import make_audience, make_entry, make_knowledge_base, make_user

pytestmark = pytest.mark.django_db

LIVE = {"HX-Request": "true"}
QUESTION = "What does a replacement card cost?"


@pytest.fixture
def expert():
    return make_user(Role.SME, username="berta")


@pytest.fixture
def page(expert):
    return page_client(expert)


@pytest.fixture
def policy():
    make_entry("A replacement card costs 12 euros.", question=QUESTION)
    return active_policy(make_knowledge_base())


def tried(page, **sent):
    response = page.post("/playground", {"question": QUESTION, "knowledge_base": "cards"} | sent, headers=LIVE)  # fmt: skip
    return response.status_code, response.content.decode()


def test_it_shows_every_stage_and_keeps_nothing(page, policy):
    status, body = tried(page)

    assert status == 200
    assert "A replacement card costs 12 euros." in body
    assert "Answered here" in body  # the waterfall of an answer's page
    assert ">Cited<" in body
    assert not Answer.objects.exists()
    assert not AnswerEvidence.objects.exists()


def test_an_expert_of_one_knowledge_base_tries_questions_there_alone(policy):
    travel = make_knowledge_base("travel")
    make_entry("Lounges cost 30 euros.", knowledge_base=travel)
    user = make_user(role=None, username="tim")
    set_knowledge_roles(user, {travel.pk: "sme"})
    user.refresh_from_db()
    page = page_client(user)

    form = page.get("/playground").content.decode()
    status, _ = tried(page, knowledge_base="travel")
    elsewhere, _ = tried(page, knowledge_base="cards")
    versions, _ = tried(page, knowledge_base="travel", policy=policy.pk)

    assert 'value="travel"' in form
    assert 'value="cards"' not in form
    assert (status, elsewhere, versions) == (200, 404, 400)


def test_two_versions_stand_side_by_side_with_what_differs(page, policy):
    strict = new_version(policy, by=None, verbatim_distance=0.0, alpha=0.0)

    status, body = tried(page, policy=policy.pk, other=strict.pk, gates_only="on")

    assert status == 200
    assert "What differs" in body
    differing = body.partition("What differs")[2].partition("</table>")[0]
    assert "Answered, word for word" in differing
    assert "Not answered" in differing
    assert ">0.35<" in differing
    assert ">0<" in differing
    assert "Top k" not in differing


def test_a_threshold_that_is_set_decides_instead_of_the_versions(page, policy):
    _, body = tried(page, verbatim_distance="0", alpha="0", gates_only="on")

    assert "changed default v1" in body
    assert "Refused here" in body
    assert active_policy(policy.knowledge_base) == policy


def test_what_reaches_the_model_may_end_before_it(page, policy):
    _, body = tried(page, question="What is the price of a card?", gates_only="on")

    assert "The language model was not asked." in body


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"question": " "}, "Type a question first."),
        ({"alpha": "1.9"}, "Raise horizon"),
        ({"alpha": "-1"}, "greater than or equal to 0"),
        ({"policy": "999999"}, "not one of the available choices"),
        ({"asker": "nobody"}, "You can&#x27;t ask as “nobody”"),
    ],
)
def test_what_makes_no_sense_is_said(page, policy, sent, said):
    status, body = tried(page, **sent)

    assert status in {400, 422}
    assert said in body


def test_an_agent_is_sent_away(policy):
    client = page_client(make_user(Role.AGENT))

    assert client.get("/playground").status_code == 403


def test_a_curator_tries_a_question_as_of_a_moment(page, policy):
    curator = make_user(Role.CURATOR, username="clara")
    entry, before = Entry.objects.get(), timezone.now()
    retire_entry(entry_id=entry.pk, by=curator)
    sent = {"as_of": before.isoformat(), "gates_only": "on"}
    client = page_client(curator)

    status, then = tried(client, **sent)
    now = tried(client, gates_only="on")[1]
    by_expert = tried(page, **sent)
    as_expert = tried(client, asker="berta", **sent)
    ahead = tried(client, as_of=(before + timedelta(days=2)).isoformat())

    assert status == 200
    assert "A replacement card costs 12 euros." in then
    assert "With the knowledge of" in then
    assert "Save as a test case" not in then
    assert "A replacement card costs 12 euros." not in now
    assert by_expert[0] == 400
    assert "is for curators" in by_expert[1]
    assert "needs the role curator" in as_expert[1]
    assert "in the future" in ahead[1]
    assert 'name="as_of"' in client.get("/playground").content.decode()
    assert 'name="as_of"' not in page.get("/playground").content.decode()
    assert not Answer.objects.exists()


def test_nobody_asks_as_somebody_who_sees_more(page, expert, policy):
    vault = make_audience("vault", groups=["vault"])
    secret = make_entry("The vault code is 4711.", question="What is the vault code?", audience=vault)  # fmt: skip
    make_user(Role.AGENT, username="insider", groups=["vault"])
    make_user(Role.AGENT, username="colleague")
    boss = make_user(Role.ADMIN, username="root")
    boss.is_superuser = True
    boss.save()

    offered = page.get("/playground").content.decode()
    own = tried(page, question=secret.question)[1]
    refused = tried(page, question=secret.question, asker="insider")
    above = tried(page, question=secret.question, asker="root")
    beside = tried(page, asker="colleague")

    assert "insider" not in offered
    assert 'value="colleague"' in offered
    assert "4711" not in own
    assert (refused[0], above[0], beside[0]) == (400, 400, 200)
    assert "4711" not in refused[1] + above[1]
    assert "Asked as colleague" in beside[1]


def test_who_sees_more_asks_as_others_and_sees_what_they_see(policy):
    vault = make_audience("vault", groups=["vault"])
    secret = make_entry("The vault code is 4711.", question="What is the vault code?", audience=vault)  # fmt: skip
    make_user(Role.AGENT, username="colleague")
    client = page_client(make_user(Role.CURATOR, groups=["vault"]))

    assert "4711" in tried(client, question=secret.question)[1]
    assert "4711" not in tried(client, question=secret.question, asker="colleague")[1]


def test_a_version_that_would_reveal_what_is_hidden_does_not_here(page, policy):
    vault = make_audience("vault", groups=["vault"])
    secret = make_entry("The vault code is 4711.", question="What is the vault code?", audience=vault)  # fmt: skip
    telling = new_version(policy, by=None, reveal_not_entitled=True)

    title = REASONS[Reason.NOT_ENTITLED].title

    _, here = tried(page, question=secret.question, policy=telling.pk)
    activate(telling)
    _, openly = tried(page, question=secret.question, policy=telling.pk)

    _, changed = tried(page, question=secret.question, policy=telling.pk, alpha=0.9)

    assert title not in here
    assert title in openly
    assert title not in changed
