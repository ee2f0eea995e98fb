"""Calibration questions: labelled ones, ones made from verified entries, foreign ones.

The made questions depend only on the entries and the seed.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from django.contrib.auth.models import User
from django.db.models import F, TextField, Value, Window
from django.db.models.functions import MD5, Cast, Coalesce, Concat, RowNumber
from django.utils import timezone

from kb.documents.models import KnowledgeBase
from kb.enrichment.forms import QUESTION_LIMIT, Form, Slot, Writer
from kb.entries.models import Entry
from kb.text.vocabulary import FILLERS, STOP_WORDS
from kb.text.words import starts_with_digit, tokens
from qa.answers.models import Answer
from qa.calibration.own_questions.choosing import Kind
from qa.evaluation.models import EvaluationResult, EvaluationRun
from qa.evaluation.suites.own import OWN_NAME
from qa.reviews.labels import EVIDENCE, MAX_READ, cited_entries, reviewed_questions
from qa.votes.models import Vote

LIMIT: Final = 300
_FOREIGN: Final = Path(__file__).with_name("foreign.json")
_WRITTEN_AT_ONCE: Final = 16

ASKING: Final = Form(
    name="asking",
    instructions=(
        "Write the question that a hurried customer would ask and that this fact answers. "
        "Do not use the words of the fact where others are usual, and do not give the "
        "answer away. Keep to the language of the fact."
    ),
    given=(("fact", "Fact"),),
    slots=(
        Slot(
            "question", "Question", "The question, on one line.", limit=QUESTION_LIMIT
        ),
    ),
    examples=(
        ("Library books may be kept for four weeks.", "when do I have to bring a book back?"),
        ("A whale can stay under water for up to two hours.", "How long can whales dive?"),
        ("The ferry to Sark takes fifty-five minutes and runs twice a day.",
         "Is there a boat to Sark, and is it quick?"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Label:
    """The judgement that a review or an evaluation made of a question.

    Attributes:
        right: Entries that answer it; empty where nothing may be shown.
        weight: How many questions it stands for.
        at: When it was judged; entries changed since are not covered by it.
        asker: Who asked it; it is asked again with this user's access.
        is_doubtful: Whether it rests on one expert alone and contradicts the verifier.
    """

    kind: Kind
    right: tuple[Entry, ...]
    weight: float
    at: datetime
    asker: User | None
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A question to the knowledge base.

    Attributes:
        entry: The entry that answers it; None if it is foreign or nothing answers it.
        group: The entry's document, or the trade.
        label: Its judgement, if people asked it and somebody judged it.
        is_named: Whether a voter named the entry.
        is_query: Whether it is a few key words of the entry rather than a question.
    """

    text: str
    entry: Entry | None
    group: str
    label: Label | None = None
    is_named: bool = False
    is_query: bool = False


