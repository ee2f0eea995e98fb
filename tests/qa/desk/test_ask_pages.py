"""Asking on the page, with the real pipeline, live and by a plain form."""

import re
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import Preferences
from accounts.roles import Role
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry
from kb.models import KnowledgeBase, Upkeep
from qa.models import Answer, AnswerEvidence, Vote
from qa.pipeline.gates import Reason
from qa.policies.wording import WORDS, refusal_text
from tests.clients import page_client
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.qa.answer_rows import make_answer, make_asked_back

pytestmark = pytest.mark.django_db

LIVE = {"HX-Request": "true"}


@pytest.fixture
def user():
    return make_user(username="agent")


@pytest.fixture
def page(user):
    return page_client(user)


@pytest.fixture
def knowledge():
    return make_entry(
        "A replacement card costs 12 euros.",
        question="What does a replacement card cost?",
    )


def streamed(response) -> list[tuple[str, str]]:
    """Read events as a browser would."""
    events = []
    for block in b"".join(response.streaming_content).decode().split("\n\n")[:-1]:
        name, *data = block.split("\n")
        lines = [line.removeprefix("data: ") for line in data]
        events.append((name.removeprefix("event: "), "\n".join(lines)))
    return events


def test_plain_form_answers_without_scripts(page, knowledge):
    response = page.post(
        "/", {"question": "What does a replacement card cost?"}, follow=True
    )

    answer = Answer.objects.get()
    assert response.redirect_chain == [(reverse("answer", args=[answer.pk]), 303)]
    assert answer.outcome == "answered"
    assert answer.channel == "page"
    assert "costs 12 euros" in response.content.decode()


def test_plain_form_shows_a_refusal_with_its_reason(page, knowledge):
    response = page.post("/", {"question": "Who won the chess game?"}, follow=True)

    body = response.content.decode()
    assert response.status_code == 200
    assert "Not answered" in body
    assert "What you can do now" in body
    assert "[1]" not in body


def test_live_form_keeps_the_question_before_it_is_decided(page, knowledge):
    response = page.post("/", {"question": "Any fee?"}, headers=LIVE)

    answer = Answer.objects.get()
    assert answer.outcome == "pending"
    assert response["HX-Push-Url"] == reverse("answer", args=[answer.pk])
    stream = reverse("answer-stream", args=[answer.pk])
    assert f'sse-connect="{stream}"' in response.content.decode()


def test_stream_tells_the_stages_then_the_whole_result(page, knowledge):
    page.post("/", {"question": "What does a replacement card cost?"}, headers=LIVE)
    answer = Answer.objects.get()

    response = page.post(reverse("answer-stream", args=[answer.pk]))

    assert response["Content-Type"] == "text/event-stream"
    events = streamed(response)
    assert [name for name, _ in events] == ["stage"] * 5 + ["result", "end"]
    assert "costs 12 euros" in dict(events)["result"]
    assert not any("12 euros" in html for name, html in events if name == "stage")
    answer.refresh_from_db()
    assert answer.outcome == "answered"


def test_stream_of_a_decided_answer_sends_it_whole(page, user):
    answer = make_answer(user, cited=(make_entry(),))

    events = streamed(page.post(reverse("answer-stream", args=[answer.pk])))

    assert [name for name, _ in events] == ["result", "end"]


def test_two_streams_of_one_question_decide_it_once(page, knowledge):
    page.post("/", {"question": "What does a replacement card cost?"}, headers=LIVE)
    answer = Answer.objects.get()
    path = reverse("answer-stream", args=[answer.pk])
    first = page.post(path).streaming_content
    next(first)

    second = streamed(page.post(path))
    rest = b"".join(first).decode()
    third = streamed(page.post(path))

    assert second == []  # the page asks again
    assert "costs 12 euros" in dict(third)["result"]
    assert "costs 12 euros" in rest
    assert Answer.objects.get().evidence.count() == 1


def test_page_of_an_undecided_question_goes_on_with_it(page, knowledge):
    page.post("/", {"question": "Any fee?"}, headers=LIVE)
    answer = Answer.objects.get()

    body = page.get(reverse("answer", args=[answer.pk])).content.decode()

    assert f'sse-connect="{reverse("answer-stream", args=[answer.pk])}"' in body
    assert "Decide it now" in body  # where scripts don't run


