"""The open-domain sets and SelfAware: questions about the world, asked of what is known.

References:
    Joshi et al., TriviaQA (ACL 2017). Kwiatkowski et al., Natural Questions (TACL 2019),
    and Lee et al. (ACL 2019) for its open form. Mallen et al., PopQA (ACL 2023). Berant
    et al., WebQuestions (EMNLP 2013). Yin et al., "Do Large Language Models Know What They
    Don't Know?" (Findings of ACL 2023): SelfAware.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from qa.evaluation.cases import Case, read_lines
from qa.evaluation.judging import Suite, by_references
from qa.evaluation.knowledge import given_or_empty

from .options import (
    SuiteFactory,
    SuiteOptions,
    digest_of,
    find_file,
    misread,
    read_json,
    refuse_others,
    sampled_suite,
)

GIVEN = (
    "The questions are asked against the knowledge base {slug} as it is. Whether it "
    "holds an answer is not known, so that only drafts are judged and no refusal is: an "
    "answer is right if a reference is in it, both in lower case and without "
    "punctuation and articles, and shares a word with what the model marks in it, where "
    "it marks words that answer. Known to leak: nothing is added to the knowledge base; "
    "what it says of these questions already is not checked."
)
EMPTY = (
    "The questions are asked against a knowledge base that knows nothing: every one is "
    "to be refused, and every answer is a false one. To measure answers name a knowledge "
    "base with --knowledge-base."
)

SELFAWARE = (
    "All questions are asked against the knowledge base {slug}; whether one is "
    "answerable is the data set's label and says nothing about this knowledge base, so "
    "that refusing an answerable one may be all that is right here. An answer is right "
    "if a reference is in it. Known to leak: every unanswerable question was "
    "collected by the data set's authors and every answerable one comes from SQuAD, "
    "TriviaQA or HotpotQA, so that the style of a source tells the label; nothing may "
    "be trained on it."
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where a data set keeps what; `id` is None where the line's number is the id."""

    files: tuple[str, ...]
    question: str
    answers: str
    id: str | None
    group: str | None = None


_LAYOUTS: Mapping[str, _Layout] = {
    "triviaqa": _Layout(("triviaqa/*.jsonl",), "question", "answers", "id"),
    "nq-open": _Layout(("nq_open/NQ-open.dev.jsonl",), "question", "answer", None),
    "popqa": _Layout(("popqa/*.jsonl",), "question", "answers", "id", "prop"),
    "webquestions": _Layout(("webquestions/test.json",), "qText", "answers", "qId"),
}


def open_open_domain(name: str, **options: Unpack[SuiteOptions]) -> Suite:
    """Return the suite over one of the open-domain sets."""
    refuse_others(name, options, frozenset({"knowledge_base"}))
    slug = options.get("knowledge_base", "")
    file, cases = read_open_domain(
        name, options.get("data"), is_answerable=None if slug else False
    )
    base, protocol = given_or_empty(slug), (GIVEN if slug else EMPTY).format(slug=slug)
    data = digest_of(file)
    return sampled_suite(name, protocol, base, cases, by_references, options, data=data)


def read_open_domain(
    name: str, data: Path | None, *, is_answerable: bool | None
) -> tuple[Path, list[Case]]:
    """Return the file of one of the sets, and its questions in the file's order."""
    layout = _LAYOUTS[name]
    file = find_file(name, data, *layout.files)
    try:
        return file, [
            _case(row, layout, number, is_answerable)
            for number, row in enumerate(_rows(file), start=1)
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise misread(file, name) from error


OPEN_DOMAIN: Mapping[str, SuiteFactory] = {
    name: partial(open_open_domain, name) for name in _LAYOUTS
}


def open_selfaware(**options: Unpack[SuiteOptions]) -> Suite:
    """Return the suite over SelfAware."""
    name = "selfaware"
    refuse_others(name, options, frozenset({"knowledge_base"}))
    file, cases = read_selfaware(options.get("data"))
    base = given_or_empty(options.get("knowledge_base", ""))
    protocol, data = SELFAWARE.format(slug=base.slug), digest_of(file)
    return sampled_suite(name, protocol, base, cases, by_references, options, data=data)


def read_selfaware(data: Path | None) -> tuple[Path, list[Case]]:
    """Return the file and its questions in the file's order."""
    file = find_file("selfaware", data, "selfaware/SelfAware.json")
    try:
        return file, [
            Case(
                id=str(row["question_id"]),
                question=row["question"],
                is_answerable=bool(row["answerable"]),
                references=tuple(row["answer"] or ()),
            )
            for row in read_json(file)["example"]
        ]
    except (KeyError, TypeError) as error:
        raise misread(file, "SelfAware") from error


def _rows(file: Path) -> Sequence[Mapping[str, Any]]:
    if file.suffix == ".jsonl":
        return [row for _, row in read_lines(file, dict)]
    rows: Sequence[Mapping[str, Any]] = read_json(file)
    return rows


def _case(
    row: Mapping[str, Any], layout: _Layout, number: int, is_answerable: bool | None
) -> Case:
    answers = row[layout.answers]
    if isinstance(answers, str):  # a list that was written as JSON once more
        answers = json.loads(answers)
    return Case(
        id=str(row[layout.id]) if layout.id else f"line-{number}",
        question=row[layout.question],
        is_answerable=is_answerable,
        references=tuple(str(answer) for answer in answers),
        group=str(row[layout.group]) if layout.group else "",
    )
