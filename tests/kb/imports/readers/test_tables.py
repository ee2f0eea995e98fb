"""Tables and JSON Lines, row by row; encodings."""

import csv
import io
import json
import re
import zipfile
from datetime import date

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.imports.readers import (
    BadRow,
    Fact,
    FileItem,
    GuessedEncoding,
    ImportFileError,
    Limits,
    SourceDocument,
    UnreadColumns,
    detect_format,
)
from kb.imports.readers.excel import shown
from kb.text.layout import written_out
from tests.kb.imports.readers.files import facts, items, make_excel

_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1
).filter(lambda text: any(map(str.isalnum, text)) and text == text.strip())


def test_questions_with_answers_are_read_by_the_columns_names():
    read = facts("a.csv", "ID;Question;Answer;Note\n7;How much?;12 euros.;x\n")

    assert read == [Fact("12 euros.", "line 2", question="How much?", id="7")]


def test_a_text_beside_a_question_is_its_answer():
    read = facts("a.csv", "question,text\nHow much?,12 euros.\n,A fact.\n")

    assert read == [
        Fact("12 euros.", "line 2", question="How much?"),
        Fact("A fact.", "line 3"),
    ]


def test_a_row_may_say_how_else_its_question_is_asked():
    read = facts(
        "a.csv",
        "question,answer,also_asked\n"
        'How much?,12 euros.,"what does it cost\n\nprice, please"\n'
        "How long?,5 days.,when does it come | until when|\n"
        "Where?,Here.,\n",
    )

    assert [fact.wordings for fact in read] == [
        ("what does it cost", "price, please"),
        ("when does it come", "until when"),
        (),
    ]
    # An entry that was imported before there were any is the same as one without.
    assert read[2].digest == Fact("Here.", "", question="Where?").digest
    assert read[0].digest != Fact("12 euros.", "", question="How much?").digest


@pytest.mark.parametrize("said", [["a|b or c"], ["one", "two | three"]])
def test_a_bar_parts_nothing_of_a_list(said):
    row = json.dumps({"question": "How much?", "answer": "12.", "also_asked": said})

    (fact,) = facts("a.jsonl", row)

    assert list(fact.wordings) == said


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (["how much", 7], "also_asked is 7, not text."),
        (["?" * 501], "also_asked has 501 characters and may have 500"),
        ([f"question {n}" for n in range(31)], "also_asked has 31 questions"),
    ],
)
def test_what_is_no_list_of_questions_is_a_bad_row(value, why):
    row = json.dumps({"question": "How much?", "answer": "12.", "also_asked": value})

    (bad,) = items("a.jsonl", row.encode())

    assert isinstance(bad, BadRow)
    assert bad.reason.startswith(why)


@pytest.mark.parametrize(
    "encoding",
    [
        "utf-8",
        "utf-8-sig",
        "utf-16",
        "utf-16-le",
        "utf-16-be",
        "cp1252",
        "iso8859-15",
    ],
)
def test_text_is_read_in_the_encoding_that_it_has(encoding):
    text = "text\n" + "Die Gebühr für Überweisungen beträgt 3 Euro.\n" * 3

    read = facts("a.csv", text.encode(encoding))

    assert {fact.text for fact in read} == {
        "Die Gebühr für Überweisungen beträgt 3 Euro."
    }


