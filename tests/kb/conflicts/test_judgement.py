import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kb.conflicts.judgement import judge
from kb.conflicts.table_rows import are_of_other_things
from kb.conflicts.values import Judgement, Kind, Statement

TEXTS = st.text(max_size=120) | st.lists(
    st.sampled_from(
        [
            "The",
            "card",
            "costs",
            "5",
            "10",
            "euros",
            "percent",
            "a",
            "year",
            "not",
            "free",
            "must",
            "may",
            "before",
            "after",
            "31",
            "July",
            "2025",
            "14:00",
            "2",
            "pm",
            "1,000.50",
            "half",
            "no",
            "yes",
            "Monday",
            ".",
            ";",
            "\n",
        ]
    ),
    max_size=25,
).map(" ".join)


def judged(first: str, second: str, *, distance: float = 0.4) -> Judgement:
    return judge(_statement(first), _statement(second), distance=distance)


def _statement(said: str) -> Statement:
    question, _, text = said.rpartition(" || ")
    return Statement(text, question)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        # Both are about claims, and neither denies what the other says.
        (
            "How do I submit a claim? || Send the invoice by post. Claims by e-mail are "
            "not accepted.",
            "By when must a claim be submitted? || A claim must reach us within 180 days. "
            "Later claims are paid only if you can show that you were unable to act.",
            0.71,
        ),
        # Rows of one table.
        (
            "The branch number 5 has the phone extension 1005 at the desk.",
            "The branch number 8 has the phone extension 1008 at the desk.",
            0.2,
        ),
    ],
)
def test_what_only_looks_like_a_conflict_is_none(first, second, distance):
    assert judged(first, second, distance=distance).kind is Kind.DIFFERENT


_FLU = "Flu vaccination (V71): price 28 euros. Where: Mill Street. Length: 5 min."
_SCAN = "Bone density scan (R58): price 60 euros. Where: Mill Street. Length: 15 min."


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_FLU, _SCAN),
        ("Flu vaccination\nLength: 5 min", "Bone density scan\nLength: 15 min"),
        (
            "Procedure: Flu vaccination; Price: 28 euros; Length: 5 min",
            "Procedure: Bone density scan; Price: 60 euros; Length: 15 min",
        ),
        (
            "A flu vaccination costs 28 euros. It takes 5 minutes.",
            "The bone scan costs 60 euros. It takes 15 minutes.",
        ),
        ("MRI with contrast (R56): 475 euros", "MRI without contrast (R55): 390 euros"),
        ("MRI, head (R56): price 475 euros", "MRI, head (R57): price 390 euros"),
    ],
)
def test_rows_of_a_price_list_are_of_other_things(first, second):
    assert judged(first, second).kind is Kind.DIFFERENT


_BINS = "Bins:\nArea | Black bin | Blue bin\n--- | ---\n"
_FEES = "Fees:\nService | Item | Fee | Unit\n--- | ---\n"


@pytest.mark.parametrize(
    ("head", "row", "unlike", "documents", "kind"),
    [
        # Of other areas, whatever the other cells say.
        (_BINS, "{} | Tuesday, week A | Monday", ("East", "West"), (1, 1), "different"),
        (_BINS, "{} | Tuesday, week A | Monday", ("East", "West"), (1, 2), "different"),
        (_FEES, "Pests | {} | per visit", ("Mice | £45", "Rats | £60"), (1, 1), "different"),
        (_FEES, "Pests | Mice | {} | per visit", ("£45", "£60"), (1, 1), "contradiction"),
        (_FEES, "Pests | Mice | {} | per visit", ("£45", "£60"), (1, 2), "contradiction"),
        (_FEES, "Pests | Mice | {} | per visit", ("£45", "£45"), (1, 2), "duplicate"),
    ],
)  # fmt: skip
def test_rows_of_a_table_are_of_the_same_thing_or_not(
    head, row, unlike, documents, kind
):
    one, other = (
        Statement(head + row.format(said), document=document)
        for said, document in zip(unlike, documents, strict=True)
    )

    assert judge(one, other, distance=0.1).kind == kind


@pytest.mark.parametrize(
    ("documents", "are_apart"), [((1, 1), True), ((1, 2), False), ((None, None), False)]
)
def test_tables_of_the_same_rows_in_one_document_are_of_other_things(
    documents, are_apart
):
    head = "Place | Monday to Friday | Sunday\n--- | ---\n"
    term = (
        "Main library | 08:00 to 22:00 | closed\nLaw library | 09:00 to 17:00 | closed"
    )
    vacation = term.replace("22:00", "18:00").replace("17:00", "15:00")
    one, other = (
        Statement(head + said, document=document)
        for said, document in zip((term, vacation), documents, strict=True)
    )

    assert are_of_other_things(one, other) is are_apart
    certain = {Kind.DIFFERENT: 1.0}
    assert (judge(one, other, distance=0.1).probabilities == certain) is are_apart


def test_rows_of_two_groups_of_one_table_are_of_other_things():
    row = "Size | Rent\n--- | ---\nSmall | {}"
    north, south = f"Boxes: North:\n{row}", f"Boxes: South:\n{row}"
    apart = (Statement(north.format("£5"), document=1),
             Statement(south.format("£7"), document=1))  # fmt: skip

    assert judge(*apart, distance=0.1).kind is Kind.DIFFERENT


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_FLU, _FLU.replace("5 min", "10 min")),
        (
            "Flu vaccination\nPrice: 28 euros\nLength: 5 min",
            "Flu vaccination\nPrice: 30 euros\nLength: 10 min",
        ),
        (
            "Silver card: 36 euros a year. Replacement: 10 euros.",
            "The Silver card costs 36 euros a year. Replacement: 15 euros.",
        ),
        (
            "Savings Plus is for adults. It costs 5 euros a month.",
            "Savings Plus pays interest. It costs 7 euros a month.",
        ),
    ],
)
def test_a_row_contradicts_another_version_of_itself(first, second):
    assert judged(first, second).kind is Kind.CONTRADICTION


