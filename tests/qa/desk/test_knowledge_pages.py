"""Looking knowledge up: search, the document as a reader, an entry's own page."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from accounts.services import set_knowledge_roles
from kb.entries.services import edit_entry
from kb.models import Section
from qa.desk import knowledge_pages
from qa.votes.models import Vote
from qa.votes.services import handle_votes, vote
from tests.clients import page_client
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
)
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

LIVE = {"HX-Request": "true"}


@pytest.fixture
def page():
    return page_client(make_user(username="agent"))


def found(page, **query):
    return page.get(reverse("knowledge"), query, headers=LIVE).content.decode()


def test_words_half_written_misspelt_or_only_meant_find_an_entry(page):
    make_entry("Contactless payments work up to 50 euros without a PIN.")
    make_entry("Support answers the phone from 8 to 20.")

    for words in ("contactle", "contactles paymnts", "paying by holding the card near"):
        body = found(page, q=words)

        assert "Contactless" in body, words
        if "Support" in body:
            assert body.index("Contactless") < body.index("Support")


def test_filters_narrow_what_is_found_and_what_is_listed(page):
    prices, rules = make_document("Price list"), make_document("Rules")
    gold = make_tag("gold-card")
    make_entry("The gold card costs 72 euros.", document=prices, product_line=gold)
    make_entry("The silver card costs 24 euros.", document=prices)
    make_entry("A lost card is blocked.", document=rules, state="in_review")
    yesterday = timezone.now() - timedelta(days=1)
    make_entry("The old card cost 10 euros.", document=rules, valid_until=yesterday)

    for query in ({"q": "card"}, {}):
        of_rules = found(page, document=str(rules.pk), **query)
        of_gold = found(page, product_line="gold-card", **query)
        unverified = found(page, state="unverified", **query)
        expired = found(page, state="expired", **query)

        assert "A lost card" in of_rules
        assert "gold card" not in of_rules
        assert ("gold card" in of_gold, "silver card" in of_gold) == (True, False)
        assert ("A lost card" in unverified, "gold" in unverified) == (True, False)
        assert ("old card" in expired, "gold card" in expired) == (True, False)
        assert "Expired" in expired


def test_what_one_may_not_read_is_neither_found_nor_counted(page):
    vault = make_audience("vault", groups=["vault"])
    document = make_document("Price list")
    make_entry("The vault limit is 900 euros.", document=document, audience=vault)
    secret = make_document("Vault handbook", audience=vault)
    hidden = make_entry("The vault opens at 9.", document=secret)
    draft = make_entry("The vault is a draft.", document=document, state="draft")

    pages = [found(page), found(page, q="vault limit"), found(page, q="vaul")]
    shown = page.get(reverse("document", args=[document.pk])).content.decode()

    assert "0 entries" in pages[0]
    assert "andbook" not in "".join(pages)
    assert not any("900" in body or "opens" in body for body in (*pages, shown))
    for row in (hidden, draft):
        assert page.get(reverse("entry", args=[row.pk])).status_code == 404
    assert page.get(reverse("document", args=[secret.pk])).status_code == 404
    assert found(page, document=str(secret.pk)).count("Vault") == 0


def test_a_document_that_is_chosen_is_offered_however_many_there_are(page, monkeypatch):
    monkeypatch.setattr(knowledge_pages, "_OFFERED", 1)
    make_document("Price list")
    rules = make_document("Rules")

    chosen = page.get(reverse("knowledge"), {"document": rules.pk}).content.decode()

    assert f'<option value="{rules.pk}" selected>Rules</option>' in chosen
    assert "Rules" not in page.get(reverse("knowledge")).content.decode().split("</form>")[0]  # fmt: skip


def test_a_document_is_read_in_the_order_of_its_headings(page):
    document = make_document("Price list", source="edition 4")
    cards = Section.objects.create(document=document, heading="Cards", position=1)
    Section.objects.create(document=document, heading="Accounts", position=0)
    gold = Section.objects.create(
        document=document, heading="Gold", position=0, parent=cards
    )
    entry = make_entry("It costs 72 euros.", document=document, section=gold)
    make_entry("Prices hold for a year.", document=document)

    body = page.get(reverse("document", args=[document.pk])).content.decode()
    own = page.get(reverse("entry", args=[entry.pk])).content.decode()

    places = [body.rindex(said) for said in ("hold for", "Accounts", "Cards", "Gold")]
    assert places == sorted(places)
    assert body.rindex("Gold") < body.index("72 euros")
    assert f"#section-{cards.pk}" in body
    assert own.index("Price list") < own.index("Cards") < own.index("Gold")


def test_an_entry_tells_its_source_its_verifier_and_what_it_said_before(page):
    curator = make_curator()
    curator.first_name, curator.last_name = "Ada", "Byron"
    curator.save()
    entry = make_entry(document=make_document(source="edition 4"), owner=curator)
    edit_entry(
        entry_id=entry.pk,
        author=curator,
        may_verify=True,
        text="A replacement card costs 14 euros.",
        reason="New prices.",
    )

    body = page.get(reverse("entry", args=[entry.pk])).content.decode()

    for said in ("costs 14", "edition 4", "by Ada Byron", "New prices.", "costs 12"):
        assert said in body
    assert "admin" not in body  # an agent has none


def test_the_page_of_an_expired_entry_does_not_call_it_verified(page):
    yesterday = timezone.now() - timedelta(days=1)
    entry = make_entry("The old card cost 10 euros.", valid_until=yesterday)

    body = page.get(reverse("entry", args=[entry.pk])).content.decode()

    assert f"Expired {yesterday:%Y-%m-%d}" in body
    assert "This has expired." in body
    assert "badge-verified" not in body


def test_a_revision_of_others_is_not_shown(page):
    vault = make_audience("vault", groups=["vault"])
    entry = make_entry("The secret limit is 900 euros.", audience=vault)
    edit_entry(
        entry_id=entry.pk,
        author=make_curator(),
        may_verify=True,
        text="Limits are set by contract.",
        audience=make_audience(),
    )

    body = page.get(reverse("entry", args=[entry.pk])).content.decode()

    assert "by contract" in body
    assert "900" not in body


def test_cards_beside_an_answer_lead_to_the_entry(page, django_user_model):
    asker = django_user_model.objects.get(username="agent")
    cited, gone = make_entry(), make_entry("It was 10 euros.", state="retired")
    answer = make_answer(asker, cited=(cited, gone))

    body = page.get(reverse("answer", args=[answer.pk])).content.decode()

    assert reverse("entry", args=[cited.pk]) in body
    assert reverse("entry", args=[gone.pk]) not in body  # the curators' alone


def test_experts_see_the_newest_answers_that_used_an_entry(
    page, django_assert_max_num_queries
):
    expert, asker = make_user(Role.SME), make_user()
    entry, vault = make_entry(), make_audience("vault", groups=["vault"])
    secret = make_entry("The secret limit is 900 euros.", audience=vault)
    address = reverse("entry", args=[entry.pk])
    reader = page_client(expert)
    make_answer(asker, question="With a secret?", cited=(entry, secret))
    make_answer(asker, question="Only near?", near_misses=(entry,))
    make_answer(asker, question="Tried?", cited=(entry,), channel="evaluation")
    made = [
        make_answer(asker, question=f"Question {number:02}?", cited=(entry,))
        for number in range(11)
    ]
    vote(made[-1].pk, user=asker, is_up=False)

    with django_assert_max_num_queries(27):
        body = reader.get(address).content.decode()

    # What was said against it stands above, with the question that was answered.
    against, used, listed = body.partition("Answers that used it")
    assert used
    assert "Question 10?" in against
    said = re.findall(r"(Question \d\d|With a secret|Only near|Tried)\?", listed)
    assert said == [f"Question {number:02}" for number in range(10, 0, -1)]
    assert reverse("answer", args=[made[-1].pk]) in listed
    assert listed.count("Thumb down") == 1
    assert "Answers that used it" not in page.get(address).content.decode()


def test_experts_read_on_an_entrys_page_what_was_said_against_it():
    asker, expert = make_user(username="abel"), make_user(Role.SME)
    entry, vault = make_entry(), make_audience("vault", groups=["vault"])
    secret = make_entry("The secret limit is 900 euros.", audience=vault)
    address = reverse("entry", args=[entry.pk])

    def say(comment: str, **fields):
        cited = fields.pop("cited", (entry,))
        answer = make_answer(asker, question=f"On {comment}?", cited=cited)
        words = {"is_up": False, "reasons": ["outdated"], "comment": comment}
        return vote(answer.pk, user=asker, **{**words, **fields})

    say("It <changed>", expected_answer="Six euros since May.")
    say("Limit of 900", cited=(entry, secret))
    say("Fine", is_up=True, reasons=[])
    say("Elsewhere", cited=(make_entry("Another."),))
    handle_votes(Vote.objects.filter(pk=say("Settled").pk), by=expert)

    body = page_client(expert).get(address).content.decode()

    shown = body.split('id="votes"')[1].split("</ul>")[0]
    assert shown.count("<li") == 1
    assert "by abel: It is out of date “It &lt;changed&gt;”" in shown
    assert "Expected answer: “Six euros since May.”" in shown
    assert "Limit of 900" not in body
    for user in (asker, elsewhere_expert()):
        assert 'id="votes"' not in page_client(user).get(address).content.decode()


def elsewhere_expert():
    """An agent who is an expert of another knowledge base alone."""
    user = make_user()
    set_knowledge_roles(user, {make_knowledge_base("loans").pk: "sme"})
    return user


def test_as_many_queries_for_many_as_for_few(page, django_assert_max_num_queries):
    make_entries([f"Rule number {number} holds." for number in range(30)])

    for query in ({"q": "rule"}, {"state": "verified"}, {}):
        with django_assert_max_num_queries(24):
            assert page.get(reverse("knowledge"), query).status_code == 200


def test_words_alone_are_looked_for_in_all_knowledge_bases(page):
    other = make_knowledge_base("clinic")
    make_entry("A lost card is blocked.")
    entry = make_entry("A lost letter is sent again.", knowledge_base=other)

    both, one = found(page, q="lost"), found(page, q="lost", knowledge_base="clinic")

    assert "lost card" in both
    assert "lost letter" in both
    assert entry.knowledge_base.name in both
    assert "lost card" not in one
    assert "lost letter" in one