@pytest.mark.parametrize(
    ("language", "encoding", "said"),
    [
        ("en", "cp1252", "Où est-ce ? À l'étage, près du café."),
        ("sv", "cp1252", "Öppet på måndag, för både små och stora."),
        (
            "pl",
            "cp1250",
            "Karta kosztuje 4 zł. Biblioteka jest otwarta w każdą sobotę.",
        ),
        ("en", "cp1251", "Утерянная карта стоит четыреста рублей."),
    ],
)
def test_a_short_text_is_read_by_the_page_of_windows_of_its_language(
    language, encoding, said
):
    content = f"text\n{said}\n".encode(encoding)

    _, fact = items("a.tsv", content, language=language)

    assert isinstance(fact, Fact)
    assert fact.text == said


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("ISO-8859-15", "iso8859-15"),
        ("iso-8859-1", "cp1252"),
        ("windows-1250", "cp1250"),
    ],
)
def test_a_page_is_read_by_the_encoding_that_it_says(declared, encoding):
    page = f'<meta charset="{declared}"><h1>Preise</h1><p>Für 4 € täglich.</p>'

    (read_page,) = items("a.html", page.encode(encoding))

    assert isinstance(read_page, SourceDocument)
    assert [fact.text for fact in read_page.facts] == ["Für 4 € täglich."]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark_is_told_by_the_zeros_of_latin_letters(encoding):
    limits = Limits(file_bytes=2**20, unpacked_bytes=2**20)
    text = "text\nDie Gebühr beträgt 3 €, “sofort”.\n"

    for latin in (text, "Wer zahlt? " * 1_000):
        content = io.BytesIO(latin.encode(encoding))
        assert detect_format("a.csv", content, limits) == "csv"
    for other in (
        "Утерянная карта стоит четыреста рублей.".encode(encoding),
        "a\0b\0".encode(encoding),
        "ab\x01cd".encode(encoding),
        b"\0" * 100,
        b"a\0" * 50 + b"\0a" * 50,
        b"PNG\0\0\0\rIHDR" * 20,
    ):
        with pytest.raises(ImportFileError, match="save it as UTF-8"):
            detect_format("a.csv", io.BytesIO(other), limits)


def test_what_a_page_says_of_its_encoding_counts_only_where_it_can_be():
    for declared in ("utf-8", "hex", "klingon"):
        page = f'<meta charset="{declared}"><h1>Preise</h1><p>Für 4 € täglich.</p>'

        guessed, read_page = items("a.html", page.encode("cp1252"))

        assert guessed == GuessedEncoding("cp1252")
        assert isinstance(read_page, SourceDocument)
        assert [fact.text for fact in read_page.facts] == ["Für 4 € täglich."]


@pytest.mark.parametrize(
    ("name", "head", "said"),
    [
        ("a.odt", b"PK\x03\x04", "save it as .docx"),
        ("a.pptx", b"PK\x03\x04", "save it as .pdf"),
        ("a.zip", b"PK\x03\x04", "unpack it"),
        ("a.xyz", b"text", "take one of .csv"),
        ("a.txt", rb"{\rtf1\ansi A card costs 4 euros.}", "is RTF; save it as .docx"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1", "without a password"),
    ],
)
def test_a_file_that_is_not_read_is_refused_with_what_to_save_it_as(name, head, said):
    with pytest.raises(ImportFileError, match=re.escape(said)):
        items(name, head)


def test_bad_rows_are_told_by_line_and_the_rest_is_read():
    content = (
        'id,question,answer\n1,Why?,So.\n2,,So.\n3,Why not?,\n"4","How\nso?",So.\n'
        "5,a,b,c\n\n6,Who?,We.\n7,Bad\x85,So.\n"
    )

    read = items("a.csv", content.encode())

    places = [each.place for each in read if isinstance(each, Fact | BadRow)]
    assert places == [
        "line 2", "line 3", "line 4", "line 5", "line 7", "line 9", "line 10",
    ]  # fmt: skip
    good = [each.id for each in read if isinstance(each, Fact)]
    bad = [each.reason for each in read if isinstance(each, BadRow)]
    assert good == ["1", "4", "6"]
    assert "no question" in bad[0]
    assert "no answer" in bad[1]
    assert "4 cells" in bad[2]
    assert "U+0085" in bad[3]


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_quote_that_is_never_closed_is_a_bad_row_and_not_one_long_entry(end):
    content = f'question,answer\nWhy?,So.\nHow?,"So\nWho?,We.\nWhen?,Now.{end}'

    read = items("a.csv", content.encode())

    assert read[0] == Fact("So.", "line 2", question="Why?")
    assert isinstance(read[1], BadRow)
    assert read[1].place == "line 3"
    assert "never closed" in read[1].reason
    assert len(read) == 2


def test_a_header_with_a_quote_that_is_never_closed_is_refused():
    with pytest.raises(ImportFileError, match="never closed"):
        items("a.csv", b'text,"note\nA fact.,x\n')


def test_a_cell_without_end_costs_only_what_it_swallows():
    content = 'text\n"' + "x" * 140_000 + "\nA card costs 12 euros.\n"

    read = items("a.csv", content.encode())

    assert isinstance(read[0], BadRow)
    assert len(read) <= 2


@pytest.mark.parametrize(
    "header", ["", "fees", "fee,", "Why?,So.", "question,note", "text,text"]
)
def test_a_table_without_the_columns_is_refused(header):
    with pytest.raises(ImportFileError):
        items("a.csv", f"{header}\nx,y\n".encode())


def test_columns_that_are_not_read_are_named():
    long = "x" * 70
    table = f"Id;Text;Audience;;a\tb;{long}\n1;A card costs 12 euros.;staff;;;\n"
    lines = [
        {"text": "A card costs 12 euros.", "audience": "staff"},
        {"title": "Help", "text": "It is open.", "a\0\ud800": 1, "audience": "all"},
    ]

    of_table = items("a.csv", table.encode())
    of_lines = items("a.jsonl", "\n".join(map(json.dumps, lines)).encode())

    assert of_table[0] == UnreadColumns(("audience", "a?b", "x" * 60))
    assert of_lines[-1] == UnreadColumns(("audience", "a??"))
    assert not any(isinstance(each, UnreadColumns) for each in of_lines[:-1])


@pytest.mark.parametrize(
    ("header", "read_as"),
    [
        ("Nr;Customer question;Desk answer", ("1", "Why?", "So.")),
        ("Question ID;Frage (kurz);Musterantwort", ("1", "Why?", "So.")),
        ("key;Question text;Answer text", ("1", "Why?", "So.")),
        ("Phone number;What patients ask;Response", ("", "Why?", "So.")),
        ("id;team;Content", ("1", "", "So.")),
        # What is named as it should be is read so and nothing else.
        ("Number;question;answer", ("", "Why?", "So.")),
        ("Number;FAQ;text", ("", "", "So.")),
    ],
)
def test_columns_are_understood_by_the_last_word_of_other_names(header, read_as):
    (fact,) = facts("a.csv", f"{header}\n1;Why?;So.\n")

    assert (fact.id, fact.question, fact.text) == read_as


def test_what_is_read_by_another_name_is_told():
    read = items("a.csv", b"Topic,Patients ask,Reply\nx,Why?,So.\n")

    assert read[0] == UnreadColumns(
        ("topic",), ("'patients ask' as question", "'reply' as answer")
    )


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("topic,question", "names topic, question. Rename the one with the answers"),
        ("our reply,team", "Rename the one with the questions to question"),
        (
            "our question,their question",
            "'our question' and 'their question' may all be the question; rename",
        ),
    ],
)
def test_columns_that_are_not_understood_say_what_to_rename(header, why):
    with pytest.raises(ImportFileError, match=why):
        items("a.csv", f"{header}\nx,y\n".encode())


