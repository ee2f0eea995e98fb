import json
from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from jobs.models import Job
from kb.demonstration import KNOWLEDGE, load_demonstration
from kb.exceptions import InvalidKnowledgeError
from kb.models import Audience, Document, Entry, EntryEmbedding, KnowledgeBase
from tests.factories import make_curator

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def small(tmp_path):
    """Return a demonstration file of one document, and a way to change it."""
    content = {
        "knowledge_base": {"slug": "small", "name": "Small", "language": "en"},
        "audiences": [
            {"slug": "all", "name": "All", "everyone": True, "groups": []},
            {"slug": "desk", "name": "Desk", "everyone": False, "groups": ["desk"]},
        ],
        "documents": [
            {
                "title": "Fees",
                "source": "Edition 4",
                "audience": "all",
                "sections": [
                    {
                        "heading": "Cards",
                        "entries": [_entry("Gold costs 72 euros.", "verified")],
                        "sections": [
                            {
                                "heading": "Old cards",
                                "entries": [
                                    _entry(
                                        "Silver cost 5 euros.",
                                        "retired",
                                        confidence=0.5,
                                    ),
                                    _entry(
                                        "Bronze is free.",
                                        "verified",
                                        expired_days_ago=3,
                                        audience="desk",
                                    ),
                                ],
                            }
                        ],
                    },
                    {
                        "heading": "Cash",
                        "entries": [
                            _entry("Cash costs 3 percent.", "in_review", confidence=0.6)
                        ],
                    },
                ],
            }
        ],
    }
    file = tmp_path / "knowledge.json"

    def write(**changes):
        file.write_text(json.dumps({**content, **changes}))
        return file

    return write


def _entry(text, state, **fields):
    return {"key": text[:5], "text": text, "state": state, "origin": "manual", **fields}


def test_every_entry_stands_in_its_section_with_its_state(small):
    load_demonstration(author=make_curator(), file=small())

    rows = Entry.objects.order_by("pk").values_list(
        "text", "section__heading", "state", "confidence", "audience__slug"
    )
    assert list(rows) == [
        ("Gold costs 72 euros.", "Cards", "verified", 1.0, "all"),
        ("Silver cost 5 euros.", "Old cards", "retired", 0.5, "all"),
        ("Bronze is free.", "Old cards", "verified", 1.0, "desk"),
        ("Cash costs 3 percent.", "Cash", "in_review", 0.6, "all"),
    ]
    assert Entry.objects.filter(valid_until__isnull=False).get().text.startswith("Br")
    assert Audience.objects.get(slug="desk").groups.get().name == "desk"


def test_loading_again_changes_nothing(small):
    curator = make_curator()

    first = load_demonstration(author=curator, file=small())
    second = load_demonstration(author=curator, file=small())

    assert (first, second) == (True, False)
    assert Entry.objects.count() == 4


def test_a_worker_compares_what_was_loaded(small):
    """The first answers would warn of entries not compared, until the night."""
    load_demonstration(author=make_curator(), file=small())

    assert Job.objects.get().kind == "kb.find_conflicts"


def test_what_fails_half_way_leaves_nothing(small):
    bad = {
        "title": "Bad",
        "source": "",
        "audience": "all",
        "sections": [{"heading": "Bad", "entries": [_entry("", "draft")]}],
    }

    with pytest.raises(InvalidKnowledgeError):
        load_demonstration(author=make_curator(), file=small(documents=[bad]))

    assert not KnowledgeBase.objects.exists()
    assert not Document.objects.exists()
    assert not Group.objects.filter(name="desk").exists()


def test_the_real_demonstration_loads_in_few_queries(django_assert_max_num_queries):
    curator = make_curator()
    described = KNOWLEDGE.read_text().count('"key":')

    with django_assert_max_num_queries(400):
        load_demonstration(author=curator)

    firsts = EntryEmbedding.objects.filter(part=1)
    assert Entry.objects.count() == firsts.count() == described
    assert KnowledgeBase.objects.get().slug == "cards"


def test_command_says_what_it_did_and_needs_an_author():
    with pytest.raises(CommandError, match="There is no superuser"):
        call_command("load_demonstration")
    with pytest.raises(CommandError, match="no active user 'nobody'"):
        call_command("load_demonstration", author="nobody")
    curator = make_curator()
    said = StringIO()

    call_command("load_demonstration", author=curator.username, stdout=said)
    call_command("load_demonstration", author=curator.username, stdout=said)

    assert said.getvalue().splitlines() == [
        "The demonstration is loaded.",
        "The demonstration was already there.",
    ]
