"""The suite "demo": the questions that come with the demonstration knowledge base."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, User

from accounts.roles import Role
from kb.demonstration.loader import KNOWLEDGE
from kb.models import KnowledgeBase
from qa.exceptions import EvaluationDataError, KnowledgeBaseNotFoundError
from qa.models import Answer
from qa.services.asking import decide, find_knowledge_base, keep_question

from .cases import Case, read_cases

QUESTIONS = Path(__file__).with_name("demonstration.jsonl")

# Who asks, by the names that the questions use, and the groups beside the role agent.
ASKERS: Mapping[str, tuple[str, ...]] = {
    "agent": (),
    "fraud": ("fraud-desk",),
    "lead": ("team-leads",),
}


class Demonstration:
    """The demonstration's questions, and asking them as its users."""

    def __init__(self) -> None:
        """Read the questions and the knowledge base that they are asked against.

        Raises:
            EvaluationDataError: The demonstration is not loaded.
        """
        knowledge = json.loads(KNOWLEDGE.read_text(encoding="utf-8"))
        self.cases: tuple[Case, ...] = read_cases(QUESTIONS)
        self._keys: dict[str, str] = {
            entry["text"]: entry["key"] for entry in _entries(knowledge)
        }
        self._knowledge_base = _loaded(knowledge["knowledge_base"]["slug"])
        self._askers = ensure_demonstration_users()

    def ask(self, case: Case) -> Answer:
        """Ask one question as the user that it names."""
        answer = self.keep(case)
        for _ in decide(answer):
            pass
        return answer

    def keep(self, case: Case) -> Answer:
        """Keep one question, pending, as asked by the user that it names."""
        return keep_question(
            case.question,
            asker=self._askers[case.asker],
            knowledge_base=self._knowledge_base,
            channel=Answer.Channel.EVALUATION,
        )

    def key_of(self, text: str) -> str:
        """Return the key of the entry that says `text`; "" for one that was changed."""
        return self._keys.get(text, "")


def ensure_demonstration_users() -> Mapping[str, User]:
    """Return the users "demo-<name>" by name, made on first use: agents who can't sign in."""
    return {name: _ensure_user(name) for name in ASKERS}


def _ensure_user(name: str) -> User:
    user, is_new = User.objects.get_or_create(username=f"demo-{name}")
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
        groups = (Role.AGENT.value, *ASKERS[name])
        user.groups.set(Group.objects.get_or_create(name=g)[0] for g in groups)
    return user


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