@pytest.mark.parametrize(
    ("first", "second", "marked"),
    [
        (
            "The Basic account costs 3 euros a month.",
            "The monthly fee of the Basic account is 4 euros.",
            ("3 euros", "4 euros"),
        ),
        ("The desk closes at 5 pm.", "The desk closes at 17:30.", ("5 pm", "17:30")),
        (
            "The grant ends on 1 June 2026.",
            "The grant ends on 2026-07-01.",
            ("1 June 2026", "2026-07-01"),
        ),
        (
            "Pets are allowed in the hall.",
            "Pets are not allowed in the hall.",
            ("allowed", "allowed"),
        ),
        (
            "A deposit is mandatory for the hall.",
            "A deposit is optional for the hall.",
            ("mandatory", "optional"),
        ),
        ("The roof is insured.", "The roof is uninsured.", ("insured", "uninsured")),
    ],
)
def test_a_contradiction_marks_the_words_that_clash(first, second, marked):
    found = judged(first, second, distance=0.1)

    assert found.kind is Kind.CONTRADICTION
    assert found.clashes[0].first is not None
    assert found.clashes[0].second is not None
    assert found.clashes[0].first.within(first) == marked[0]
    assert found.clashes[0].second.within(second) == marked[1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The notice period is 12 months.", "The notice period is one year."),
        ("The fee is EUR 1,200.00.", "The fee is 1200 euros."),
        ("The desk opens at 2 pm.", "The desk opens at 14:00."),
        ("The grant ends on 31 May 2026.", "The grant ends on May 31st, 2026."),
        ("The lift is closed on Mondays.", "The lift does not open on Mondays."),
    ],
)
def test_the_same_said_otherwise_is_a_duplicate(first, second):
    assert judged(first, second).kind is Kind.DUPLICATE


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        (
            "The Basic card has no yearly fee.",
            "The Basic card has no travel insurance.",
            0.64,
        ),
        (
            "Premium customers can use the lounge.",
            "Premium customers can use the spa.",
            0.74,
        ),
        (
            "With the Basic card of our bank, which students can also get, there is no yearly fee.",
            "With the Basic card of our bank, which students can also get, there is no travel insurance.",
            0.79,
        ),
        (
            "The Student card can be cancelled in the app.",
            "The Student card can be ordered in the app.",
            0.7,
        ),
    ],
)
def test_another_thing_said_in_the_same_words_is_no_duplicate(first, second, distance):
    assert judged(first, second, distance=distance).kind is Kind.DIFFERENT


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        (
            "The Basic card has no yearly fee.",
            "The Basic card has no annual fee.",
            0.23,
        ),
        (
            "The Student card can be cancelled in the app.",
            "You can terminate the Student card in the app.",
            0.38,
        ),
        (
            "Loans may be repaid early without a penalty.",
            "There is no penalty for repaying a loan early.",
            0.64,
        ),
        (
            "The library does not lend laptops.",
            "Laptops are not lent by the library.",
            0.53,
        ),
    ],
)
def test_another_word_or_form_for_the_same_thing_leaves_a_duplicate(
    first, second, distance
):
    assert judged(first, second, distance=distance).kind is Kind.DUPLICATE


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The Savings account fee is 5 EUR.", "The Current account fee is 7 EUR."),
        ("For students the ticket is free.", "For adults the ticket costs 9 euros."),
        ("Bus line 3 runs every 10 minutes.", "Bus line 8 runs every 20 minutes."),
    ],
)
def test_another_entity_or_condition_is_no_contradiction(first, second):
    assert judged(first, second, distance=0.7).kind is Kind.DIFFERENT


def test_the_same_question_with_other_answers_is_a_contradiction():
    found = judged(
        "Who signs the form? || The mayor.", "Who signs the form? || The clerk.",
        distance=0.0,
    )  # fmt: skip

    assert found.kind is Kind.CONTRADICTION
    assert found.clashes[0].signal == "answer"


def test_yes_and_no_to_one_question_clash():
    found = judged(
        "May I park here? || Yes, at any time.", "Can I park here? || No, never.",
        distance=0.2,
    )  # fmt: skip

    assert found.kind is Kind.CONTRADICTION
    assert found.clashes[0].signal == "lead"


def test_one_contradicting_sentence_among_several_is_found():
    found = judged(
        "The hall has 80 seats. Booking it costs 40 euros a day. It has a kitchen.",
        "Booking the hall costs 55 euros a day.",
    )

    assert found.kind is Kind.CONTRADICTION


@settings(max_examples=150, deadline=None)
@given(first=TEXTS, second=TEXTS, distance=st.floats(0, 2))
def test_any_two_texts_get_probabilities_and_spans_inside_them(first, second, distance):
    found = judge(Statement(first), Statement(second), distance=distance)

    assert 0 <= found.score <= 1
    for clash in found.clashes:
        for span, text in ((clash.first, first), (clash.second, second)):
            assert span is None or 0 <= span.start < span.end <= len(text)


@settings(max_examples=100, deadline=None)
@given(first=TEXTS, second=TEXTS)
def test_which_comes_first_changes_nothing(first, second):
    one = judge(Statement(first), Statement(second), distance=0.5)
    other = judge(Statement(second), Statement(first), distance=0.5)

    assert (one.kind, one.score) == (other.kind, other.score)


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
@example(text="Take it before meals or after meals.")
def test_a_text_does_not_contradict_itself(text):
    assert judge(Statement(text), Statement(text), distance=0.0).clashes == ()
