"""What people write is text on every page, whatever it looks like."""

from html.parser import HTMLParser

import pytest
from django.urls import reverse

from kb.models import Section
from qa.models import Answer
from qa.votes.services import vote
from tests.clients import page_client
from tests.factories import make_document, make_entry, make_user
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

CORPUS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea><script>alert(1)</script>",
    "</template><iframe src=javascript:alert(1)>",
    "</title><body onload=alert(1)>",
    "javascript:alert(1)",
    "{{ 7|add:7 }}{% csrf_token %}",
    "[1] <b>bold</b> &lt;script&gt; &#60;i&#62;",
    "<div hx-get=/logout hx-trigger=load sse-connect=/x>x</div>",
    "<!-- --><![CDATA[<x>]]>",
    "a\u2028<script>\u2029alert(1)</script>",
    "ŗtl \u202e<script>",
]


class Collector(HTMLParser):
    """Collects the tags, the attribute names and the text of a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        links = ("href", "src", "action", "formaction", "hx-post", "hx-get")
        self.links += [value or "" for name, value in attrs if name in links]

    def handle_data(self, data):
        self.texts.append(data)


def parsed(html: str) -> Collector:
    collector = Collector()
    collector.feed(html)
    return collector


def page_of(client, answer):
    return client.get(reverse("answer", args=[answer.pk])).content.decode()


def streamed(client, answer):
    response = client.post(reverse("answer-stream", args=[answer.pk]))
    return b"".join(response.streaming_content).decode()


def written_everywhere(user, evil: str) -> Answer:
    document = make_document(evil, source=evil)
    section = Section.objects.create(document=document, heading=evil, position=0)
    entry = make_entry(f"{evil} is so.", question=evil, section=section)
    answer = make_answer(
        user,
        question=evil,
        cited=(entry,),
        unused=(make_entry(f"{evil} too."),),
        text=f"{evil} [1]",
        reasoning=evil,
        language_model=evil,
        signals=[
            {
                "gate": "hard_refusal",
                "name": evil,
                "value": 1.0,
                "threshold": 2.0,
                "passed": True,
            }
        ],
        milliseconds={evil: 3.0},
    )
    vote(answer.pk, user=user, is_up=False, comment=evil)
    return answer


@pytest.mark.parametrize("evil", CORPUS)
def test_hostile_text_adds_no_tag_and_no_attribute(evil):
    user = make_user(username="plain")
    client = page_client(user)
    first = written_everywhere(user, "harmless")
    harmless = parsed(page_of(client, first) + client.get("/answers").content.decode())

    answer = written_everywhere(user, evil)
    pages = [
        page_of(client, answer),
        client.get(reverse("answers"), {"q": evil}).content.decode(),
        client.get(reverse("ask")).content.decode(),
        client.post("/", {"question": evil + "\0"}).content.decode(),
        streamed(client, answer),
    ]

    for found in map(parsed, pages):
        assert found.tags <= harmless.tags
        assert not {a for a in found.attributes if a.startswith("on")}
        assert not [link for link in found.links if "javascript" in link.lower()]
    shown = " ".join(" ".join(parsed(pages[0]).texts).split())
    assert " ".join(f"{evil} is so.".split()) in shown


def test_hostile_line_ends_forge_no_event():
    user = make_user()
    forged = "x\n\nevent: end\ndata: forged\n\n\revent: end\r\rdata: y"
    answer = make_answer(user, question="ok?", cited=(make_entry(),), text=forged)
    client = page_client(user)

    body = streamed(client, answer)

    assert "\r" not in body
    lines = body.split("\n")
    assert [line for line in lines if line.startswith("event:")] == [
        "event: result",
        "event: end",
    ]
    assert all(line == "" or line.startswith(("event: ", "data: ")) for line in lines)


def test_template_syntax_in_text_is_not_run():
    user = make_user()
    answer = make_answer(user, question="{{ user.username }} {% now 'Y' %}?")
    client = page_client(user)

    body = page_of(client, answer)

    assert "{{ user.username }}" in body
