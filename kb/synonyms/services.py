"""Writing synonyms, each in one transaction, and finding words that may need one."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from accounts.prepared import execute
from kb.documents.models import KnowledgeBase, check_writable
from kb.entries.models import SEARCH_CONFIGURATIONS
from kb.exceptions import InvalidKnowledgeError, SynonymExistsError
from kb.synonyms.models import WORD_LIMIT, Synonym
from kb.text.cleaning import clean_line
from kb.text.vocabulary import STOP_WORDS
from kb.text.words import starts_with_digit, tokens

MAX_SYNONYMS = 500  # per knowledge base; they are read with each question
_SHORTEST = 3  # letters of a word that may need one
_UNUSED = """
SELECT word FROM unnest(%(words)s::text[]) WITH ORDINALITY AS asked (word, place),
    plainto_tsquery(%(config)s::regconfig, word) AS query
WHERE numnode(query) > 0 AND NOT EXISTS (
    SELECT FROM kb_entrywords w JOIN kb_entry e USING (id)
    WHERE w.search_vector @@ query AND e.knowledge_base_id = %(knowledge_base)s
)
ORDER BY place
"""


@transaction.atomic
def add_synonym(
    *, knowledge_base: KnowledgeBase, word: str, means: str, by: User
) -> Synonym:
    """Add a synonym: a word of questions is read as one that the entries use.

    Raises:
        InvalidKnowledgeError: It means itself or a word that has a synonym, is a stop
            word, or exceeds the limit.
        SynonymExistsError: The word already has one.
    """
    check_writable(by, knowledge_base.pk)
    made = Synonym(
        knowledge_base=knowledge_base,
        word=_clean("word", word),
        means=_clean("means", means),
        added_by=by,
    )
    # Count and compare under a lock: two writers must not see the same rows.
    KnowledgeBase.objects.select_for_update(no_key=True).get(pk=knowledge_base.pk)
    known = knowledge_base.synonyms.filter(word__iexact=made.word).first()
    if known:
        raise SynonymExistsError(
            f"{known.word!r} is already read as {known.means!r}; remove that first."
        )
    _check(made)
    made.save(force_insert=True)
    return made


def remove_synonym(synonym: Synonym, *, by: User) -> None:
    """Remove a synonym, so that the word is read literally again."""
    check_writable(by, synonym.knowledge_base_id)
    synonym.delete()


def _clean(field: str, value: str) -> str:
    cleaned = " ".join(clean_line(value, field=field, limit=WORD_LIMIT).split())
    if not (cleaned[0].isalnum() and cleaned[-1].isalnum()):
        raise InvalidKnowledgeError(
            field, f"{field} {cleaned!r} must begin and end with a letter or digit."
        )
    return cleaned


def _check(made: Synonym) -> None:
    if made.word.lower() == made.means.lower():
        raise InvalidKnowledgeError(
            "means", f"means {made.means!r} is the word itself; give another one."
        )
    if made.word in STOP_WORDS:
        raise InvalidKnowledgeError(
            "word",
            f"word {made.word!r} is too common. Write an abbreviation in capitals: it "
            "is then recognized in capitals only.",
        )
    others = Synonym.objects.filter(knowledge_base=made.knowledge_base)
    chained = others.filter(
        Q(word__iexact=made.means) | Q(means__iexact=made.word)
    ).first()
    if chained:
        raise InvalidKnowledgeError(
            "means",
            f"{chained.word!r} is read as {chained.means!r}, and a word with a synonym "
            "cannot be one itself; give both the same meaning.",
        )
    if others.count() >= MAX_SYNONYMS:
        raise InvalidKnowledgeError(
            "word",
            f"The knowledge base has {MAX_SYNONYMS} synonyms, the maximum; remove "
            "one first.",
        )


def unused_words(text: str, knowledge_base: KnowledgeBase) -> Sequence[str]:
    """Return a question's words that occur in no visible entry (one query).

    Lowercase and in order, without stop words and numbers.
    """
    words = [
        said
        for said, _ in tokens(text)
        if len(said) >= _SHORTEST
        and said not in STOP_WORDS
        and not starts_with_digit(said)
    ]
    asked = {
        "words": list(dict.fromkeys(words)),
        "config": SEARCH_CONFIGURATIONS[knowledge_base.language],
        "knowledge_base": knowledge_base.pk,
    }
    return [word for (word,) in execute(_UNUSED, asked)] if words else []
