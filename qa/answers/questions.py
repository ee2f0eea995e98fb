"""Making a question from typed text: asker, knowledge base, language and wording."""

from collections.abc import Mapping, Sequence
from typing import Required, TypedDict
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User

from accounts.delegation import acting_service
from accounts.people import AnyUser
from kb.documents.models import KnowledgeBase
from kb.exceptions import KnowledgeBaseNotFoundError
from kb.tags.models import Tag
from kb.text.synonyms import reworded
from kb.text.terms import language_of
from qa.answers.models import Answer
from qa.exceptions import InvalidQuestionError
from qa.pipeline.long_question import question_in
from qa.pipeline.values import NO_TEXT, clean_question, clean_text
from qa.policies.ask_prefetch import prefetch, prefetched

from .conversations import standalone_question


class QuestionFields(TypedDict, total=False):
    """The arguments of `new_question` besides the text."""

    asker: Required[AnyUser]
    channel: Required[str]
    knowledge_base: KnowledgeBase | None
    language: str | None
    refusal_language: str
    tags: Sequence[Tag]
    earlier: Sequence[str]
    asked_back: bool
    conversation: UUID | None


def find_knowledge_base(
    slug: str = "", *, asker: AnyUser | None = None
) -> KnowledgeBase:
    """Return the knowledge base `slug`, or the default one if none is named.

    Args:
        asker: Everything that deciding for them needs is prefetched, and stays as it
            was read for as long as the instance is used.

    Raises:
        KnowledgeBaseNotFoundError: It does not exist, or there is no default one.
    """
    rows = KnowledgeBase.objects.order_by("pk")
    if asker is None:
        found = (rows.filter(slug=slug) if slug else rows.asked_by_default()).first()
    else:
        found = prefetch(slug, asker)
    if found is None:
        known = ", ".join(rows.in_use().values_list("slug", flat=True)[:10])
        named = (
            f"no knowledge base {slug[:80]!r}" if slug else "no default knowledge base"
        )
        remedy = f"available: {known}." if known else "create one in the admin first."
        raise KnowledgeBaseNotFoundError(f"There is {named}; {remedy}")
    found.check_in_use()
    return found


def new_question(
    text: str,
    *,
    asker: AnyUser,
    channel: str,
    knowledge_base: KnowledgeBase | None = None,
    language: str | None = None,
    refusal_language: str = "",
    tags: Sequence[Tag] = (),
    earlier: Sequence[str] = (),
    asked_back: bool = False,
    conversation: UUID | None = None,
) -> Answer:
    """Return a question as an unsaved row.

    Args:
        language: The answer's, two letters; None for the knowledge base's.
        refusal_language: The asker's choice for refusals; "" for an explicit
            `language`, or else for the question's if it can be detected.
        tags: What it is about, at most one of each facet; a missing facet is set from
            the evidence some minutes later.
        earlier: The asker's own earlier questions, oldest first, if the text may be a
            follow-up to rewrite as a standalone question.
        asked_back: Whether the latest was refused by asking which entry is meant.
        conversation: Id of the first answer of its conversation; None to begin one.
    """
    typed = _validated(text)
    base = knowledge_base or find_knowledge_base()
    base.check_in_use()
    question = standalone_question(
        typed, earlier, asker=asker, knowledge_base=base, asked_back=asked_back
    )
    if question == typed:
        question = clean_text(question_in(text))  # the raw text still has its line ends
    question = reworded(question, _synonyms(base), language=base.language)
    if len(question) > settings.QUESTION_MAX_CHARACTERS:
        question = typed
    return Answer(
        knowledge_base=base,
        asker=asker if isinstance(asker, User) else None,
        service=acting_service(asker),
        channel=Answer.Channel(channel),
        question=question,
        typed=typed if question != typed else "",
        conversation=conversation,
        language=_language(language or base.language),
        refusal_language=refusal_language
        or ("" if language else _spoken(question, base)),
        **{tag.facet: tag for tag in tags},
    )


def _synonyms(base: KnowledgeBase) -> Mapping[str, str]:
    """Return its synonyms; one query, or none if prefetched with the knowledge base."""
    read = prefetched(base)
    return read.synonyms if read else dict(base.synonyms.values_list("word", "means"))


def _validated(text: str) -> str:
    limit = settings.QUESTION_MAX_CHARACTERS
    if len(text) > limit:
        raise InvalidQuestionError(
            f"The question has {len(text)} characters and may have {limit}; shorten it."
        )
    found = NO_TEXT.search(text)
    if found:
        raise InvalidQuestionError(
            f"The question contains U+{ord(found[0]):04X} at position {found.start()}, "
            "which is not text; remove it."
        )
    question = clean_question(text, "").text
    if not question:
        raise InvalidQuestionError("Type a question first.")
    if not any(character.isalnum() for character in question):
        raise InvalidQuestionError(
            f"The question {question[:80]!r} has no words; write what you want to know."
        )
    return question


def _spoken(question: str, base: KnowledgeBase) -> str:
    """Return the question's language if it differs from the knowledge base's."""
    found = language_of(question) or ""
    is_told = base.language != KnowledgeBase.Language.OTHER and found != base.language
    return found if is_told else ""


def _language(code: str) -> str:
    if code not in KnowledgeBase.Language.values:
        known = ", ".join(KnowledgeBase.Language.values)
        raise InvalidQuestionError(
            f"The language {code[:20]!r} is not known; use one of {known}."
        )
    return code
