"""The suites "demo" and "own": questions of the demonstration, and one's own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from django.contrib.auth.models import User

from accounts.ids import digest
from kb.demonstration import KNOWLEDGE
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from kb.exceptions import KnowledgeBaseNotFoundError
from qa.answers.questions import find_knowledge_base
from qa.evaluation.cases import Case, as_text, read_cases, read_lines
from qa.evaluation.judging import Suite, by_expectation
from qa.evaluation.knowledge import (
    Fact,
    Source,
    ensure_agent,
    ensure_knowledge,
    evaluation_user,
    given_or_empty,
)
from qa.evaluation.question_suite import AskedSuite
from qa.evaluation.saved_cases import cases_of, digest_of_cases
from qa.exceptions import EvaluationDataError

from .options import (
    PROTOCOLS,
    SuiteOptions,
    deciding_policy,
    digest_of,
    find_file,
    refuse_others,
    sampled_suite,
)

DEMO_NAME = "demo"
QUESTIONS = Path(__file__).with_name("demonstration.jsonl")

# {asker's name in the questions: groups beside the role agent}
ASKERS: Mapping[str, tuple[str, ...]] = {
    "agent": (),
    "fraud": ("fraud-desk",),
    "lead": ("team-leads",),
}


def open_demo(**options: Unpack[SuiteOptions]) -> Suite:
    refuse_others(DEMO_NAME, options, frozenset())
    knowledge = json.loads(KNOWLEDGE.read_text(encoding="utf-8"))
    knowledge_base = _loaded(knowledge["knowledge_base"]["slug"])
    keys = {entry["text"]: entry["key"] for entry in _entries(knowledge)}
    entries = Entry.objects.filter(knowledge_base=knowledge_base, text__in=keys)
    limit = options.get("limit")
    return AskedSuite(
        name=DEMO_NAME,
        protocol=PROTOCOLS["demo"],
        knowledge_base=knowledge_base,
        policy=deciding_policy(knowledge_base, options),
        cases=read_cases(QUESTIONS)[:limit],
        scoring=by_expectation,
        about={
            "data": digest_of(QUESTIONS),
            "limit": limit,
            "shadow": bool(options.get("shadow")),
        },
        askers={(name,): user for name, user in ensure_demonstration_users().items()},
        keys={pk: keys[text] for pk, text in entries.values_list("pk", "text")},
    )


def ensure_demonstration_users() -> Mapping[str, User]:
    return {
        name: ensure_agent(f"demo-{name}", groups) for name, groups in ASKERS.items()
    }


def _loaded(slug: str) -> KnowledgeBase:
    try:
        return find_knowledge_base(slug)
    except KnowledgeBaseNotFoundError as error:
        raise EvaluationDataError(
            f"{error} Load the demonstration first: manage.py load_demonstration"
        ) from error


def _entries(knowledge: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    waiting = [s for document in knowledge["documents"] for s in document["sections"]]
    while waiting:
        section = waiting.pop()
        yield from section.get("entries", ())
        waiting += section.get("sections", ())


OWN_NAME = "own"
_DOCUMENT = "Facts"


def open_own(**options: Unpack[SuiteOptions]) -> Suite:
    """Open the questions of a file or, without one, the knowledge base's test cases."""
    refuse_others(OWN_NAME, options, frozenset({"knowledge", "knowledge_base"}))
    knowledge, slug = options.get("knowledge"), options.get("knowledge_base", "")
    if slug and not knowledge and options.get("data") is None:
        return open_saved(given_or_empty(slug), options)
    file = find_file(OWN_NAME, options.get("data"), "*.jsonl")
    cases = read_cases(file)
    if knowledge and slug:
        raise EvaluationDataError(
            "Give either a file of knowledge or an existing knowledge base, not both."
        )
    keys: Mapping[int, str] = {}
    if knowledge:
        knowledge_base, keys = _load(knowledge, options)
    else:
        knowledge_base = given_or_empty(slug)
    suite = _suite(
        knowledge_base,
        cases,
        options,
        questions=file.name,
        knowledge=knowledge.name if knowledge else knowledge_base.slug,
        data=digest_of(file),
    )
    suite.keys = keys
    return suite


def open_saved(knowledge_base: KnowledgeBase, options: SuiteOptions) -> AskedSuite:
    """Open the saved test cases of a knowledge base."""
    cases = [case for _, case in cases_of(knowledge_base)]
    if not cases:
        raise EvaluationDataError(
            f"No test case is saved for {knowledge_base.slug} yet: save some on the "
            "playground, or name a file with --data."
        )
    return _suite(
        knowledge_base,
        cases,
        options,
        questions="the saved test cases",
        knowledge=knowledge_base.slug,
        data=digest_of_cases(cases),
    )


def _suite(
    knowledge_base: KnowledgeBase,
    cases: Sequence[Case],
    options: SuiteOptions,
    *,
    questions: str,
    knowledge: str,
    data: str,
) -> AskedSuite:
    askers = {case.asker for case in cases if case.asker}
    own = set(
        Entry.objects.filter(knowledge_base=knowledge_base)
        .exclude(question="")
        .values_list("question", flat=True)
    )
    protocol = PROTOCOLS["own"].format(
        questions=questions,
        knowledge=knowledge,
        overlap=sum(case.question in own for case in cases),
    )
    suite = sampled_suite(
        OWN_NAME, protocol, knowledge_base, cases, by_expectation, options, data=data
    )
    suite.askers = {each: evaluation_user(each) for each in askers}
    return suite


def _load(file: Path, options: SuiteOptions) -> tuple[KnowledgeBase, Mapping[int, str]]:
    if not file.is_file():
        raise EvaluationDataError(f"There is no file {file}.")
    facts = [fact for _, fact in read_lines(file, _fact)]
    knowledge_base = ensure_knowledge(
        f"eval-own-{digest_of(file)[:8]}",
        f"Evaluation: {file.name}"[:100],
        [_source(facts[at : at + 256]) for at in range(0, len(facts), 256)],
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


def _source(facts: Sequence[Fact]) -> Source:
    key = digest(*(f"{fact.question}\t{fact.text}" for fact in facts))
    return Source(key=key, title=_DOCUMENT, facts=facts)


def _fact(row: Mapping[str, object]) -> Fact:
    confidence = row.get("confidence")
    if confidence is not None and not isinstance(confidence, float | int):
        raise TypeError(f"confidence {confidence!r} is not a number")
    return Fact(
        text=as_text(row["text"]).strip(),
        question=as_text(row["question"]).strip() if row.get("question") else "",
        key=as_text(row["key"], "key") if row.get("key") else "",
        confidence=None if confidence is None or confidence == 1 else float(confidence),
    )
