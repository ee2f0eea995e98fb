import pytest

from kb.audiences.services import create_audience, edit_audience
from kb.documents.services import (
    DEPTH_LIMIT,
    SECTIONS_LIMIT,
    SectionNode,
    create_document,
    edit_document,
    section_tree,
)
from kb.exceptions import (
    AudienceExistsError,
    AudienceNotFoundError,
    DocumentNotFoundError,
    InvalidKnowledgeError,
)
from kb.models import Audience, Document, Entry, Section
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entry,
    make_knowledge_base,
    make_user,
)

pytestmark = pytest.mark.django_db

TREE = (
    SectionNode("Fees", (SectionNode("Cards"), SectionNode("Cash"))),
    SectionNode("Limits"),
)


def _create(**fields) -> Document:
    return create_document(
        **{
            "knowledge_base": make_knowledge_base(),
            "title": "Price list",
            "audience": make_audience(),
            "author": make_curator(),
            **fields,
        }
    )


def _headings(nodes):
    return [(node.heading, _headings(node.children)) for node in nodes]


def _tree(document):
    return section_tree(list(Section.objects.filter(document=document)))


def _chain(depth: int) -> SectionNode:
    node = SectionNode("Deepest")
    for _ in range(depth - 1):
        node = SectionNode("Above", (node,))
    return node


def test_document_keeps_its_tree_in_order():
    document = _create(sections=TREE)

    assert _headings(_tree(document)) == [
        ("Fees", [("Cards", []), ("Cash", [])]),
        ("Limits", []),
    ]


def test_entries_follow_their_document_to_another_audience_where_that_is_wished():
    everyone, board = make_audience(), make_audience("board", groups=["board"])
    other = make_audience("other", groups=["other"])
    document = _create(audience=everyone)
    mine = make_entry("A card costs 12 euros.", document=document, audience=everyone)
    theirs = make_entry("A loan costs 5 %.", document=document, audience=other)

    edit_document(document_id=document.pk, audience=other)
    mine.refresh_from_db()
    assert mine.audience == everyone
    edit_document(document_id=document.pk, audience=everyone)
    edit_document(document_id=document.pk, audience=board, entries_follow=True)

    mine.refresh_from_db()
    theirs.refresh_from_db()
    assert (mine.audience, theirs.audience) == (board, other)
    assert "document" in mine.revisions.order_by("-number")[0].reason
    assert mine.state == Entry.State.VERIFIED


def test_tree_is_rebuilt_and_what_keeps_its_id_keeps_its_entries():
    document = _create(sections=TREE)
    fees, limits = _tree(document)
    cards, cash = fees.children
    in_cash = make_entry("Cash.", section=Section.objects.get(pk=cash.id))
    in_cards = make_entry("Cards.", section=Section.objects.get(pk=cards.id))

    edit_document(
        document_id=document.pk,
        sections=[
            SectionNode("Cash and more", (limits, SectionNode("New")), cash.id),
            SectionNode("Fees", (), fees.id),
        ],
    )

    in_cash.refresh_from_db()
    in_cards.refresh_from_db()
    assert _headings(_tree(document)) == [
        ("Cash and more", [("Limits", []), ("New", [])]),
        ("Fees", []),
    ]
    assert in_cash.section_id == cash.id
    assert (in_cards.section, in_cards.document) == (None, document)


def test_siblings_can_be_swapped():
    document = _create(sections=[SectionNode("A"), SectionNode("B")])
    first, second = _tree(document)

    edit_document(document_id=document.pk, sections=[second, first])

    assert _headings(_tree(document)) == [("B", []), ("A", [])]


def test_parent_and_child_can_change_places():
    document = _create(sections=[SectionNode("Above", (SectionNode("Below"),))])
    (above,) = _tree(document)
    (below,) = above.children

    edit_document(
        document_id=document.pk,
        sections=[
            SectionNode("Below", (SectionNode("Above", (), above.id),), below.id)
        ],
    )

    assert _headings(_tree(document)) == [("Below", [("Above", [])])]


@pytest.mark.parametrize(
    "sections",
    [
        [SectionNode("")],
        [SectionNode("two\nlines")],
        [SectionNode("x" * 301)],
        [SectionNode("Unknown", (), 999_999)],
        [_chain(DEPTH_LIMIT + 1)],
        [SectionNode("One of many")] * (SECTIONS_LIMIT + 1),
    ],
)
def test_tree_that_may_not_be_is_refused_and_the_old_one_stays(sections):
    document = _create(sections=TREE)
    before = _tree(document)

    with pytest.raises(InvalidKnowledgeError):
        edit_document(document_id=document.pk, title="New", sections=sections)

    document.refresh_from_db()
    assert _tree(document) == before
    assert document.title == "Price list"


def test_section_of_another_document_or_named_twice_is_refused():
    document, other = _create(sections=TREE), _create(sections=TREE)
    (stranger, _), (own, _) = _tree(other), _tree(document)

    with pytest.raises(InvalidKnowledgeError, match="has no section"):
        edit_document(
            document_id=document.pk, sections=[SectionNode("X", (), stranger.id)]
        )
    with pytest.raises(InvalidKnowledgeError, match="named twice"):
        edit_document(
            document_id=document.pk,
            sections=[SectionNode("X", (), own.id), SectionNode("Y", (), own.id)],
        )


def test_as_deep_as_allowed_is_allowed():
    document = _create(sections=[_chain(DEPTH_LIMIT)])

    assert document.sections.count() == DEPTH_LIMIT


def test_changing_the_audience_of_a_document_leaves_its_entries():
    document = make_document()
    entry = make_entry(document=document)
    secret = make_audience("fraud-desk", groups=["fraud-desk"])

    edit_document(document_id=document.pk, audience=secret)

    entry.refresh_from_db()
    assert entry.audience.slug == "everyone"
    assert make_entry("Later.", document=Document.objects.get()).audience == secret


def test_unknown_document_and_audience_are_told():
    with pytest.raises(DocumentNotFoundError, match="no document 4711"):
        edit_document(document_id=4711, title="X")
    with pytest.raises(AudienceNotFoundError, match="no audience 4711"):
        edit_audience(audience_id=4711, name="X")


def test_audience_of_groups_is_seen_by_their_members():
    member = make_user(groups=["fraud-desk"])
    outsider = make_user()

    audience = create_audience(slug="fraud", name="Fraud", groups=["fraud-desk"])

    assert Audience.objects.visible_to(member).get() == audience
    assert not Audience.objects.visible_to(outsider).exists()


def test_opening_an_audience_to_everyone_is_seen_at_once():
    outsider = make_user()
    audience = create_audience(slug="fraud", name="Fraud")

    edit_audience(audience_id=audience.pk, everyone=True)

    assert Audience.objects.visible_to(outsider).get() == audience


@pytest.mark.parametrize(
    "fields",
    [
        {"slug": ""},
        {"slug": "Not a slug"},
        {"slug": "x" * 51},
        {"slug": "nul\x00"},
        {"name": ""},
        {"name": "x" * 101},
        {"groups": ["nobody"]},
    ],
)
def test_audience_that_may_not_be_is_refused(fields):
    with pytest.raises(InvalidKnowledgeError):
        create_audience(**{"slug": "fraud", "name": "Fraud", **fields})

    assert not Audience.objects.exists()


def test_slug_of_an_audience_is_taken_once():
    create_audience(slug="fraud", name="Fraud")

    with pytest.raises(AudienceExistsError, match="already an audience 'fraud'"):
        create_audience(slug="fraud", name="Another")