def draw_questions(
    knowledge_base: KnowledgeBase,
    *,
    seed: int,
    writer: Writer | None = None,
    labelled: Sequence[OwnQuestion] = (),
) -> tuple[OwnQuestion, ...]:
    """Return at most `LIMIT` questions: labelled, made and foreign ones.

    Labelled questions replace others one for one. Of the remaining places that are not
    for foreign ones, up to half go to refused questions whose answering entry a voter
    named. A question-and-answer entry yields its question, the question's key words,
    and the question with a typo; a fact yields the question that `writer` asks, or else
    a few of its rarest words.
    """
    left = LIMIT - len(labelled)
    if left <= 0:
        return tuple(labelled[:LIMIT])
    foreign = tuple(_foreign(knowledge_base.language))
    foreign = foreign[: len(foreign) * left // LIMIT]
    room = left - len(foreign)
    entries = _entries(knowledge_base, seed, limit=room)
    frequencies = frequencies_in(entry.text for entry in entries)
    found = _named(knowledge_base)[: room // 2]
    facts = [entry for entry in entries if not entry.question]
    written = _written(writer, facts, seed) if writer else {}
    for entry in entries:
        is_query = False
        if entry.question:
            texts = _reworded(entry, seed)
        elif asked := written.get(entry.pk):
            texts = [asked]
        else:
            texts, is_query = [telling_words(entry.text, frequencies)], True
        found += [
            OwnQuestion(text, entry, group_of(entry), is_query=is_query)
            for text in dict.fromkeys(texts)
            if text
        ]
        if len(found) >= room:
            break
    return (*labelled, *found[:room], *foreign)


def _named(knowledge_base: KnowledgeBase) -> list[OwnQuestion]:
    """Return refused questions whose answering entry a voter named, newest first."""
    votes = Vote.objects.naming_an_entry(knowledge_base)[:LIMIT]
    named = {v.answer.question: v.answering_entry for v in votes if v.answering_entry}
    return [
        OwnQuestion(text, entry, group_of(entry), is_named=True)
        for text, entry in named.items()
    ]


def group_of(entry: Entry) -> str:
    return f"document {entry.document_id}" if entry.document_id else f"{entry.pk}"


def _entries(knowledge_base: KnowledgeBase, seed: int, *, limit: int) -> list[Entry]:
    """Return verified entries in seeded order, one per document before a second."""
    mixed = MD5(Concat(Cast("pk", TextField()), Value(f" {seed}")))
    document = Coalesce("document_id", -F("pk"))
    rows = Entry.objects.filter(
        knowledge_base=knowledge_base, state=Entry.State.VERIFIED
    ).current(timezone.now())
    turn = Window(RowNumber(), partition_by=[document], order_by=["mixed"])
    ordered = rows.alias(mixed=mixed).alias(turn=turn).order_by("turn", "mixed")
    return list(ordered.defer("search_vector")[:limit])


def _reworded(entry: Entry, seed: int) -> Sequence[str]:
    # Not used for anything secret.
    chance = random.Random(f"{seed} {entry.pk}")  # noqa: S311
    return (entry.question, key_words(entry.question), mistype(entry.question, chance))


def _written(writer: Writer, entries: Sequence[Entry], seed: int) -> dict[int, str]:
    """Return {entry id: question by the writer}, without unreadable completions."""
    found: dict[int, str] = {}
    for start in range(0, len(entries), _WRITTEN_AT_ONCE):
        part = entries[start : start + _WRITTEN_AT_ONCE]
        given = [{"fact": entry.text} for entry in part]
        filled = writer.fill_in(ASKING, given, temperature=0.0, seed=seed)
        for entry, completion in zip(part, filled, strict=True):
            if completion:
                found[entry.pk] = completion.text("question")
    return found


def _foreign(language: str) -> Iterator[OwnQuestion]:
    """Yield everyday questions of other trades; in English if the language has none."""
    listed = json.loads(_FOREIGN.read_text(encoding="utf-8"))
    trades = listed.get(language, listed[KnowledgeBase.Language.ENGLISH.value])
    for trade, questions in trades.items():
        for text in questions:
            yield OwnQuestion(text, None, trade)


_MAX_WORDS: Final = 6
_QUERY_WORDS: Final = 4
_MISTYPED: Final = re.compile(r"[^\W\d_]{5,}")  # shorter words are seldom mistyped


def key_words(question: str) -> str:
    """Return a question's key words as typed into a search box; "" if it has none."""
    found = _content(question)[:_MAX_WORDS]
    return " ".join(found)


def telling_words(text: str, frequencies: Counter[str]) -> str:
    """Return a query for a fact: its rarest words by `frequencies`, in text order."""
    words = [word for word in _content(text) if not starts_with_digit(word)]
    distinct = list(dict.fromkeys(words))
    rarest = sorted(distinct, key=lambda word: (frequencies[word], -len(word), word))
    kept = set(rarest[:_QUERY_WORDS])
    return " ".join(word for word in distinct if word in kept)


def frequencies_in(texts: Iterable[str]) -> Counter[str]:
    """Return how many of the texts contain each content word."""
    return Counter(word for text in texts for word in set(_content(text)))


def mistype(question: str, chance: random.Random) -> str:
    """Return a question with a typo in one word; "" if no word is long enough.

    Two letters are swapped, one is left out, or one is doubled; never a word's first.
    """
    places = list(_MISTYPED.finditer(question))
    if not places:
        return ""
    word = chance.choice(places)
    at = chance.randrange(word.start() + 1, word.end() - 1)
    one, other = question[at], question[at + 1]
    written = [other + one, other, one + one + other]
    typo = chance.choice([each for each in written if each != one + other])
    return question[:at] + typo + question[at + 2 :]


def _content(text: str) -> Sequence[str]:
    return [
        word
        for word, _ in tokens(text)
        if word not in STOP_WORDS and word not in FILLERS
    ]


@dataclass(frozen=True, slots=True)
class _Said:
    """A judged answer with the ids of the right entries; if none, refusing is right."""

    answer: Answer
    kind: Kind
    right: frozenset[int]
    weight: float
    at: datetime
    is_doubtful: bool = False


def labelled_questions(
    knowledge_base: KnowledgeBase, *, with_evaluation: bool = False
) -> tuple[OwnQuestion, ...]:
    """Return at most `LIMIT` labelled questions, reviews first, newest first.

    An expert's review determines what was right to show and what should have been
    refused (`qa.reviews.labels`); an evaluation's result labels its question by what it
    cited. Each question occurs once, with its newest label and the sum of its labels'
    weights.
    """
    everything = [
        _Said(
            each.answer,
            Kind.REVIEWED,
            each.right,
            each.weight,
            each.at,
            each.is_doubtful,
        )
        for each in reviewed_questions(knowledge_base)
    ]
    if with_evaluation:
        everything += _labels_of_run(knowledge_base)
    ids = {pk for said in everything for pk in said.right}
    rows = Entry.objects.filter(pk__in=ids, state=Entry.State.VERIFIED)
    entries = rows.current(timezone.now()).defer("search_vector").in_bulk()
    found: dict[str, Label] = {}
    for said in everything:
        right = tuple(entries[pk] for pk in sorted(said.right) if pk in entries)
        if said.right and not right:
            continue  # the entries that answered are no longer there
        text = said.answer.question
        if text in found:
            known = found[text]
            found[text] = replace(known, weight=known.weight + said.weight)
        elif len(found) < LIMIT:
            asker = said.answer.asker
            found[text] = Label(
                said.kind, right, said.weight, said.at, asker, said.is_doubtful
            )
    return tuple(
        OwnQuestion(
            text,
            label.right[0] if label.right else None,
            group_of(label.right[0]) if label.right else f"question {number}",
            label=label,
        )
        for number, (text, label) in enumerate(found.items())
    )


def _labels_of_run(knowledge_base: KnowledgeBase) -> list[_Said]:
    """Return the labels from the newest finished evaluation of its own questions."""
    runs = EvaluationRun.objects.filter(
        knowledge_base=knowledge_base,
        suite=OWN_NAME,
        state=EvaluationRun.State.FINISHED,
    )
    newest = runs.order_by("-finished_at", "-pk").first()
    if newest is None or newest.finished_at is None:
        return []
    rows = EvaluationResult.objects.filter(
        run=newest, answer__isnull=False, answer__erased_at__isnull=True
    )
    rows = rows.exclude(is_answerable=None).select_related("answer__asker")
    labels = []
    for row in rows.prefetch_related(EVIDENCE).order_by("case_id")[:MAX_READ]:
        if row.answer is None:
            continue
        cited = cited_entries(row.answer)
        right = cited if row.is_answerable and row.is_correct else set()
        wrong = row.is_answered and not row.is_correct and not row.answer.language_model
        if right or not row.is_answerable or wrong:
            known, at = frozenset(right), newest.finished_at
            labels.append(_Said(row.answer, Kind.EVALUATED, known, 1.0, at))
    return labels
