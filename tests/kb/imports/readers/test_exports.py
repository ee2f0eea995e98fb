"""Tables and JSON as help centres, content systems and desks export them."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.imports.readers import (
    BadRow,
    Fact,
    ImportFileError,
    SourceDocument,
    UnreadColumns,
    Withdrawn,
)
from kb.imports.readers.markup import words_of

from .files import facts, items, make_excel

ARTICLES = """id,title,body,section,draft
1,Late fees,"<p>A late fee is <b>12</b>&nbsp;euros.</p><ul><li>Loans</li><li>Cards</li></ul>",Loans,false
2,Paying early,"<p>Paying early is free.</p>",Loans,true
3,How do I pay?,"<p>By card.<br>Or by transfer.</p>",Loans,false
"""
ASKED_BELOW = ("headings", "question", "text")


def said(name: str, content: bytes | str) -> list[tuple[object, ...]]:
    read = facts(name, content)
    return [tuple(getattr(fact, each) for each in ASKED_BELOW) for fact in read]


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.json", "a.jsonl"])
def test_articles_are_one_document_each_below_its_section_and_title(name):
    header, *rows = [
        [cell.replace('"', "") for cell in line.split(",")]
        for line in ARTICLES.splitlines()
    ]
    objects = [dict(zip(header, row, strict=True)) for row in rows]
    sheet: list[list[object]] = [[*row] for row in (header, *rows)]
    content = {
        "a.csv": ARTICLES.encode(),
        "a.xlsx": make_excel(Sheet1=sheet),
        "a.json": json.dumps(objects).encode(),
        "a.jsonl": "\n".join(map(json.dumps, objects)).encode(),
    }[name]

    read = items(name, content)

    (document,) = [each for each in read if isinstance(each, SourceDocument)]
    assert (document.title, document.source) == ("", "")
    assert document.headings == (("Loans",), ("Loans", "Late fees"))
    assert [
        tuple(getattr(fact, each) for each in ASKED_BELOW) for fact in document.facts
    ] == [
        (("Loans", "Late fees"), "", "A late fee is 12 euros."),
        (("Loans", "Late fees"), "", "- Loans\n- Cards"),
        (("Loans",), "How do I pay?", "By card. Or by transfer."),
    ]
    assert sum(isinstance(each, Withdrawn) for each in read) == 1
    (note,) = [each for each in read if isinstance(each, UnreadColumns)]
    assert note == UnreadColumns((), ("'body' as text",))


def test_a_prepared_reply_is_found_by_its_subject():
    assert said(
        "a.csv", "Subject;Reply\nLate payment;Dear member, pay 12 euros.\n"
    ) == [((), "Late payment", "Dear member, pay 12 euros.")]


REPLY = "Hello {{ticket.requester.first_name}},\n\nPay {{amount}} at the desk.\n\nKind regards\nThe desk"


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (REPLY, "Pay {{amount}} at the desk."),
        (f"{REPLY}\n{{{{agent.name}}}}", "Pay {{amount}} at the desk."),
        ("Hello there. Kind regards", "Hello there. Kind regards"),
        ("Dear {{name}},", "Dear {{name}},"),
        ("Say {{name}} twice.\nThanks to all.", "Say {{name}} twice.\nThanks to all."),
    ],
)
def test_a_macro_is_read_without_its_salutation(reply, kept):
    ((_, question, text),) = said(
        "a.json", json.dumps([{"title": "Lost PIN", "macro_text": reply}])
    )
    assert (question, text) == ("Lost PIN", kept)


@pytest.mark.parametrize(
    ("heading", "used", "unused"),
    [
        ("title,macro,active", "true", "false"),
        ("Title,Answer__c,PublishStatus", "Online", "Draft"),
        ("question,answer,post_status", "publish", "trash"),
        ("Question,Answer,Article State", "published", "Archived"),
    ],
)
def test_what_is_not_active_or_not_published_is_left_out(heading, used, unused):
    rows = f"{heading}\nLost PIN,By post.,{used}\nOld PIN,By fax.,{unused}\n"
    *_, fact, withdrawn = items("a.csv", rows.encode())
    assert isinstance(fact, Fact)
    assert isinstance(withdrawn, Withdrawn)


INTENTS = {
    "Dialogflow CX": {
        "agent": {"displayName": "Lin"},
        "flows": [{"displayName": "Cards", "intents": [
            {"name": "projects/p/intents/1", "displayName": "card.lost",
             "trainingPhrases": [
                 {"parts": [{"text": "I lost my "}, {"text": "card", "parameterId": "c"}]},
                 {"parts": [{"text": "stolen card"}]}],
             "messages": [{"text": {"text": ["Freeze it.", "Freeze it in the app."]}},
                          {"payload": {"buttons": 2}}, {"text": {"text": ["Then call us."]}}],
             "followupIntents": [
                 {"displayName": "card.lost.abroad", "name": "2",
                  "trainingPhrases": [{"parts": [{"text": "lost abroad"}]}],
                  "messages": [{"text": {"text": ["A courier brings one."]}}]}]},
            {"displayName": "fallback", "isFallback": True, "messages": [
                {"text": {"text": ["Sorry?"]}}]}]}],
        "entityTypes": [{"value": "card", "synonyms": ["plastic"]}],
    },
    "Dialogflow ES": {"displayName": "Cards", "intents": [
        {"name": "card.lost",
         "userSays": [{"data": [{"text": "I lost my "}, {"text": "card"}]}, {"data": [{"text": "stolen card"}]}],
         "responses": [{"messages": [{"speech": ["Freeze it.", "Freeze it in the app."]}, {"speech": "Then call us."}]}]},
        {"name": "2",  "userSays": [{"data": [{"text": "lost abroad"}]}],
         "responses": [{"messages": [{"speech": "A courier brings one."}]}]},
    ]},
    "intents.json": {"Cards": {"category": "Cards", "intents": [
        {"tag": "lost", "patterns": ["I lost my card", "stolen card", "stolen card"],
         "responses": ["Freeze it in the app.\n\nThen call us.", "Freeze it."]},
        {"tag": "2", "patterns": ["lost abroad"], "responses": ["A courier brings one."]}]}},
    "Azure": {"title": "Cards", "qnaList": [
        {"id": 1, "questions": ["I lost my card", "stolen card"],
         "answer": "Freeze it in the app.\n\nThen call us.", "metadata": [{"name": "a", "value": "b"}]},
        {"id": 2, "questions": ["lost abroad"], "answer": "A courier brings one."}]},
}  # fmt: skip


@pytest.mark.parametrize("bot", INTENTS)
def test_an_intent_of_a_chatbot_is_a_question_in_several_wordings(bot):
    read = facts("a.json", json.dumps(INTENTS[bot]))

    assert [(fact.question, fact.wordings, fact.text) for fact in read] == [
        ("I lost my card", ("stolen card",), "Freeze it in the app.\n\nThen call us."),
        ("lost abroad", (), "A courier brings one."),
    ]
    assert {fact.headings for fact in read} == {("Cards",)}
    assert all(fact.id for fact in read)


def test_an_intent_has_as_many_wordings_as_an_entry():
    phrases = [f"lost card {number}" for number in range(50)]
    (fact,) = facts(
        "a.json", json.dumps([{"patterns": phrases, "responses": ["Call."]}])
    )
    assert (fact.question, fact.wordings) == (phrases[0], (*phrases[1:31],))


def test_a_text_with_an_id_keeps_it_below_its_title():
    (fact,) = facts("a.csv", "id,title,text\n7,Fees,A card costs 12 euros.\n")
    assert (fact.id, fact.headings) == ("7", ("Fees",))
    assert fact.text == "A card costs 12 euros."


def test_one_question_below_several_headings_is_several():
    rows = "Category,Question,Answer\nLoans,How old?,18.\nSavings,How old?,16.\nLoans,Why?,So.\n"
    of_table = facts("a.csv", rows)
    of_book = facts(
        "a.xlsx",
        make_excel(
            Loans=[["Question", "Answer"], ["How old?", 18]],
            Savings=[["Question", "Answer"], ["How old?", 16]],
            FAQ=[["Question", "Answer"], ["Why?", "So."]],
        ),
    )

    assert [fact.headings for fact in of_table] == [
        ("Loans",),
        ("Savings",),
        ("Loans",),
    ]
    assert [fact.headings for fact in of_book] == [("Loans",), ("Savings",), ()]
    for read in (of_table, of_book):
        assert len({fact.key for fact in read}) == 3


def test_what_nothing_is_sorted_under_is_no_section():
    (fact, _), notes = (
        facts("a.csv", table := "topic,question,answer\nA,How?,So.\nB,Why?,So.\n"),
        items("a.csv", table.encode())[0],
    )
    assert fact.headings == ()
    assert notes == UnreadColumns(("topic",))


def test_an_exported_table_is_sorted_by_nobody():
    """Its sections are parts of a tree, of which a name says too little."""
    rows = "id,own_key,section,state,text\n7,,A,retired,One.\n8,,A,draft,Two.\n"
    assert [fact.headings for fact in facts("a.csv", rows)] == [(), ()]


@pytest.mark.parametrize(
    "held",
    [
        {"groups": [{"name": "Bills", "about": "All of it", "faqs": "rows"}]},
        {"data": {"Bills": "rows", "Cards": "others"}},
        {"Bills": "rows", "Cards": "others"},
    ],
)
def test_categories_of_json_head_their_questions(held):
    rows = [
        {"q": "How much is it?", "a": "<p>Five euros a year.</p>", "tags": [{"n": 1}]}
    ]
    others = [{"q": "How long is it?", "a": "Five days or longer."}]
    content = json.dumps(held).replace('"rows"', json.dumps(rows))

    first, *_ = said("a.json", content.replace('"others"', json.dumps(others)))

    assert first == (("Bills",), "How much is it?", "Five euros a year.")


def test_a_page_of_questions_for_search_engines_is_read():
    asked = {
        "@type": "Question",
        "name": "How much is it?",
        "acceptedAnswer": {"@type": "Answer", "text": "<p>Five euros.</p>"},
    }
    content = json.dumps({"@type": "FAQPage", "mainEntity": [asked]})
    assert said("a.json", content) == [((), "How much is it?", "Five euros.")]


def test_json_that_is_nested_too_deeply_is_refused():
    content = '{"a":' * 900 + '[{"text": "A card costs 12 euros."}]' + "}" * 900
    with pytest.raises(ImportFileError, match="recursion"):
        items("a.json", content.encode())


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("&lt;p&gt;AT&amp;amp;T&lt;/p&gt;", "AT&T"),
        ("Fees &amp; terms", "Fees & terms"),
        ("Write <b> before it.", "Write <b> before it."),
        ("a < b and c > d; R&D", "a < b and c > d; R&D"),
        ('See <a href="https://x.example">our page</a>.', "See our page."),
        ("One<br/>Two", "One Two"),
        ("<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>",
         "A | B\n--- | ---\n1 | 2"),
    ],
)  # fmt: skip
def test_html_in_a_cell_is_read_as_text(cell, words):
    assert words_of(cell) == words


def test_an_answer_of_pictures_alone_is_told():
    (bad,) = items("a.csv", b"question,answer\nHow?,<p><img src='x'></p>\n")
    assert isinstance(bad, BadRow)
    assert "no answer" in bad.reason


WORDS = st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=8), min_size=1)


@given(paragraphs=st.lists(WORDS, min_size=1, max_size=5))
def test_no_word_of_a_cells_html_is_lost(paragraphs):
    cell = "".join(f"<p>{' '.join(words)}</p>" for words in paragraphs)
    assert words_of(cell).split() == [word for words in paragraphs for word in words]


def test_a_state_of_a_table_of_facts_is_a_fact():
    """What "Draft" means is knowledge, and no row that is withdrawn."""
    read = facts("a.csv", "Status,Meaning\nDraft,It is not sent.\nSent,It was sent.\n")
    assert [type(fact) for fact in read] == [Fact, Fact]