def test_retry_decides_an_undecided_question_without_scripts(page, knowledge):
    page.post("/", {"question": "Who won the chess game?"}, headers=LIVE)
    answer = Answer.objects.get()

    page.post(reverse("answer-retry", args=[answer.pk]))

    answer.refresh_from_db()
    assert answer.outcome == "refused"


def test_failed_question_is_offered_again_and_then_decided(page, user, knowledge):
    answer = make_answer(
        user,
        question="What does a replacement card cost?",
        outcome="failed",
        gate="",
        reason="",
        shown_reason="",
        text="",
        policy=None,
        error="the server is down",
    )
    path = reverse("answer", args=[answer.pk])

    before = page.get(path).content.decode()
    again = page.post(reverse("answer-retry", args=[answer.pk]), headers=LIVE)
    events = streamed(
        page.post(reverse("answer-stream", args=[answer.pk]) + "?again=1")
    )

    assert "Try again" in before
    assert "?again=1" in again.content.decode()
    assert "costs 12 euros" in dict(events)["result"]


def test_model_that_is_down_leaves_the_question_kept_and_said_so(
    page, settings, monkeypatch
):
    make_entry("A lost card is blocked at once by calling the hotline.")
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:9/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0

    response = page.post("/", {"question": "How is a lost card blocked?"}, follow=True)

    assert Answer.objects.get().outcome == "failed"
    assert "Your question is saved" in response.content.decode()
    assert "Try again" in response.content.decode()


@pytest.mark.parametrize(
    "question", ["", "   ", "?!", "a\0b", "x" * 2001, "\u200b\u200b"]
)
@pytest.mark.parametrize("headers", [{}, LIVE])
def test_bad_question_is_said_at_the_box_and_nothing_is_kept(
    page, knowledge, question, headers
):
    response = page.post("/", {"question": question}, headers=headers)

    assert response.status_code == 400
    body = response.content.decode()
    assert 'id="ask-error"' in body
    assert 'aria-invalid="true"' in body
    assert not Answer.objects.exists()


def test_unknown_knowledge_base_is_said(page, knowledge):
    response = page.post("/", {"question": "Any fee?", "knowledge_base": "nope"})

    assert response.status_code == 400
    assert "There is no knowledge base “nope”" in response.content.decode()


def test_knowledge_base_is_chosen_only_where_there_are_several(page, knowledge):
    single = page.get("/").content.decode()
    make_knowledge_base("loans")
    several = page.get("/").content.decode()

    assert "<select" not in single
    assert re.findall(r'<option value="(\w+)"', several) == ["cards", "loans"]


def _chosen(body: str) -> list[str]:
    return re.findall(r'<option value="(\w+)" selected', body)


def test_one_goes_on_in_the_knowledge_base_of_ones_last_question(knowledge):
    page = page_client(make_user(Role.SME))
    make_knowledge_base("loans")
    before = page.get("/").content.decode()
    asked = page.post("/", {"question": "Any fee?", "knowledge_base": "loans"})
    make_answer(make_user())

    assert _chosen(before) == ["cards"]  # the oldest
    assert _chosen(page.get("/").content.decode()) == ["loans"]
    assert _chosen(page.get("/knowledge").content.decode()) == ["loans"]
    assert _chosen(page.get("/playground").content.decode())[0] == "loans"
    page.post("/", {"question": "Any fee?", "knowledge_base": "cards"})
    assert _chosen(page.get("/").content.decode()) == ["cards"]
    shown = page.get(asked["Location"]).content.decode()
    assert _chosen(shown) == ["loans"]
    assert f"· {KnowledgeBase.objects.get(slug='loans').name}</span>" in shown


def test_too_many_questions_are_slowed_down(page, knowledge, settings):
    from rest_framework.settings import api_settings

    rates = {**api_settings.DEFAULT_THROTTLE_RATES, "ask": "1/hour"}
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": rates,
    }

    statuses = [
        page.post("/", {"question": "Any fee?"}, headers=LIVE).status_code
        for _ in range(2)
    ]

    assert statuses == [200, 429]
    assert Answer.objects.count() == 1


def test_no_knowledge_at_all_is_said(page):
    response = page.post("/", {"question": "Any fee?"})

    assert response.status_code == 404
    assert "create one in the admin first" in response.content.decode()


