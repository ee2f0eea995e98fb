"""Questions from a chat: which account asks, how they are stored and shown.

Uses the services behind `POST /api/v1/ask`, with their entitlement, record and audit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from accounts.acting import acting_for
from accounts.authentication import find_user
from accounts.delegation import acted_for, limit_to_agent
from accounts.exceptions import ForbiddenError
from accounts.roles import Role, has_role
from qa.answers.models import Answer, fetch_evidence
from qa.answers.questions import find_knowledge_base, new_question
from qa.answers.serializers import as_json
from qa.policies.wording import Words, words_around

MAX_SHOWN = 3
"""Maximum number of entries shown with an answer or a refusal."""


class ChatAccountError(ForbiddenError):
    code = "chat_account"


def chat_account(username: str) -> User:
    """Return the account that asks for a chat, limited to an agent's rights.

    Raises:
        ChatAccountError: There is no such active account, or it is a superuser's.
    """
    account = find_user(username=username, is_active=True)
    if account is None or account.is_superuser:
        raise ChatAccountError(
            f"The account {username!r} of this chat is a superuser's, or it does not "
            "exist or is not active; name another in the settings."
        )
    limit_to_agent(account)
    return account


def person_by_mail(mail: str, *, account: User) -> User | None:
    """Return the only agent with this address, for whom `account` acts, or None."""
    rows = User.objects.filter(email__iexact=mail, is_active=True, is_superuser=False)
    names = list(rows.values_list("username", flat=True)[:2]) if mail else []
    if len(names) != 1:
        return None
    person = acted_for(names[0], service=account, named_by="The chat's mail")
    return person if has_role(person, Role.AGENT) else None


def keep(
    text: str, *, asker: User, knowledge_base: str, answer_id: UUID | None = None
) -> Answer:
    """Store a question for `decide_alone`.

    Args:
        knowledge_base: Its slug; the first knowledge base if empty.
    """
    with acting_for(asker):
        base = find_knowledge_base(knowledge_base, asker=asker)
        answer = new_question(
            text, asker=asker, knowledge_base=base, channel=Answer.Channel.API
        )
        answer.id = answer_id or answer.id
        answer.save(force_insert=True)
    return answer


def asker_of(answer: Answer) -> User | None:
    """Return the user who asked, limited to an agent's rights, or None if inactive."""
    asker = find_user(pk=answer.asker_id, is_active=True)
    if asker is not None:
        limit_to_agent(asker)
    return asker


def as_its_asker_sees_it(answer: Answer, asker: User) -> dict[str, Any]:
    with acting_for(asker):
        fetch_evidence(answer, asker)
        return as_json(answer)


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph of a chat message: plain text, never markup."""

    text: str
    is_head: bool = False
    is_small: bool = False


def words_of(shown: dict[str, Any]) -> Words:
    return words_around(language=shown["language"], is_refused=not shown["answered"])


def text_of(shown: dict[str, Any]) -> str:
    """Return the answer's text; a refusal offers no expert, as chats don't escalate."""
    return words_of(shown).for_reader(shown["reason"], shown["text"])


def lines(shown: dict[str, Any]) -> Iterator[Line]:
    """Yield the paragraphs of an answer: what it is, its text and its evidence."""
    is_answered, reason = shown["answered"], shown["reason"]
    words = words_of(shown)
    labels = words.labels
    if not is_answered:
        title = f": {words.reasons[reason].title}" if reason else ""
        yield Line(f"{labels['not_answered']}{title}", is_head=True)
    elif shown["unsourced"]:
        said = "Without a source: the language model's own knowledge"
        yield Line(said, is_head=True)
    yield Line(text_of(shown))
    pieces = shown["citations"] if is_answered else shown["near_misses"]
    meant = shown["meanings"]
    if meant:
        yield Line(f"{labels['asks_back']} {labels['name_it']}")
        pieces = sorted(pieces, key=lambda piece: piece["entry"] not in meant)
    for piece in [each for each in pieces if not each["withheld"]][:MAX_SHOWN]:
        kind = "Evidence" if is_answered else labels["related_only"]
        if piece["entry"] in meant:
            kind = labels["meant"]
        place = ", ".join(filter(None, (piece["document"], piece["section"])))
        state = labels["verified" if piece["verified"] else "not_verified"].lower()
        head = ", ".join(filter(None, (place, state)))
        text = piece["text"] if piece["text"] != shown["text"] else ""
        said = " ".join(filter(None, (piece["question"], text)))
        yield Line(f"{kind} ({head}){': ' if said else ''}{said}", is_small=True)
    for each in shown["disagreements"]:
        sides = [side["quote"] for side in each["sides"] if not side["withheld"]]
        yield Line(f"{labels['sources_disagree']}: {' / '.join(sides)}", is_small=True)
