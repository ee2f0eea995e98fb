"""Questions to support desks and FAQs, for fitting a verifier.

The questions about invented organisations (`support_desks/`) and the answers to the
customers' questions of ACID, BANKING77 and HINT3 were written for this project.
"""

import csv
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from .knowledge_sets import (
    KnowledgeSet,
    SourceEntry,
    find,
    open_text,
    read_json,
    read_json_lines,
)

SUPPORT_DESKS: Final = Path(__file__).parent / "support_desks"
_ACID: Final = Path(__file__).parent / "acid.jsonl"
_ACID_QUESTIONS: Final = 60  # per intent; the largest have hundreds that are alike
_BANKING77: Final = Path(__file__).parent / "banking77.jsonl"
_HINT3: Final = Path(__file__).parent / "hint3.jsonl"
_HINT3_DESKS: Final = ("curekart", "powerplay11", "sofmattress")
_HINT3_NONE: Final = "NO_NODES_DETECTED"
HELD_OUT_DESK: Final = "hint3_sofmattress"
HELD_OUT_FAQ: Final = "stack_faq_held_out"
_ANSWER_WORDS: Final = 150  # per answer of StackFAQ, some of which are essays


def read_support_desks() -> list[KnowledgeSet]:
    return [_support_desk(file) for file in sorted(SUPPORT_DESKS.glob("*.jsonl"))]


def _support_desk(file: Path) -> KnowledgeSet:
    found = KnowledgeSet(file.stem, "written for this project")
    answers: dict[str, list[int]] = {}  # some questions are answered by two entries
    words: dict[str, str] = {}
    for row in read_json_lines(file):
        entry = {name: row[name] for name in ("text", "title", "section", "question")}
        place = found.place(SourceEntry(**entry))
        for text in row["answered_by_this"]:
            answers.setdefault(text, []).append(place)
        # For tables and lists, each question comes with the line that answers it.
        words |= zip(row["answered_by_this"], row.get("lines", ()), strict=False)
        for text in row["near_misses"]:
            answers.setdefault(text, [])
    for text, places in answers.items():
        found.ask(text, places, words.get(text, ""))
    return found


def read_banking77(file: Path) -> KnowledgeSet:
    """Read customers' questions to a bank, each answered by the entry of its intent."""
    found = KnowledgeSet("banking77", "CC BY 4.0")
    place_of: dict[str, int] = {}
    for row in read_json_lines(_BANKING77):
        entry = SourceEntry(row["text"], question=row["question"])
        place_of[row["intent"]] = found.place(entry)
    with open_text(file) as stream:
        for row in csv.DictReader(stream):
            if intent := row["category"]:  # some rows of a copy of the file have none
                found.ask(row["text"], [place_of[intent]], group=intent)
    return found


def read_acid(directory: Path, *, seed: int) -> KnowledgeSet:
    """Read customers' questions to an insurer, each answered by its intent's entry.

    If the entries of two intents answer the same questions, both count as answers.
    Single words are left out, as are intents with questions of many kinds.
    """
    found = KnowledgeSet("acid", "none stated")
    rows = read_json_lines(_ACID)
    place_of = {
        row["intent"]: found.place(SourceEntry(row["text"], question=row["question"]))
        for row in rows
    }
    asked: dict[str, set[str]] = {intent: set() for intent in place_of}
    for part in ("training", "testing"):
        with open_text(find(directory, f"customer_{part}.csv")) as stream:
            for line in csv.DictReader(stream):
                text = " ".join(line["UTTERANCES"].split())
                if " " in text and line["INTENT_NAME"] in asked:
                    asked[line["INTENT_NAME"]].add(text)
    chance = random.Random(seed)  # noqa: S311  # a sample, nothing secret
    for row in rows:
        intent = row["intent"]
        texts = sorted(asked[intent])
        places = [place_of[each] for each in (intent, *row.get("also", []))]
        for text in chance.sample(texts, min(_ACID_QUESTIONS, len(texts))):
            found.ask(text, places, group=intent)
    return found


def read_hint3(directory: Path) -> list[KnowledgeSet]:
    """Read customers' queries to three support desks, each with its intent's entry.

    Queries that the desks could not answer have no answer; single words are left out.
    The desk of the mattress shop is held out from fitting.
    """
    entries = read_json_lines(_HINT3)
    return [_hint3_desk(directory, desk, entries) for desk in _HINT3_DESKS]


def _hint3_desk(
    directory: Path, desk: str, entries: Sequence[Mapping[str, str]]
) -> KnowledgeSet:
    found = KnowledgeSet(f"hint3_{desk}", "ODbL")
    place_of = {
        row["intent"]: found.place(SourceEntry(row["text"], question=row["question"]))
        for row in entries
        if row["desk"] == desk
    }
    seen: set[str] = set()
    for part in ("train", "test"):
        with open_text(find(directory, f"{desk}_{part}.csv")) as stream:
            for row in csv.DictReader(stream):
                text, intent = " ".join(row["sentence"].split()), row["label"]
                if " " not in text or text.lower() in seen:
                    continue
                seen.add(text.lower())
                if intent in place_of:
                    found.ask(text, [place_of[intent]], group=intent)
                elif intent == _HINT3_NONE:
                    found.ask(text, [])
    return found


def read_covid_faq(file: Path) -> KnowledgeSet:
    """Read the CDC's answers about COVID-19, with people's wordings of questions."""
    found = KnowledgeSet("covid_faq", "Apache-2.0")
    place_of: dict[str, int] = {}
    for row in read_json(file):
        answer, question = row["answer"], row["question"].strip()
        if row["query_type"] == "faq":
            text = " ".join(answer.split()[:_ANSWER_WORDS])
            place_of[answer] = found.place(SourceEntry(text, question=question))
        elif answer in place_of:
            found.ask(question, [place_of[answer]], group=str(place_of[answer]))
    return found


def read_stack_faq(file: Path) -> tuple[KnowledgeSet, KnowledgeSet]:
    """Read threads about web applications, with people's wordings of their titles.

    Every second thread belongs to a separate knowledge base, which is held out from
    fitting.
    """
    fitted, held_out = (
        KnowledgeSet(name, "CC BY-SA") for name in ("stack_faq", HELD_OUT_FAQ)
    )
    for number, row in enumerate(read_json(file)["root"]["qapair"]):
        known = held_out if number % 2 else fitted
        text = " ".join(row["answer"][0].split()[:_ANSWER_WORDS])
        place = known.place(SourceEntry(text, question=row["question"]))
        for other in row["rephr"]:
            if other and any(map(str.isalnum, other)):
                known.ask(other, [place], group=str(place))
    return fitted, held_out