def test_vote_is_set_changed_and_taken_back(page, user):
    answer = make_answer(user)
    path = reverse("answer-vote", args=[answer.pk])

    down = page.post(path, {"vote": "down"}, headers=LIVE).content.decode()
    more = {"reasons": ["should_be_known", "other"], "comment": "This is known."}
    page.post(
        path, {"vote": "down", **more, "expected_answer": "Twelve."}, headers=LIVE
    )
    said = Vote.objects.get()
    page.post(path, {"vote": "none"}, headers=LIVE)

    assert 'value="none" aria-pressed="true"' in down
    assert "We should know this" in down
    assert "It is wrong" not in down  # a refusal says nothing that could be
    assert (said.is_up, said.comment) == (False, "This is known.")
    assert (said.reasons, said.expected_answer) == (more["reasons"], "Twelve.")
    assert not Vote.objects.exists()


def test_a_refusal_that_is_called_wrong_is_so_because_it_should_be_known(page, user):
    def ticked(answer, **said):
        path = reverse("answer-vote", args=[answer.pk])
        body = page.post(path, {"vote": "down", **said}, headers=LIVE).content.decode()
        return re.findall(r'value="(\w+)" checked', body)

    refused = make_answer(user)
    answered = make_answer(user, cited=(make_entry(),))

    assert ticked(refused) == ["should_be_known"]
    assert ticked(refused, reasons=["other"]) == ["other"]
    assert (
        ticked(refused, comment="Seen yesterday.") == []
    )  # unticked, and something said
    assert ticked(answered) == []


def test_examples_are_of_the_knowledge_base_that_is_chosen(page):
    known, other = make_knowledge_base("cards"), make_knowledge_base("a new desk")
    make_entry("Open Cards, PIN.", question="How do I change my PIN?")
    make_entry("Call us.", question="Who helps?", knowledge_base=other)

    body = page.get("/").content.decode()

    assert f'<option value="{known.slug}" selected>' in body
    assert f'name="knowledge_base" value="{known.slug}"' in body
    assert "How do I change my PIN?" in body
    assert "Who helps?" not in body


def test_examples_and_the_next_visit_follow_the_choice(page):
    make_knowledge_base("cards")
    other = make_knowledge_base("a-new-desk")
    make_entry("Open Cards, PIN.", question="How do I change my PIN?")
    make_entry("Call us.", question="Who helps?", knowledge_base=other)

    chosen = page.get("/", {"knowledge_base": other.slug}).content.decode()
    again = page.get("/").content.decode()

    for body in (chosen, again):
        assert f'<option value="{other.slug}" selected>' in body
        assert f'name="knowledge_base" value="{other.slug}"' in body
        assert "Who helps?" in body
        assert "How do I change my PIN?" not in body


def test_a_table_is_one_in_the_answer_the_evidence_and_on_the_pages_of_entries(
    page, user
):
    text = "Prices:\nCopy | Price\nA4 <b>print | £0.60\nScan, 600 dpi | £14"
    entry = make_entry(text, document=make_document("Handbook"))
    answer = make_answer(user, cited=(entry,), text=text, gate="entry")
    AnswerEvidence.objects.update(quote="Scan, 600 dpi | £14")

    shown = page.get(reverse("answer", args=[answer.pk])).content.decode()
    others = [
        page.get(reverse("entry", args=[entry.pk])).content.decode(),
        page.get(reverse("document", args=[entry.document_id])).content.decode(),
    ]

    assert shown.count('<th scope="col">Copy ') == 2
    assert shown.count("<td><mark>Scan, 600 dpi </mark></td><td><mark> £14</mark></td>") == 2  # fmt: skip
    assert shown.count("A4 &lt;b&gt;print") == 3  # and what *Copy answer* copies
    assert re.search(r'</table></div><p><a class="citation" [^>]*>\[1\]</a></p>', shown)
    for each in others:
        assert '<th scope="col">Copy ' in each
        assert "<b>print" not in each


