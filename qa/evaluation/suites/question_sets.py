"""The suites of published question sets: SQuAD 2.0, CLINC150, open domain, SelfAware.

Rajpurkar, Jia, Liang: "Know What You Don't Know" (ACL 2018).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from accounts.ids import digest
from qa.evaluation.cases import Case, plain_question, read_lines
from qa.evaluation.judging import Suite, by_label, by_references
from qa.evaluation.knowledge import Fact, Source, ensure_knowledge, given_or_empty
from qa.evaluation.suites.options import (
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
from qa.exceptions import EvaluationDataError
from qa.inference.evidence_text import flatten, sentence_spans

NAME = "squad2"
FILES = ("squad/squad-v2*.json", "squad/dev-v2*.json", "*.json")


def open_squad2(**options: Unpack[SuiteOptions]) -> Suite:
    refuse_others(NAME, options, frozenset({"articles", "exclude_articles"}))
    file = find_file(NAME, options.get("data"), *FILES)
    chosen = _chosen(read_articles(file), options)
    data = digest_of(file)
    selection = digest(data, *sorted(chosen))
    try:
        sources = [_source(title, paragraphs) for title, paragraphs in chosen.items()]
        cases = [
            case
            for title, rows in chosen.items()
            for case in article_cases(title, rows)
        ]
    except (KeyError, TypeError) as error:
        raise misread(file, "SQuAD 2.0") from error
    knowledge_base = ensure_knowledge(
        f"eval-squad2-{selection[:8]}",
        f"Evaluation: SQuAD 2.0, {len(chosen)} articles",
        sources,
        loading=options.get("loading"),
    )
    facts = f"{sum(len(source.facts) for source in sources):,}"
    suite = sampled_suite(
        NAME,
        PROTOCOLS["squad2"].format(articles=len(chosen), facts=facts),
        knowledge_base,
        cases,
        by_references,
        options,
        data=data,
        selection=selection,
    )
    # Grouped by article: its questions share evidence, which a model then reads once.
    suite.cases = sorted(suite.cases, key=lambda case: case.group)
    return suite


def read_articles(file: Path) -> dict[str, Sequence[Mapping[str, Any]]]:
    content = read_json(file)
    try:
        return {article["title"]: article["paragraphs"] for article in content["data"]}
    except (KeyError, TypeError) as error:
        raise misread(file, "SQuAD 2.0") from error


def _chosen(
    articles: Mapping[str, Sequence[Mapping[str, Any]]], options: SuiteOptions
) -> dict[str, Sequence[Mapping[str, Any]]]:
    wanted = options.get("articles") or tuple(articles)
    unwanted = options.get("exclude_articles") or ()
    for title in (*wanted, *unwanted):
        if title not in articles:
            known = ", ".join(sorted(articles))
            raise EvaluationDataError(
                f"There is no article {title!r}; there are: {known}."
            )
    return {
        title: paragraphs
        for title, paragraphs in articles.items()
        if title in wanted and title not in unwanted
    }


def _source(title: str, paragraphs: Sequence[Mapping[str, Any]]) -> Source:
    facts = [Fact(text) for row in paragraphs for text in sentences_of(row["context"])]
    return Source(key=title, title=title.replace("_", " ") or "untitled", facts=facts)


def sentences_of(paragraph: str) -> Iterator[str]:
    text = flatten(paragraph)
    for start, end in sentence_spans(text):
        if any(character.isalnum() for character in text[start:end]):
            yield text[start:end]


def article_cases(
    title: str, paragraphs: Sequence[Mapping[str, Any]]
) -> Iterator[Case]:
    for row in paragraphs:
        for question in row["qas"]:
            is_answerable = not question.get("is_impossible", False)
            answers = question["answers"] if is_answerable else []
            yield Case(
                id=str(question["id"]),
                question=question["question"],
                is_answerable=is_answerable,
                references=tuple(dict.fromkeys(a["text"] for a in answers)),
                group=title,
            )


_CLINC = "clinc-oos"
_NO_INTENT = "no intent"
Pairs = Sequence[tuple[str, str]]


def open_clinc(**options: Unpack[SuiteOptions]) -> Suite:
    refuse_others(_CLINC, options, frozenset())
    file = find_file(_CLINC, options.get("data"), "clinc150/data_full.json")
    content = read_json(file)
    try:
        training: Pairs = [(text, intent) for text, intent in content["train"]]
        cases = [*_cases("test", content["test"]), *_cases("oos", content["oos_test"])]
    except (KeyError, TypeError, ValueError) as error:
        raise misread(file, "CLINC150") from error
    asked = {plain_question(case.question) for case in cases}
    kept = [pair for pair in training if plain_question(pair[0]) not in asked]
    data = digest_of(file)
    knowledge_base = ensure_knowledge(
        f"eval-clinc-{data[:8]}",
        "Evaluation: CLINC150",
        list(_sources(kept)),
        loading=options.get("loading"),
    )
    protocol = PROTOCOLS[_CLINC].format(dropped=len(training) - len(kept))
    return sampled_suite(
        _CLINC, protocol, knowledge_base, cases, by_label, options, data=data
    )


def _cases(split: str, pairs: Pairs) -> Iterator[Case]:
    is_answerable = split == "test"
    for number, (text, intent) in enumerate(pairs, start=1):
        yield Case(
            id=f"{split}-{number}",
            question=text,
            is_answerable=is_answerable,
            references=(intent,) if is_answerable else (),
            # Each out-of-scope utterance is a group of its own.
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
    """The files and field names of a data set; without `id`, row numbers are ids."""

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
    protocol = PROTOCOLS["open-domain" if slug else "open-domain-empty"]
    protocol, data = protocol.format(slug=slug), digest_of(file)
    base = given_or_empty(slug)
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
    if isinstance(answers, str):  # a list encoded as a JSON string
        answers = json.loads(answers)
    return Case(
        id=str(row[layout.id]) if layout.id else f"line-{number}",
        question=row[layout.question],
        is_answerable=is_answerable,
        references=tuple(str(answer) for answer in answers),
        group=str(row[layout.group]) if layout.group else "",
    )
