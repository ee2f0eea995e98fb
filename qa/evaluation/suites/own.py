"""The suite "own": one's own labelled questions, and knowledge to ask them against."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.evaluation.cases import as_text, read_cases, read_lines
from qa.evaluation.judging import Suite, by_expectation
from qa.evaluation.knowledge import (
    Fact,
    Source,
    ensure_knowledge,
    evaluation_user,
    given_or_empty,
)
from qa.exceptions import EvaluationDataError

from .options import SuiteOptions, digest_of, find_file, refuse_others, sampled_suite

NAME = "own"
_GROUPS = "+"  # between the groups of an asker
_DOCUMENT = "Facts"

PROTOCOL = (
    "The questions of {questions} are asked against {knowledge}. An answer is right if "
    "it holds and cites what its question asks for. Known to leak: {overlap} of the "
    "questions stand word for word as the question of an entry."
)


def open_own(**options: Unpack[SuiteOptions]) -> Suite:
    refuse_others(NAME, options, frozenset({"knowledge", "knowledge_base"}))
    file = find_file(NAME, options.get("data"), "*.jsonl")
    cases = read_cases(file)
    knowledge, slug = options.get("knowledge"), options.get("knowledge_base", "")
    if knowledge and slug:
        raise EvaluationDataError(
            "Give a file of knowledge or a knowledge base that is there, not both."
        )
    keys: Mapping[int, str] = {}
    if knowledge:
        knowledge_base, keys = _load(knowledge, options)
    else:
        knowledge_base = given_or_empty(slug)
    names = {case.asker for case in cases if case.asker}
    own = set(
        Entry.objects.filter(knowledge_base=knowledge_base)
        .exclude(question="")
        .values_list("question", flat=True)
    )
    protocol = PROTOCOL.format(
        questions=file.name,
        knowledge=knowledge.name if knowledge else knowledge_base.slug,
        overlap=sum(case.question in own for case in cases),
    )
    data = digest_of(file)
    suite = sampled_suite(
        NAME, protocol, knowledge_base, cases, by_expectation, options, data=data
    )
    suite.askers = {name: evaluation_user(name.split(_GROUPS)) for name in names}
    suite.keys = keys
    return suite


def _load(file: Path, options: SuiteOptions) -> tuple[KnowledgeBase, Mapping[int, str]]:
    if not file.is_file():
        raise EvaluationDataError(f"There is no file {file}.")
    facts = [fact for _, fact in read_lines(file, _fact)]
    knowledge_base = ensure_knowledge(
        f"eval-own-{digest_of(file)[:8]}",
        f"Evaluation: {file.name}"[:100],
        [_source(part) for part in _parts(facts)],
        loading=options.get("loading"),
    )
    keys = {(fact.question, fact.text): fact.key for fact in facts if fact.key}
    rows = Entry.objects.filter(knowledge_base=knowledge_base)
    found = rows.values_list("pk", "question", "text")
    return knowledge_base, {
        pk: keys[question, text]
        for pk, question, text in found
        if (question, text) in keys
    }


def _parts(facts: Sequence[Fact]) -> Sequence[Sequence[Fact]]:
    return [facts[start : start + 256] for start in range(0, len(facts), 256)]


def _source(facts: Sequence[Fact]) -> Source:
    said = "\n".join(f"{fact.question}\t{fact.text}" for fact in facts)
    return Source(
        key=hashlib.sha256(said.encode()).hexdigest(), title=_DOCUMENT, facts=facts
    )


def _fact(row: Mapping[str, object]) -> Fact:
    confidence = row.get("confidence")
    if confidence is not None and not isinstance(confidence, float | int):
        msg = f"confidence {confidence!r} is no number"
        raise TypeError(msg)
    return Fact(
        text=as_text(row["text"]).strip(),
        question=as_text(row["question"]).strip() if row.get("question") else "",
        key=as_text(row["key"]) if row.get("key") else "",
        confidence=None if confidence is None or confidence == 1 else float(confidence),
    )