def test_one_click_keeps_which_entry_answers_a_refused_question(page, user):
    near = [make_entry(f"Card {number} costs 12 euros.") for number in range(5)]
    hint = make_entry("Cards cost something.", state="in_review")
    answer = make_answer(user, near_misses=(*near, hint), distance=0.9)
    path = reverse("answer-choose", args=[answer.pk])
    shown = reverse("answer", args=[answer.pk])
    before = page.get(shown).content.decode()

    page.post(path, {"entry": str(near[4].pk)})
    chosen = page.get(shown).content.decode()
    said = Vote.objects.get()
    listed = page.get(reverse("answers")).content.decode()
    page.post(path, {"entry": ""})

    assert "Does one of these answer it?" in before
    assert before.count("This answers it") == 5  # what nobody verified answers nothing
    assert before.index("Card 0") < before.index("(3)") < before.index("Card 3")
    assert (said.is_up, said.answering_entry) == (False, near[4])
    assert "not an answer of the system" in chosen
    assert "An expert sees it and decides" in chosen
    assert "You chose an entry" in listed
    assert "You chose an entry" not in page.get(reverse("answers")).content.decode()
    assert chosen.index("Your choice") < chosen.index("(2)")
    assert not Vote.objects.exists()  # it said nothing else
    assert page.post(path, {"entry": "x"}).status_code == 400


def test_an_experts_choice_is_said_to_answer_from_now_on():
    expert = make_user(Role.SME)
    near = make_entry()
    answer = make_answer(expert, near_misses=(near,), distance=0.9)
    path = reverse("answer-choose", args=[answer.pk])

    said = page_client(expert).post(path, {"entry": str(near.pk)}, headers=LIVE)

    assert WORDS["en"].labels["own_choice_of_expert"] in said.content.decode()


def test_a_choice_keeps_what_the_vote_says_beside_it(page, user):
    near = make_entry()
    answer = make_answer(user, near_misses=(near,), distance=0.9)
    said = {"vote": "down", "reasons": ["other"], "comment": "Seen yesterday."}
    page.post(reverse("answer-vote", args=[answer.pk]), said)
    path = reverse("answer-choose", args=[answer.pk])

    both = page.post(path, {"entry": str(near.pk)}, headers=LIVE).content.decode()
    page.post(path, {"entry": ""}, headers=LIVE)

    assert "Seen yesterday." in both
    assert 'id="vote"' in both
    kept = Vote.objects.get()
    assert (kept.reasons, kept.comment) == (["other"], "Seen yesterday.")
    assert kept.answering_entry is None


def test_an_entry_that_was_not_shown_can_not_be_chosen(page, user):
    other = make_entry()
    answer = make_answer(user, near_misses=(make_entry("Cards are free."),))
    path = reverse("answer-choose", args=[answer.pk])

    response = page.post(path, {"entry": str(other.pk)}, headers=LIVE)

    assert response.status_code == 422
    assert "was not shown beside this refusal" in response.content.decode()
    assert not Vote.objects.exists()


def test_reasons_name_evidence_by_the_number_of_its_card(page, user):
    unused, cited = make_entry("Cards are free."), make_entry()
    answer = make_answer(
        user, cited=(cited,), unused=(unused,),
        reasoning="Of 2 pieces of evidence, number 2 fits; [1] does not.",
    )  # fmt: skip
    # The model read what it cites in the second place.
    pieces = answer.evidence.order_by("rank")
    for piece, rank in zip(pieces, (12, 11), strict=True):
        AnswerEvidence.objects.filter(pk=piece.pk).update(rank=rank)
    for rank in (11, 12):
        AnswerEvidence.objects.filter(answer=answer, rank=rank).update(rank=rank - 10)

    shown = page.get(reverse("answer", args=[answer.pk])).content.decode()

    assert "number 1 fits; [2] does not." in shown
    assert "Of 2 pieces" in shown


def test_one_word_asks_back_which_entry_is_meant(page, user):
    change = "How do I change my PIN?"
    make_entry("The PIN of a card has four digits.")
    make_entry("Open Cards, PIN.", question=change)
    make_entry("A replacement card costs 12 euros.")
    make_entry(
        "The PIN of the vault is long.",
        audience=make_audience(groups=["x"], slug="vault"),
    )
    make_entry("The PIN was longer.", state="in_review")
    word, sentence = (
        make_answer(user, question=said) for said in ("PIN?", "What is a PIN for?")
    )

    body, other = (
        page.get(reverse("answer", args=[each.pk])).content.decode()
        for each in (word, sentence)
    )

    assert "Do you mean one of these?" in body
    assert f'name="question" value="{change}"' in body
    assert body.index(change) < body.index("four digits")
    assert not any(said in body for said in ("vault", "longer", "12 euros"))
    assert "Do you mean one" not in other


