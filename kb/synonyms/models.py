from typing import Self

from django.db import models

from accounts.models import optional_user
from accounts.people import AnyUser
from accounts.roles import Role, where_role
from kb.documents.models import KnowledgeBase

WORD_LIMIT = 60


class SynonymQuerySet(models.QuerySet["Synonym"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Synonyms of the bases the user may ask, since answers show their effect."""
        return self.filter(where_role(user, Role.AGENT))


class Synonym(models.Model):
    """A word that users write, and the word that the entries use for it.

    Search and the gates use the second; the question is shown as it was asked.
    """

    knowledge_base = models.ForeignKey(
        KnowledgeBase,
        on_delete=models.CASCADE,
        db_index=False,  # covered by `synonym_once_a_base`
        related_name="synonyms",
    )
    word = models.CharField(
        max_length=WORD_LIMIT,
        help_text="What people write: a word, an abbreviation or several words, such "
        "as “biro”.",
    )
    means = models.CharField(
        max_length=WORD_LIMIT, help_text="What the entries use instead, such as “pen”."
    )
    added_by = optional_user("synonyms")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SynonymQuerySet.as_manager()

    class Meta:
        ordering = ["knowledge_base", "word"]
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base", "word"], name="synonym_once_a_base"
            )
        ]

    def __str__(self) -> str:
        return f"{self.word} = {self.means}"
