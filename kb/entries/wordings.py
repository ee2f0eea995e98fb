"""Questions in other words that an entry answers, as an expert confirmed.

What is asked so again gets the entry, and what is asked much like it is compared with the
wording: the words of a question are often others than those of its answer.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from django.contrib.auth.models import User
from django.db import models, transaction

from accounts.exceptions import ForbiddenError
from accounts.models import optional_user
from accounts.roles import Role, has_role_in
from kb.embedding.models import EmbeddingModel, EntryEmbedding
from kb.embedding.services import active_model, write_vectors
from kb.entries.models import Entry
from kb.text.cleaning import clean_text

WORDING_LIMIT: Final = 500  # characters; more is no question, and fits in no index
MOST: Final = 30  # of an entry; each has a vector


class Wording(models.Model):
    """One of them; a policy of the database shows it with the entry alone."""

    entry = models.ForeignKey(
        Entry,
        on_delete=models.CASCADE,
        db_index=False,  # `wording_once_an_entry` serves it
        related_name="wordings",
    )
    text = models.TextField("also asked as", max_length=WORDING_LIMIT)
    added_by = optional_user("entry_wordings")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["entry", "text"], name="wording_once_an_entry"
            )
        ]

    def __str__(self) -> str:
        return self.text


@transaction.atomic
def add_wordings(entry: Entry, texts: Sequence[str], *, by: User) -> Sequence[Wording]:
    """Let an entry answer these questions too; return those that are new.

    Of more than `MOST` the newest are kept.

    Raises:
        ForbiddenError: `by` is no expert.
        InvalidKnowledgeError: A text is empty or too long.
    """
    if not has_role_in(by, Role.SME, entry.knowledge_base_id):
        raise ForbiddenError("Only experts confirm that an entry answers a question.")
    model = active_model(for_share=True)
    own = Entry.objects.select_for_update(of=("self",)).get(pk=entry.pk)
    known = {own.question, *own.wordings.values_list("text", flat=True)}
    said = (clean_text(t, field="wording", limit=WORDING_LIMIT) for t in texts)
    made = Wording.objects.bulk_create(
        Wording(entry=own, text=text, added_by=by)
        for text in dict.fromkeys(said)
        if text not in known
    )
    if made:
        newest = own.wordings.order_by("-pk").values("pk")[:MOST]
        own.wordings.exclude(pk__in=list(newest.values_list("pk", flat=True))).delete()
        _embed([own], model)
    return made


def confirm_question(entry: Entry, question: str, *, by: User) -> None:
    """Keep a question that `by` said the entry answers; a very long one is none to keep."""
    if len(question) <= WORDING_LIMIT:
        add_wordings(entry, [question], by=by)


def withdraw_question(entries: Iterable[int], question: str, *, by: User) -> None:
    """Take back what `by` confirmed."""
    rows = Wording.objects.filter(entry__in=entries, added_by=by)
    remove_wordings(rows.filter(text=question.strip()))


@transaction.atomic
def remove_wordings(rows: models.QuerySet[Wording]) -> None:
    if not rows.exists():
        return
    model = active_model(for_share=True)
    entries = Entry.objects.filter(pk__in=rows.values("entry")).defer("search_vector")
    changed = list(entries.select_for_update(of=("self",)).order_by("pk"))
    rows.delete()
    _embed(changed, model)


def _embed(entries: Sequence[Entry], model: EmbeddingModel) -> None:
    write_vectors(entries, model=model)
    # A switch under way embeds them again, with what they answer now.
    EntryEmbedding.objects.filter(entry__in=entries).exclude(model=model).delete()
