"""The suite "squad2": answerable and unanswerable questions about the same articles.

Rajpurkar, Jia, Liang: "Know What You Don't Know" (ACL 2018).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from accounts.ids import digest
from qa.evaluation.cases import Case
from qa.evaluation.judging import Suite, by_references
from qa.evaluation.knowledge import Fact, Source, ensure_knowledge
from qa.exceptions import EvaluationDataError
from qa.inference.evidence_text import flatten, sentence_spans

from .options import (
    PROTOCOLS,
    SuiteOptions,
    digest_of,
    find_file,
    misread,
    read_json,
    refuse_others,
    sampled_suite,
)

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
    # Questions on one article share evidence, which a model then reads once.
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
