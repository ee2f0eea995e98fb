"""Public sets of questions: the open-domain sets, SelfAware and clinc-oos.

CLINC150: Larson et al., "An Evaluation Dataset for Intent Classification and
Out-of-Scope Prediction" (EMNLP 2019).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from qa.evaluation.cases import Case, plain_question, read_lines
from qa.evaluation.judging import Suite, by_label, by_references
from qa.evaluation.knowledge import Fact, Source, ensure_knowledge, given_or_empty

from .options import (
    PROTOCOLS,
    SuiteFactory,
    SuiteOptions,
    digest_of,
    find_file,
    misread,
    read_json,
    refuse_others,
    sampled_suite,
)

NAME = "clinc-oos"
_FILES = ("clinc150/data_full.json",)
_NO_INTENT = "no intent"
Pairs = Sequence[tuple[str, str]]


def open_clinc(**options: Unpack[SuiteOptions]) -> Suite:
    refuse_others(NAME, options, frozenset())
    file = find_file(NAME, options.get("data"), *_FILES)
    content = read_json(file)
    try:
        training: Pairs = [(text, intent) for text, intent in content["train"]]
        cases = [*_cases("test", content["test"]), *_cases("oos", content["oos_test"])]
    except (KeyError, TypeError, ValueError) as error:
        raise misread(file, "CLINC150") from error
    asked = {plain_question(case.question) for case in cases}
    kept = [pair for pair in training if plain_question(pair[0]) not in asked]
    digest = digest_of(file)
    knowledge_base = ensure_knowledge(
        f"eval-clinc-{digest[:8]}",
        "Evaluation: CLINC150",
        list(_sources(kept)),
        loading=options.get("loading"),
    )
    protocol = PROTOCOLS["clinc-oos"].format(dropped=len(training) - len(kept))
    return sampled_suite(
        NAME, protocol, knowledge_base, cases, by_label, options, data=digest
    )


def _cases(split: str, pairs: Pairs) -> Iterator[Case]:
    is_answerable = split == "test"
    for number, (text, intent) in enumerate(pairs, start=1):
        yield Case(
            id=f"{split}-{number}",
            question=text,
            is_answerable=is_answerable,
            references=(intent,) if is_answerable else (),
            # An utterance outside of all intents is like no other.
            group=intent if is_answerable else f"{_NO_INTENT} {number}",
        )


def _sources(pairs: Pairs) -> Iterator[Source]:
    intents: dict[str, list[Fact]] = {}
    for text, intent in pairs:
        intents.setdefault(intent, []).append(Fact(intent, question=text))
    for intent, facts in intents.items():
        yield Source(key=intent, title=intent.replace("_", " "), facts=facts)


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
    refuse_others(name, options, frozenset({"knowledge_base"}))
    slug = options.get("knowledge_base", "")
    file, cases = read_open_domain(
        name, options.get("data"), is_answerable=None if slug else False
    )
    base, protocol = (
        given_or_empty(slug),
        (PROTOCOLS["open-domain"] if slug else PROTOCOLS["open-domain-empty"]).format(
            slug=slug
        ),
    )
    data = digest_of(file)
    return sampled_suite(name, protocol, base, cases, by_references, options, data=data)


def read_open_domain(
    name: str, data: Path | None, *, is_answerable: bool | None
) -> tuple[Path, list[Case]]:
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
    name = "selfaware"
    refuse_others(name, options, frozenset({"knowledge_base"}))
    file, cases = read_selfaware(options.get("data"))
    base = given_or_empty(options.get("knowledge_base", ""))
    protocol, data = PROTOCOLS["selfaware"].format(slug=base.slug), digest_of(file)
    return sampled_suite(name, protocol, base, cases, by_references, options, data=data)


def read_selfaware(data: Path | None) -> tuple[Path, list[Case]]:
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
