"""Small data sets in the layouts of the public ones, made up here."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

HARBOUR = (
    "The harbour of Lunde was opened in 1871 by Queen Marta. It has four cranes, and "
    "the tallest of them is called Otto."
)
FERRY = "A ferry to Skarn leaves every second day. A ticket for it costs 14 crowns."
BRIDGE = "The bridge of Tornau spans 212 metres. Its towers are built of red granite."


def squad2(directory: Path, *, copies: int = 1) -> Path:
    """Write two articles with answerable and unanswerable questions."""

    def asked(number: int, text: str, *answers: str) -> dict[str, object]:
        # The offsets are wrong on purpose.
        return {
            "id": f"q{number}",
            "question": text,
            "answers": [{"text": answer, "answer_start": 7} for answer in answers],
            "is_impossible": not answers,
        }

    harbour, ferry, bridge = [], [], []
    for n in range(0, copies * 10, 10):
        harbour += [
            asked(n + 1, "Who opened the harbour of Lunde?", "Queen Marta", "Marta"),
            asked(n + 2, "How many cranes has the harbour?", "four"),
            asked(n + 3, "Who closed the harbour of Lunde?"),
        ]
        ferry += [
            asked(n + 4, "What does a ticket to Skarn cost?", "14 crowns"),
            asked(n + 5, "Who is the captain of the ferry to Skarn?"),
        ]
        bridge += [
            asked(n + 6, "How long is the bridge of Tornau?", "212 metres"),
            asked(n + 7, "Who painted the bridge of Tornau?"),
        ]
    articles = [
        {
            "title": "Lunde_(harbour)",
            "paragraphs": [
                {"context": HARBOUR, "qas": harbour},
                {"context": FERRY, "qas": ferry},
            ],
        },
        {"title": "Tornau", "paragraphs": [{"context": BRIDGE, "qas": bridge}]},
    ]
    return written(
        directory / "squad/squad-v2.0-some.json", {"version": "v2.0", "data": articles}
    )


def selfaware(directory: Path) -> Path:
    """Write a question that can be answered and one that can't."""
    rows = [
        row(question_id=1, question="How long is a mile?", answer=["1609 metres"]),
        row(question_id=2, question="What will I dream of tonight?", answer=None),
    ]
    return written(directory / "selfaware/SelfAware.json", {"example": rows})


def row(**values: object) -> dict[str, object]:
    """Return a row of SelfAware."""
    return {**values, "answerable": values["answer"] is not None, "source": "here"}


def clinc(directory: Path) -> Path:
    """Write three intents' utterances, one of them in training and test alike."""
    content = {
        "train": [
            ["please block my card", "block_card"],
            ["my card was stolen, stop it", "block_card"],
            ["how much money do i have", "balance"],
            ["what is left on my account", "balance"],
        ],
        "test": [
            ["Please block  my card", "block_card"],
            ["how much money is there", "balance"],
        ],
        "oos_test": [["how deep is the sea at lunde", "oos"]],
    }
    return written(directory / "clinc150/data_full.json", content)


def scifact(directory: Path) -> Path:
    """Write three abstracts and two claims."""
    folder = directory / "scifact"
    corpus = [
        {"_id": "10", "title": "Salt and rust", "text": "Salt water makes iron rust."},
        {"_id": "11", "title": "Tides", "text": "Tides follow the moon."},
        {"_id": "12", "title": "Granite", "text": "Granite is an igneous rock."},
    ]
    queries = [
        {"_id": "1", "text": "Iron rusts faster in salt water.", "metadata": {}},
        {"_id": "2", "text": "The moon causes tides.", "metadata": {}},
        {"_id": "3", "text": "A claim for training.", "metadata": {}},
    ]
    lines(folder / "corpus.jsonl", corpus)
    lines(folder / "queries.jsonl", queries)
    judgements = folder / "qrels/test.tsv"
    judgements.parent.mkdir()
    judgements.write_text("query-id\tcorpus-id\tscore\n1\t10\t1\n2\t11\t1\n2\t12\t0\n")
    return folder


def open_domain(directory: Path) -> Path:
    """Write one or two questions of each of the open-domain sets."""
    lines(
        directory / "triviaqa/some.jsonl",
        [{"id": "t_1", "question": "Who opened the harbour?", "answers": ["Marta"]}],
    )
    lines(
        directory / "nq_open/NQ-open.dev.jsonl",
        [{"question": "who opened the harbour", "answer": ["Queen Marta"]}],
    )
    lines(
        directory / "popqa/some.jsonl",
        [{"id": 7, "question": "What is Otto?", "answers": ["crane"], "prop": "kind"}],
    )
    written(
        directory / "webquestions/test.json",
        [{"qId": "w1", "qText": "what does a ticket cost?", "answers": ["14 crowns"]}],
    )
    return directory


def lines(file: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """Write JSON Lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def written(file: Path, content: object) -> Path:
    """Write JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file
