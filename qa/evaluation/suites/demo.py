"""The suite "demo": the questions that come with the demonstration knowledge base."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

from django.contrib.auth.models import User

from kb.demonstration import KNOWLEDGE
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.answers.asking import find_knowledge_base
from qa.evaluation.cases import read_cases
from qa.evaluation.judging import Suite, by_expectation
from qa.evaluation.knowledge import ensure_agent
from qa.evaluation.question_suite import AskedSuite
from qa.exceptions import EvaluationDataError, KnowledgeBaseNotFoundError

from .options import SuiteOptions, deciding_policy, digest_of, refuse_others

NAME = "demo"
QUESTIONS = Path(__file__).with_name("demonstration.jsonl")

# Who asks, by the names that the questions use, and the groups beside the role agent.
ASKERS: Mapping[str, tuple[str, ...]] = {
    "agent": (),
    "fraud": ("fraud-desk",),
    "lead": ("team-leads",),
}

PROTOCOL = (
    "The demonstration's questions, asked of the demonstration's knowledge base by its "
    "own users. An answer is right if it holds and cites what the question asks for. "
    "Known to leak: the default thresholds were chosen on these questions."
)


def open_demo(**options: Unpack[SuiteOptions]) -> Suite:
    refuse_others(NAME, options, frozenset())
    knowledge = json.loads(KNOWLEDGE.read_text(encoding="utf-8"))
    knowledge_base = _loaded(knowledge["knowledge_base"]["slug"])
    keys = {entry["text"]: entry["key"] for entry in _entries(knowledge)}
    entries = Entry.objects.filter(knowledge_base=knowledge_base, text__in=keys)
    limit = options.get("limit")
    return AskedSuite(
        name=NAME,
        protocol=PROTOCOL,
        knowledge_base=knowledge_base,
        policy=deciding_policy(knowledge_base, options),
        cases=read_cases(QUESTIONS)[:limit],
        scoring=by_expectation,
        about={
            "data": digest_of(QUESTIONS),
            "limit": limit,
            "shadow": bool(options.get("shadow")),
        },
        askers=ensure_demonstration_users(),
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
        msg = f"{error} Load the demonstration first: manage.py load_demonstration"
        raise EvaluationDataError(msg) from error


def _entries(knowledge: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    waiting = [s for document in knowledge["documents"] for s in document["sections"]]
    while waiting:
        section = waiting.pop()
        yield from section.get("entries", ())
        waiting += section.get("sections", ())