def test_entries_that_compete_are_a_question_back(page, user):
    gold, business = make_entry("Gold costs 72 euros."), make_entry("96 for Business.")
    near = (make_entry("Nobody checked.", state="in_review"), gold, business)
    answer = make_asked_back(user, *near, make_entry("Cash costs 4 euros."))

    body = page.get(reverse("answer", args=[answer.pk])).content.decode()
    path = reverse("answer-choose", args=[answer.pk])
    page.post(path, {"entry": str(business.pk)})
    chosen = page.get(reverse("answer", args=[answer.pk])).content.decode()

    assert body.count("Do you mean one of these?") == 1
    assert body.count("I mean this one") == 2
    assert body.index(business.text) < body.index("(2)") < body.index("Cash costs")
    assert Vote.objects.get().answering_entry == business
    assert "Your choice" in chosen


@pytest.mark.slow
def test_a_follow_up_is_shown_as_it_was_asked_and_can_be_edited(page, knowledge):
    first = page.post("/", {"question": knowledge.question}).url.rpartition("/")[2]
    typed = "and a new card?"
    shown = page.post("/", {"question": typed, "follows": first}, follow=True)
    second = Answer.objects.get(typed=typed)

    body = shown.content.decode()
    assert second.question == "What does a new card cost?"
    assert str(second.conversation) == first
    assert f"You typed <q>{typed}</q>. Asked as:" in body
    assert "Edit the question" in body
    assert f'<a href="/answers/{first}">{knowledge.question}</a>' in body
    edited = {"question": typed, "follows": second.pk, "as_it_stands": "1"}
    page.post("/", edited)
    third = Answer.objects.get(question=typed)
    assert (third.question, third.typed) == (typed, "")
    assert str(third.conversation) == first
    assert typed in page.get("/answers", {"q": "AND A NEW"}).content.decode()


def test_what_follows_somebody_elses_answer_is_refused(page, knowledge):
    foreign = make_answer(make_user())

    for follows, status in ((foreign.pk, 404), ("x", 400)):
        fields = {"question": "and a new card?", "follows": follows}
        response = page.post("/", fields)
        assert response.status_code == status
        assert "ask a new " in response.content.decode()
    shown = page.get(f"/answers/{foreign.pk}")
    assert shown.status_code == 404
    assert Answer.objects.count() == 1


def test_an_empty_question_is_asked_for(page):
    for nothing in ("", "  \n"):
        response = page.post("/", {"question": nothing}, headers=LIVE)

        assert response.status_code == 400
        assert "Type a question first." in response.content.decode()


def test_vote_by_a_plain_form_comes_back_to_the_answer(page, user):
    answer = make_answer(user)

    response = page.post(reverse("answer-vote", args=[answer.pk]), {"vote": "up"})

    assert response["Location"] == reverse("answer", args=[answer.pk]) + "#vote"
    assert Vote.objects.get().is_up


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"vote": "sideways"}, 400),
        ({"vote": "up", "comment": "x" * 2001}, 422),
    ],
)
def test_bad_vote_changes_nothing(page, user, fields, status):
    answer = make_answer(user)

    path = reverse("answer-vote", args=[answer.pk])
    response = page.post(path, fields, headers=LIVE)

    assert response.status_code == status
    assert not Vote.objects.exists()


def test_page_tells_what_became_of_the_evidence_since(page, user):
    entries = [make_entry(f"Fact number {n} is so.") for n in range(3)]
    answer = make_answer(user, cited=tuple(entries))
    curator = make_curator()
    edit_entry(
        entry_id=entries[0].pk, author=curator, may_verify=True, text="It is other."
    )
    retire_entry(entry_id=entries[1].pk, by=curator)
    Upkeep.objects.filter(entry=entries[2]).update(review_due=timezone.now())

    body = page.get(reverse("answer", args=[answer.pk])).content.decode()

    assert "Fact number 0 is so." in body  # as it was when it was cited
    assert body.count("Review overdue") == 1
    assert body.count("Edited since") == 1
    assert body.count("Retired since") == 1


def test_refusal_shows_related_entries_apart_and_no_citation(page, user):
    answer = make_answer(user, near_misses=(make_entry(),), distance=0.9)

    body = page.get(reverse("answer", args=[answer.pk])).content.decode()

    assert "Related entries" in body
    assert 'class="citation"' not in body
    assert 'id="near-1"' in body