_LONG = "Ring the desk before noon."


@pytest.mark.parametrize(
    ("rows", "understood"),
    [
        (
            ["Ref,Patient question,Answer given by PALS,Topic", f"7,Who?,{_LONG},x"],
            ("'patient question' as question", "'answer given by pals' as answer"),
        ),
        (
            ["Said by callers,What we say", f"How?,{_LONG}", f"my card,{_LONG}",
             f"Why me?,{_LONG}"],
            ("'said by callers' as question", "'what we say' as answer"),
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_columns_of_unknown_names_are_understood_by_what_they_hold(
    rows, understood, end
):
    read = items("a.csv", end.join(rows).encode())

    assert isinstance(read[0], UnreadColumns)
    assert read[0].understood == understood
    assert {each.text for each in read[1:] if isinstance(each, Fact)} == {_LONG}


def test_a_short_row_hides_no_column_that_asks():
    table = "Said,Note,Said back\nx\na,b,Why?\na,b,How?\n"

    with pytest.raises(ImportFileError, match="must name the columns"):
        items("a.csv", table.encode())


PRICES: list[list[object]] = [
    ["Treatment", "Fee", "Note"],
    ["Polish", 45, ""],
    ["Crown", 610, "two visits"],
]


def test_a_table_that_asks_nothing_is_one_of_facts():
    rows = "\n".join(",".join(map(str, row)) for row in PRICES)

    for read in (items("a.csv", rows.encode()), items("a.xlsx", make_excel(A=PRICES))):
        note, first, second = read
        assert isinstance(note, UnreadColumns)
        assert isinstance(first, Fact)
        assert isinstance(second, Fact)
        assert note.understood == (
            "'Treatment', 'Fee', 'Note' together as one fact a row",
        )
        assert written_out(second.text) == "Crown. Fee: 610. Note: two visits."
        assert written_out(first.text) == "Polish. Fee: 45."


def test_a_column_of_a_table_of_facts_may_be_headed_by_a_short_question():
    (fact,) = facts("a.csv", "Office,Appointment needed?,Online?\nEskby,No,yes\n")
    assert written_out(fact.text) == "Eskby. Appointment needed?: No. Online?: yes."


def test_a_column_of_how_fast_somebody_comes_holds_no_answers():
    table = "Plan,Price,Response\nBasic,£9,next day\nPlus,£14,same day\n"
    wider = "Plan,Price,Excess,Response\nBasic,£9,£60,next day\nPlus,£14,£0,same day\n"

    with pytest.raises(ImportFileError, match="question"):  # of prepared replies
        items("a.csv", table.encode())
    first, _ = facts("a.csv", wider.encode())
    assert written_out(first.text) == (
        "Basic. Price: £9. Excess: £60. Response: next day."
    )


def test_a_title_heads_the_facts_below_it_and_so_does_a_group():
    rows: list[list[object]] = [
        ["Fees of 2026, with VAT"],
        [],
        *PRICES[:2],
        ["For children"],
        PRICES[2],
        ["A missed appointment costs 30 euros, whatever it was for."],
    ]
    table = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)

    for read in (items("a.csv", table.encode()), items("a.xlsx", make_excel(A=rows))):
        assert [fact.text for fact in read if isinstance(fact, Fact)] == [
            "Fees of 2026, with VAT:\nTreatment | Fee | Note\n--- | ---\nPolish | 45 |",
            "Fees of 2026, with VAT: For children:\nTreatment | Fee | Note\n--- | ---\n"
            "Crown | 610 | two visits",
            "A missed appointment costs 30 euros, whatever it was for.",
        ]


def test_the_name_of_a_sheet_beside_others_heads_its_facts():
    content = make_excel(Households=PRICES, Business=PRICES)

    texts = [fact.text for fact in facts("a.xlsx", content)]

    assert [text.splitlines()[0] for text in texts] == [
        *["Households:"] * 2, *["Business:"] * 2,
    ]  # fmt: skip
    assert len({fact.key for fact in facts("a.xlsx", content)}) == 4
    unnamed = make_excel(Sheet1=PRICES, Tabelle2=PRICES)
    assert facts("a.xlsx", unnamed)[0].text.startswith("Treatment |")


def test_a_short_table_that_a_spreadsheet_saved_keeps_its_letters():
    table = "Frage;Antwort\nWas kostet der Zählerwechsel?;Fünfzig Euro.\n"

    assert facts("a.csv", table.encode("cp1252")) == [
        Fact("Fünfzig Euro.", "line 2", question="Was kostet der Zählerwechsel?")
    ]


def test_questions_below_a_title_are_read():
    rows: list[list[object]] = [["FAQ"], ["Question", "Answer"], ["How much?", "5."]]

    assert facts("a.xlsx", make_excel(A=rows)) == [
        Fact("5.", "A, row 3", question="How much?")
    ]


@pytest.mark.parametrize(
    ("value", "number_format", "shown_as"),
    [
        (6.5, "£0.00", "£6.50"),
        (-6.5, '_-"£"* #,##0.00_-;-"£"* #,##0.00_-', "-£6.50"),
        (1234.5, "[$£-809]#,##0.00", "£1,234.50"),
        (12, "#,##0.00 [$€-407]", "12.00 €"),
        (12, r'#,##0\ "EUR"', "12 EUR"),
        (5, "[$CHF] 0.00", "CHF 5.00"),
        (6.49, "$#,##0", "$6.49"),
        (0.195, "0.0%", "19.5%"),
        (3.5, '0.00" %"', "3.50 %"),
        (3.5, "0.0\\%", "3.5 %"),
        (3, '0" days"', "3"),
        (5.25, "General", "5.25"),
        (5, "0.00", "5.00"),
        (1e20, "0.00E+00", "1e+20"),
    ],
)
def test_a_number_is_shown_as_in_its_cell_with_all_its_digits(
    value, number_format, shown_as
):
    assert shown(value, number_format) == shown_as


def test_each_visible_sheet_of_a_workbook_is_a_table():
    content = make_excel(
        Fees=[
            [],
            ["No", "Question", "Desk answer", "Team"],
            [1.0, "How much?", 12.5, "A"],
            [None, "Since when?", date(2026, 1, 3), None],
            [None, "Is it so?", "#N/A", None],
            [],
            [None, "Why?", None, None],
        ],
        Facts=[["text"], ["A card lasts 4 years.\nLonger ones cost more."]],
        Notes=[["by"], ["Ann"]],
    )

    read = items("a.xlsx", content)

    facts_ = [each for each in read if isinstance(each, Fact)]
    assert facts_ == [
        Fact("12.5", "Fees, row 3", "How much?", "1", ("Fees",), about="Fees"),
        Fact("2026-01-03", "Fees, row 4", "Since when?", "", ("Fees",), about="Fees"),
        Fact(
            "A card lasts 4 years.\nLonger ones cost more.",
            "Facts, row 2",
            headings=("Facts",),
        ),
    ]
    bad = [(each.place, each.reason) for each in read if isinstance(each, BadRow)]
    assert [place for place, _ in bad] == ["Fees, row 5", "Fees, row 7", "Notes, row 1"]
    assert "has an error" in bad[0][1]
    assert "names by" in bad[2][1]
    assert read[0] == UnreadColumns(
        ("team",), ("'desk answer' as answer", "'no' as id")
    )


def test_a_hidden_sheet_is_not_read_and_a_percentage_is_one():
    book = openpyxl.load_workbook(
        io.BytesIO(make_excel(Rates=[["text"], [0.195]], Old=[["text"], ["Old."]]))
    )
    book["Rates"]["A2"].number_format = "0.0%"
    book["Old"].sheet_state = "hidden"
    out = io.BytesIO()
    book.save(out)

    assert [fact.text for fact in facts("a.xlsx", out.getvalue())] == ["19.5%"]


def test_a_workbook_of_which_no_sheet_is_understood_is_refused():
    with pytest.raises(ImportFileError, match="it names by"):
        items("a.xlsx", make_excel(Notes=[["by"], ["Ann"]]))
    with pytest.raises(ImportFileError, match="no rows"):
        items("a.xlsx", make_excel(Empty=[]))


def test_a_workbook_with_cells_of_an_empty_fill_is_read():
    content = make_excel(Facts=[["text"], ["A card costs 12 euros."]])
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(out, "w") as archive,
    ):
        for name in source.namelist():
            part = source.read(name)
            if name == "xl/styles.xml":
                part, number = re.subn(rb"<fill>.*?</fill>", b"<fill/>", part)
                assert number
            archive.writestr(name, part)

    assert [fact.text for fact in facts("a.xlsx", out.getvalue())] == [
        "A card costs 12 euros."
    ]


def test_json_lines_hold_facts_and_documents():
    rows: list[object] = [
        {"text": "A card costs 12 euros.", "id": 3},
        {"question": "How much?", "answer": "12 euros."},
        {"title": "Help", "text": "A PIN letter costs 5 euros.", "source": "help/1"},
        {"title": "Page", "text": "<h1>Top</h1><p>It is open today.", "format": "html"},
        {"title": "X", "text": "x", "format": "pdf"},
        {"text": 5},
        [],
        {"title": "Bad\x00"},
    ]
    content = "\n".join(map(json.dumps, rows)) + "\nno json\n"

    read = items("a.jsonl", content.encode())

    assert read[:2] == [
        Fact("A card costs 12 euros.", "line 1", id="3"),
        Fact("12 euros.", "line 2", question="How much?"),
    ]
    help_, page = read[2:4]
    assert isinstance(help_, SourceDocument)
    assert (help_.source, help_.title, help_.place) == ("help/1", "Help", "line 3")
    assert isinstance(page, SourceDocument)
    assert (page.source, page.headings) == ("Page", (("Top",),))
    assert all(isinstance(each, BadRow) for each in read[4:])
    assert len(read) == 9


def test_a_list_of_json_is_read_by_the_names_that_people_give():
    rows = [
        {"ID": 7, "Frage": "How much?", "Antwort": "12 euros.", "team": "cards"},
        {"Frage": "How long?", "Antwort": ["5 days."]},
        "How far?",
    ]

    read = items("a.json", json.dumps({"version": 2, "faqs": rows}).encode())

    assert read[0] == Fact("12 euros.", "item 1", question="How much?", id="7")
    assert [type(each) for each in read[1:3]] == [BadRow, BadRow]
    assert read[3:] == [
        UnreadColumns(("team",), ("'frage' as question", "'antwort' as answer"))
    ]


def test_a_list_of_json_holds_documents_too():
    rows = [
        {
            "title": "Help",
            "text": "# Fees\nA card costs 12 euros.",
            "format": "markdown",
        },
        {"text": "A PIN letter costs 5 euros."},
    ]

    document, fact = items("a.json", json.dumps(rows).encode("utf-16"))

    assert isinstance(document, SourceDocument)
    assert (document.title, document.headings) == ("Help", (("Fees",),))
    assert fact == Fact("A PIN letter costs 5 euros.", "item 2")


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_fact_of_json_may_have_a_title_and_a_document_needs_a_text(name):
    rows = [
        {"title": "Fees", "question": "How much?", "answer": "12 euros."},
        {"title": "Fees", "body": "A card costs 12 euros."},
    ]
    written = json.dumps(rows) if name == "a.json" else "\n".join(map(json.dumps, rows))

    fact, document = items(name, written.encode())[:2]

    assert isinstance(fact, Fact)
    assert (fact.question, fact.text) == ("How much?", "12 euros.")
    assert isinstance(document, BadRow)
    assert "text is empty" in document.reason


def test_names_of_json_are_understood_however_they_are_written():
    rows = [{"Title": "Fees", "Question": "How much?", "Answer": "12 euros."}]
    assert facts("a.json", json.dumps(rows))[0].text == "12 euros."
    documents = [{"Title": "Fees", "Text": "A card costs 12 euros."}]
    (document,) = items("a.json", json.dumps(documents).encode())
    assert isinstance(document, SourceDocument)
    assert document.title == "Fees"


def test_what_is_no_text_is_not_taken_for_the_answer():
    about = {"id": "7" * 40, "updated": "2026-11-01"}
    rows = [{"q": "How much is it?", "a": "It costs 5 euros a year.", "meta": about}]
    (fact,) = facts("a.json", json.dumps(rows))
    assert fact.text == "It costs 5 euros a year."


def test_numbers_of_a_table_of_facts_are_no_ids():
    first, second = facts("a.csv", "Name,Number\nAnn,100\nBob,100\n")
    assert first.id == second.id == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[{"a\\u0000b": "x"}]', r"it names a\?b\. Rename"),
        ("[{", "is not valid JSON"),
        ("5", "a list of objects"),
        ('{"a": [], "b": []}', "a list of objects"),
        ("[]", "Its objects must name: text, or question and answer"),
        ('[{"name": "x"}]', "it names name. Rename the one with the questions"),
        ("[" * 100_000, "is not valid JSON"),
    ],
)
def test_what_is_no_list_of_entries_is_refused(content, said):
    with pytest.raises(ImportFileError, match=said):
        items("a.json", content.encode())


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=20))
def test_what_a_spreadsheet_writes_is_read_again(rows):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([("question", "answer"), *rows])

    read = items("a.csv", out.getvalue().encode())

    assert len(read) == len(rows)


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=400))
def test_no_bytes_break_a_reader(content):
    for name in (
        "a.csv",
        "a.tsv",
        "a.json",
        "a.jsonl",
        "a.md",
        "a.html",
        "a.txt",
        "a.pdf",
    ):
        try:
            for item in items(name, content):
                assert isinstance(item, FileItem)
        except ImportFileError:
            pass


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=400))
def test_no_fact_of_a_text_is_empty_or_unfit(text):
    for name in ("a.md", "a.html", "a.txt"):
        try:
            read = items(name, text.encode("utf-8", "ignore"))
        except ImportFileError:
            continue
        for item in read:
            assert isinstance(item, SourceDocument)
            assert all(fact.text.strip() for fact in item.facts)
            assert all(
                fact.headings in item.headings for fact in item.facts if fact.headings
            )


def test_a_header_of_many_columns_is_refused():
    header = ",".join(["a"] * 60_000).encode()

    with pytest.raises(ImportFileError, match="60,000 columns and may have 500"):
        items("a.csv", header + b"\n")


def test_columns_that_stand_twice_are_named_in_short():
    header = ",".join(f"{'long' * 50}{number}" for number in range(200))

    with pytest.raises(ImportFileError, match="appear twice") as raised:
        items("a.csv", f"{header},{header}\n".encode())

    assert len(str(raised.value)) < 400
