"""One check of a followed source, as a job: list, import changes, propose retirement.

Each imported document is stored with its marker in one transaction, and interrupted
imports are resumed; so a repeated check does nothing twice, and one that fails leaves
what was there before.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from accounts.exceptions import ConflictError, NescioError, NotFoundError
from accounts.roles import Role, has_role_in
from jobs.exceptions import JobCancelledError, JobInterruptedError, LeaseLostError
from jobs.models import Job
from jobs.run import RETRYABLE, JobRun
from kb.audiences.models import Audience
from kb.documents.models import Document, KnowledgeBase
from kb.documents.services import edit_document
from kb.entries.models import Entry
from kb.exceptions import InvalidKnowledgeError, SourceNotFoundError
from kb.imports.models import Import
from kb.imports.running import run_import
from kb.imports.services import Upload, start_import, unfinished_import
from kb.sources.kinds import Bounds, Content, Kind, Listed, Place, find_kind
from kb.sources.kinds.interface import RESTRICTED
from kb.sources.listing import Listing, known_documents, read_list
from kb.sources.models import FollowedDocument, FollowedSource, FollowRule
from kb.sources.services import credential_of
from kb.text.cleaning import TITLE_LIMIT
from kb.upkeep.retirement import propose_retirement

COUNTS = (
    "listed", "new", "changed", "unchanged", "moved", "gone", "unnamed", "failed",
    "entries_created", "entries_changed", "proposed",
)  # fmt: skip
# Errors of one document, after which the check continues with the next.
_OF_A_DOCUMENT = (InvalidKnowledgeError, ConflictError, NotFoundError, OSError)
_ENTRY_COUNTS = {
    "entries_created": "created",
    "entries_changed": "changed",
    "proposed": "retired",
}


def follow_in_background(run: JobRun) -> dict[str, object]:
    """Check the source that the parameter `source` names; for jobs of "kb.follow"."""
    key = run.parameters.get("source")
    source = (
        FollowedSource.objects.select_related("knowledge_base", "owner")
        .filter(pk=key or 0)
        .first()
    )
    if source is None:
        raise SourceNotFoundError(f"There is no source {key}.")
    source.knowledge_base.check_in_use()
    try:
        return _Check(run, source).result()
    except (JobInterruptedError, JobCancelledError, LeaseLostError):
        raise  # not a fault of the source
    except (NescioError, OSError) as error:
        if not (isinstance(error, RETRYABLE) and _is_tried_again(run)):
            FollowedSource.objects.filter(pk=source.pk).update(error=str(error))
        raise


def _is_tried_again(run: JobRun) -> bool:
    tried = Job.objects.filter(attempts_without_progress__lt=F("max_attempts"))
    return tried.filter(pk=run.job_id).exists()


class _Check:
    def __init__(self, run: JobRun, source: FollowedSource) -> None:
        self._run = run
        self._source = source
        self._kind: Kind = find_kind(source.kind)
        self._rules: Sequence[FollowRule] = list(
            source.rules.select_related("audience")
        )
        self._owner = _fit_owner(source, self._rules)
        counts: Mapping[str, int] = run.cursor.get("counts", {})
        self._counts = {**dict.fromkeys(COUNTS, 0), **counts}

    def result(self) -> dict[str, object]:
        source, bounds = self._source, Bounds(self._run.check)
        self._kind.check_address(source.address)
        place = Place(source.address, credential_of(source), bounds)
        with self._kind.open(place) as found:
            listing = read_list(found, bounds)
            listed = listing.documents
            named = {
                key: audience
                for key, each in listed.items()
                if (audience := audience_for(each.groups, self._rules)) is not None
            }
            known = known_documents(source)
            todo = [
                key
                for key, audience in named.items()
                if _may_have_changed(listed[key], known.get(key), audience)
            ]
            done = self._run.done if self._run.total is not None else 0
            total = done + len(todo)
            for count, key in enumerate(todo, start=done + 1):
                bounds.seconds_left()
                self._bring(listed[key], known.get(key), named[key], count, total)
        self._finish(listing, named)
        return {"source": source.pk, **self._counts}

    def _bring(
        self,
        listed: Listed,
        known: FollowedDocument | None,
        audience: Audience,
        count: int,
        total: int,
    ) -> None:
        """Import a document that may have changed; store an error on its row."""
        row = known or FollowedDocument(source=self._source, key=listed.key)
        changes: dict[str, int] = {}
        imported: Import | None = None
        is_kept = row.state == FollowedDocument.State.KEPT
        try:
            if self._move(row, audience):
                changes["moved"] = 1
            content = listed.read(row.known if is_kept else {})
            if content is not None:
                imported = self._import(row, listed, content, audience)
                changes |= _changes(imported, is_new=known is None)
                row.known, row.note = dict(content.known), _unread(imported)
                row.document, row.changed_at = _document(imported), timezone.now()
        except _OF_A_DOCUMENT as error:
            row.error = str(error)
        else:
            row.state, row.error = FollowedDocument.State.KEPT, ""
            row.marker, row.audience = listed.marker[:200], audience
            row.title = _title(listed, row)
        with self._run.step() as step:
            row.save()
            for name, number in changes.items():
                self._counts[name] += number
            if imported is not None:
                imported.delete()
            step.advance(
                done=count, total=max(total, count), cursor={"counts": self._counts}
            )
        if imported is not None:
            imported.file.delete(save=False)

    def _move(self, row: FollowedDocument, audience: Audience) -> bool:
        """Give a document whose rule changed its new audience, with its entries."""
        document = row.document
        if document is None or document.audience_id == audience.pk:
            return False
        with transaction.atomic():
            edit_document(
                document_id=document.pk,
                author=self._owner,
                entries_follow=True,
                audience=audience,
            )
        return True

    def _import(
        self,
        followed: FollowedDocument,
        listed: Listed,
        content: Content,
        audience: Audience,
    ) -> Import:
        # A known document keeps its name, since the followed source may be renamed.
        known = followed.document
        with transaction.atomic():
            source = known.source if known else self._new_name(listed.key)
            upload = Upload(
                file=io.BytesIO(content.content),
                name=content.name,
                knowledge_base=self._source.knowledge_base,
                audience=audience,
                source=source,
                title=" ".join(listed.title.split())[:TITLE_LIMIT],
                followed=self._source,
            )
            row = unfinished_import(upload, by=self._owner)
            row = row or start_import(upload, by=self._owner)

        @contextmanager
        def writing(_done: int, _total: int | None) -> Iterator[None]:
            with self._run.step():
                yield

        return run_import(row.pk, apply=True, writing=writing, check=self._run.check)

    def _new_name(self, key: str) -> str:
        """Return a name for a new document that no other followed source uses.

        Other checks of the knowledge base wait until the import with it is stored.
        """
        source = self._source
        bases = KnowledgeBase.objects.select_for_update(no_key=True)
        bases.get(pk=source.knowledge_base_id)
        name = key if "://" in key else f"{source.name}/{key}"
        followed = FollowedDocument.objects.filter(
            document__knowledge_base=source.knowledge_base_id, document__source=name
        )
        # A name that another check is about to use is only known by its import.
        coming = Import.objects.filter(
            knowledge_base=source.knowledge_base_id, source=name, followed__isnull=False
        ).exclude(followed=source)
        is_taken = followed.exists() or coming.exists()
        return f"{name}#{source.pk}" if is_taken else name

    def _finish(self, listing: Listing, named: Mapping[str, Audience]) -> None:
        source, listed, note = self._source, listing.documents, ""
        kept = source.documents.kept()
        gone = [each for each in kept if each.key not in named]
        standing = kept.count()
        is_loss = 2 * (standing - len(gone)) < standing
        if not self._kind.lists_all:
            gone = []
        elif is_loss and self._run.parameters.get("accept_loss") is not True:
            note = (
                f"Only {standing - len(gone)} of {standing} documents are still there, so "
                "that nothing was proposed for retirement: the source may be broken. If "
                "it is right, choose “Propose what is missing”."
            )
            gone = []
        note = f"{note} {listing.note}".strip()
        with self._run.step() as step:
            for each in gone:
                self._counts["proposed"] += self._propose(each, each.key in listed)
                each.state = FollowedDocument.State.GONE
                each.save(update_fields=["state"])
            failed = source.documents.exclude(error="").filter(key__in=named)
            counts = self._counts | {
                "listed": len(listed),
                "unnamed": len(listed) - len(named),
                "gone": len(gone),
                "failed": listing.misnamed + failed.count(),
            }
            written = counts["new"] + counts["changed"] + counts["failed"]
            counts["unchanged"] = max(len(named) - written, 0)
            self._counts = counts
            FollowedSource.objects.filter(pk=source.pk).update(
                checked_at=timezone.now(), counts=counts, note=note, error=""
            )
            step.advance(cursor={"counts": counts})
        for left in source.imports.all():  # left by a check that was killed
            left.file.delete(save=False)
            left.delete()

    def _propose(self, row: FollowedDocument, is_unnamed: bool) -> int:
        if row.document_id is None:
            return 0
        why = "No rule matches it any longer in" if is_unnamed else "It is no longer in"
        note = (
            f"{why} the followed source {self._source} ({row.key}). Retire it, unless it "
            "is still true."
        )
        return propose_retirement(
            Entry.objects.filter(document=row.document_id).exclude(source_digest=""),
            source_id=self._source.pk,
            note=note,
        )


def _fit_owner(source: FollowedSource, rules: Sequence[FollowRule]) -> User:
    """Return the curator on whose behalf the source is read."""
    owner = source.owner
    if owner is None or not has_role_in(owner, Role.CURATOR, source.knowledge_base_id):
        raise InvalidKnowledgeError(
            "owner",
            f"The owner of {source} is gone or no longer a curator; another curator "
            "can save the source again to take it over.",
        )
    mine = set(Audience.objects.ids_visible_to(owner))
    for rule in rules:
        if rule.audience_id not in mine:
            raise InvalidKnowledgeError(
                "owner",
                f"{owner} no longer belongs to the audience {rule.audience}; another "
                "curator can save the source again to take it over.",
            )
    return owner


def audience_for(groups: Sequence[str], rules: Sequence[FollowRule]) -> Audience | None:
    """Return the audience of a document in these groups, by the first matching rule."""
    named = [each.strip("/ ").casefold() for each in groups]
    for rule in rules:
        wanted = rule.group.strip("/ ").casefold()
        if RESTRICTED in named:
            fits = wanted == RESTRICTED
        else:
            fits = not wanted or any(
                each == wanted or each.startswith(f"{wanted}/") for each in named
            )
        if fits:
            return rule.audience
    return None


def _may_have_changed(
    listed: Listed, known: FollowedDocument | None, audience: Audience
) -> bool:
    return (
        known is None
        or known.state != FollowedDocument.State.KEPT
        or bool(known.error)
        or not listed.marker
        or known.marker != listed.marker[:200]
        or known.audience_id != audience.pk
    )


def _changes(imported: Import, *, is_new: bool) -> dict[str, int]:
    counts: Mapping[str, int] = imported.counts
    changes = {name: counts[action] for name, action in _ENTRY_COUNTS.items()}
    changes["entries_created"] += counts["restored"]
    if is_new:
        changes["new"] = 1
    elif any(changes.values()):
        changes["changed"] = 1
    return changes


def _unread(imported: Import) -> str:
    """Return a note on what of a document could not be read, or ""."""
    bad: list[dict[str, Any]] = imported.bad_rows
    if not imported.counts["read"]:
        return "Nothing to import was found in it."
    if not bad:
        return ""
    first = bad[0]
    return f"{imported.counts['bad']} rows were not read; {first['place']}: {first['reason']}"


def _document(imported: Import) -> Document | None:
    return Document.objects.filter(
        knowledge_base=imported.knowledge_base_id,
        audience=imported.audience_id,
        source=imported.source,
    ).first()


def _title(listed: Listed, row: FollowedDocument) -> str:
    own = row.document.title if row.document else ""
    return (listed.title or own or listed.key)[:TITLE_LIMIT]