def test_rejected_draft_is_nowhere_on_the_page(page, user):
    answer = make_answer(
        user,
        near_misses=(make_entry(),),
        gate="soft_refusal",
        reason="unsupported",
        shown_reason="unsupported",
        generation={"answer": "REJECTED-DRAFT", "raw": "REJECTED-DRAFT"},
        reasoning="",
    )

    body = page.get(reverse("answer", args=[answer.pk])).content.decode()

    assert "REJECTED-DRAFT" not in body
    assert "Related entries" in body


def test_stale_limits_are_said(page, user):
    answer = make_answer(user, calibration="stale")

    body = page.get(reverse("answer", args=[answer.pk])).content.decode()

    assert "The thresholds are out of date" in body


def test_ask_page_takes_four_queries(page, user, django_assert_num_queries):
    for _ in range(3):
        make_answer(user)

    with django_assert_num_queries(4):  # session, user with groups, bases, recent
        page.get("/")


@pytest.mark.parametrize("pieces", [1, 6])
def test_queries_of_an_answer_do_not_grow_with_its_evidence(
    page, user, django_assert_num_queries, pieces
):
    answer = make_answer(
        user, cited=tuple(make_entry(f"Fact {n} is so.") for n in range(pieces))
    )

    # session, user with groups, role, answer, origin of the thresholds, evidence, vote,
    # escalation, bases
    with django_assert_num_queries(9):
        page.get(reverse("answer", args=[answer.pk]))


@pytest.mark.parametrize(
    ("chosen", "question", "language"),
    [
        ("de", "Who won the chess game?", "de"),
        ("", "Wer hat die Partie Schach gewonnen?", "de"),
        ("en", "Wer hat die Partie Schach gewonnen?", "en"),
        ("", "Schach?", "en"),
    ],
)
def test_a_refusal_is_in_the_chosen_language_or_the_questions(
    page, user, knowledge, chosen, question, language
):
    Preferences.objects.create(user=user, language=chosen)

    shown = page.post("/", {"question": question}, follow=True).content.decode()

    answer = Answer.objects.get()
    assert answer.outcome == Answer.Outcome.REFUSED
    assert answer.language == "en"  # of what would be written
    assert answer.refusal_language == (
        "" if language == "en" and not chosen else language
    )
    assert f'lang="{language}"' in shown
    said = refusal_text(Reason(answer.shown_reason), language).split(".")[0]
    assert said in unescape(shown)
    words = WORDS[language].reasons[Reason(answer.shown_reason)]
    assert all(step in unescape(shown) for step in (words.title, *words.next_steps))


def test_what_is_beside_a_german_refusal_is_german_and_its_entries_are_not(page, user):
    gold, business = make_entry("Gold costs 72 euros."), make_entry("96 for Business.")
    others = (make_entry("Nobody checked.", state="in_review"), make_entry("4 euros."))
    answer = make_asked_back(user, gold, business, *others, refusal_language="de")
    path = reverse("answer", args=[answer.pk])
    labels = WORDS["de"].labels

    body = unescape(page.get(path).content.decode())
    page.post(reverse("answer-choose", args=[answer.pk]), {"entry": str(gold.pk)})
    chosen = unescape(page.get(path).content.decode())
    english = make_asked_back(user, gold, business)
    other = unescape(page.get(reverse("answer", args=[english.pk])).content.decode())

    for name in (
        "not_answered", "asks_back", "choose_it", "which_is_meant", "this_is_meant",
        "more_related", "not_verified", "was_it_right", "should_be_known", "next_steps",
    ):  # fmt: skip
        assert labels[name] in body
        assert WORDS["en"].labels[name] not in body
        assert labels[name] not in other
    assert f'<p class="card-text" lang="en">{gold.text}' in body
    assert labels["chosen"] in chosen
    assert labels["own_choice"] in chosen


def test_a_german_refusal_is_announced_and_voted_on_in_german(page, user):
    answer = make_answer(user, refusal_language="de")
    labels = WORDS["de"].labels
    path = reverse("answer-vote", args=[answer.pk])

    voted, back = (
        page.post(path, {"vote": thumb}, headers=LIVE).content.decode()
        for thumb in ("down", "none")
    )

    assert all(
        labels[name] in voted
        for name in ("what_is_wrong", "reason_entry_exists", "should_have_said", "send")
    )
    for body, said in ((voted, "voted_known"), (back, "vote_removed")):
        assert '<p id="announcement" lang="de"' in body
        assert labels[said] in body
