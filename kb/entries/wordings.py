"""Alternative questions that an entry answers, or does not, according to an expert.

A question in these words gets the entry, or never does. Those that it answers also help
to find it, because questions often use other words than their answers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction

from accounts.exceptions import ForbiddenError
from accounts.models import optional_user
from accounts.roles import Role, has_role_in
from kb.documents.models import check_writable
from kb.embedding.models import EmbeddingModel, EntryEmbedding
from kb.embedding.services import PreparedVectors, active_model, write_vectors
from kb.entries.models import Entry
from kb.text.cleaning import MAX_WORDINGS, WORDING_LIMIT, clean_text


class Wording(models.Model):
    """One alternative question; row-level security shows it with the entry only."""

    entry = models.ForeignKey(
        Entry,
        on_delete=models.CASCADE,
        db_index=False,  # covered by `wording_once_an_entry`
        related_name="wordings",
    )
    text = models.TextField("also asked as", max_length=WORDING_LIMIT)
    added_by = optional_user("entry_wordings")
    answers = models.BooleanField(
        "answers it",
        default=True,
        db_default=True,
        help_text="If not, the entry is never shown for this question.",
    )
    is_imported = models.BooleanField(
        default=False,
        db_default=False,
        help_text="From the file that the entry was imported from; the file's next "
        "version replaces it.",
    )
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
def add_wordings(
    entry: Entry, texts: Sequence[str], *, by: User, answers: bool = True
) -> Sequence[Wording]:
    """Record that an entry answers these questions, or never does; return the new ones.

    If there are more than `MAX_WORDINGS`, the newest are kept.
    """
    _check_expert(entry, by)
    check_writable(by, entry.knowledge_base_id, Role.SME)
    model = active_model(for_share=True)
    own = Entry.objects.select_for_update(of=("self",)).get(pk=entry.pk)
    said = dict.fromkeys(map(_clean, texts))
    turned = own.wordings.filter(text__in=said).exclude(answers=answers)
    gone, _ = turned.delete()
    known = {own.question, *own.wordings.values_list("text", flat=True)}
    made = Wording.objects.bulk_create(
        Wording(entry=own, text=text, added_by=by, answers=answers)
        for text in said
        if text not in known
    )
    if made:
        newest = own.wordings.order_by("-pk").values("pk")[:MAX_WORDINGS]
        older = own.wordings.exclude(pk__in=list(newest.values_list("pk", flat=True)))
        gone += older.delete()[0]
    if gone or (made and answers):  # questions that it does not answer have no vector
        _embed([own], model)
    return made


def wordings_of(entry: Entry, *, by: User) -> Sequence[str]:
    """Return the questions, oldest first; they may be other users' words."""
    _check_expert(entry, by)
    said = entry.wordings.filter(answers=True).order_by("pk")
    return list(said.values_list("text", flat=True))


def _check_expert(entry: Entry, by: User) -> None:
    if not has_role_in(by, Role.SME, entry.knowledge_base_id):
        raise ForbiddenError(
            "Only experts may read and confirm an entry's alternative questions."
        )


def _clean(text: str) -> str:
    return clean_text(text, field="wording", limit=WORDING_LIMIT)


def confirm_question(entry: Entry, question: str, *, by: User) -> None:
    """Store a question that `by` said the entry answers, unless it is too long."""
    if len(question) <= WORDING_LIMIT:
        add_wordings(entry, [question], by=by)


def deny_question(entry: Entry, question: str, *, by: User) -> None:
    """Store a question the entry doesn't answer, unless it is its own or too long."""
    if len(question) <= WORDING_LIMIT:
        add_wordings(entry, [question], by=by, answers=False)


def allow_question(
    entries: Iterable[int] | models.QuerySet[Any, Any], question: str
) -> None:
    """Let entries be shown again for a question that they were said not to answer."""
    if len(question) <= WORDING_LIMIT:
        denied = Wording.objects.filter(entry__in=entries, answers=False)
        remove_wordings(denied.filter(text=_clean(question)))


def withdraw_question(entries: Iterable[int], question: str, *, by: User) -> None:
    """Remove a question that `by` confirmed or denied."""
    if len(question) > WORDING_LIMIT:
        return  # it was never stored
    rows = Wording.objects.filter(entry__in=entries, added_by=by)
    remove_wordings(rows.filter(text=_clean(question)))


@transaction.atomic
def remove_wordings(rows: models.QuerySet[Wording]) -> None:
    if not rows.exists():
        return
    model = active_model(for_share=True)
    answered = rows.filter(answers=True).values("entry")
    entries = Entry.objects.filter(pk__in=answered).defer("search_vector")
    changed = list(entries.select_for_update(of=("self",)).order_by("pk"))
    rows.delete()
    if changed:
        _embed(changed, model)


@transaction.atomic
def set_wordings(entry: Entry, texts: Sequence[str], *, by: User) -> None:
    """Replace the alternative questions of an entry, at most `MAX_WORDINGS`."""
    add_wordings(entry, texts, by=by)
    others = entry.wordings.filter(answers=True)
    remove_wordings(others.exclude(text__in=list(map(_clean, texts))))


@transaction.atomic
def replace_imported(
    said: Mapping[int, Sequence[str]],
    *,
    by: User | None,
    prepared: PreparedVectors | None = None,
) -> None:
    """Replace the imported questions of entries, by id, with a new version's.

    Questions that only the earlier version had are removed. Those that experts
    confirmed stay, with at most `MAX_WORDINGS` in all.
    """
    model = active_model(for_share=True)
    rows = Entry.objects.filter(pk__in=said).defer("search_vector")
    changed = []
    for entry in rows.select_for_update(of=("self",)).order_by("pk"):
        texts = said[entry.pk]
        gone = entry.wordings.filter(is_imported=True).exclude(text__in=texts)
        is_less = gone.delete()[0] > 0
        known = [entry.question, *entry.wordings.values_list("text", flat=True)]
        new = [text for text in texts if text not in known]
        made = Wording.objects.bulk_create(
            Wording(entry=entry, text=text, added_by=by, is_imported=True)
            for text in new[: max(0, MAX_WORDINGS + 1 - len(known))]
        )
        if is_less or made:
            changed.append(entry)
    if changed:
        _embed(changed, model, prepared)


def _embed(
    entries: Sequence[Entry],
    model: EmbeddingModel,
    prepared: PreparedVectors | None = None,
) -> None:
    write_vectors(entries, model=model, prepared=prepared)
    # A switch under way embeds them again, with their current wordings.
    EntryEmbedding.objects.filter(entry__in=entries).exclude(model=model).delete()
