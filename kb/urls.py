from django.urls import path

from kb.archive import api as exports
from kb.audiences import api as audiences
from kb.conflicts import api as conflicts
from kb.documents import api as documents
from kb.enrichment import api as proposals
from kb.entries import api as entries
from kb.entries import revision_api as revisions
from kb.imports import api as imports
from kb.tags import api as tags
from kb.upkeep import api as due

urlpatterns = [
    path("entries", entries.EntryListView.as_view(), name="entries"),
    path("entries/due", due.DueEntryListView.as_view(), name="entries-due"),
    path("entries/<int:entry_id>", entries.EntryView.as_view(), name="entry"),
    path(
        "entries/<int:entry_id>/verify",
        entries.EntryVerifyView.as_view(),
        name="entry-verify",
    ),
    path(
        "entries/<int:entry_id>/retire",
        entries.EntryRetireView.as_view(),
        name="entry-retire",
    ),
    path(
        "entries/<int:entry_id>/restore",
        entries.EntryRestoreView.as_view(),
        name="entry-restore",
    ),
    path(
        "entries/<int:entry_id>/postpone",
        due.EntryPostponeView.as_view(),
        name="entry-postpone",
    ),
    path(
        "entries/<int:entry_id>/revisions",
        revisions.EntryRevisionListView.as_view(),
        name="entry-revisions",
    ),
    path(
        "entries/<int:entry_id>/revisions/<int:number>/restore",
        revisions.RevisionRestoreView.as_view(),
        name="revision-restore",
    ),
    path("entries.csv", exports.EntryTableView.as_view(), name="entries-table"),
    path("exports", exports.ExportListView.as_view(), name="exports"),
    path(
        "exports/<uuid:job_id>/file",
        exports.ExportFileView.as_view(),
        name="export-file",
    ),
    path("conflicts", conflicts.ConflictListView.as_view(), name="conflicts"),
    path(
        "conflicts/<int:conflict_id>/resolve",
        conflicts.ConflictResolveView.as_view(),
        name="conflict-resolve",
    ),
    path("proposals", proposals.ProposalListView.as_view(), name="proposals"),
    path(
        "proposals/<int:proposal_id>",
        proposals.ProposalView.as_view(),
        name="proposal",
    ),
    path(
        "proposals/decide",
        proposals.ProposalDecisionView.as_view(),
        name="proposals-decide",
    ),
    path("documents", documents.DocumentListView.as_view(), name="documents"),
    path(
        "documents/<int:document_id>", documents.DocumentView.as_view(), name="document"
    ),
    path("imports", imports.ImportListView.as_view(), name="imports"),
    path("imports/<int:import_id>", imports.ImportView.as_view(), name="import"),
    path(
        "imports/<int:import_id>/apply",
        imports.ImportApplyView.as_view(),
        name="import-apply",
    ),
    path("tags", tags.TagListView.as_view(), name="tags"),
    path("tags/<slug:slug>", tags.TagView.as_view(), name="tag"),
    path("audiences", audiences.AudienceListView.as_view(), name="audiences"),
    path("audiences/<slug:slug>", audiences.AudienceView.as_view(), name="audience"),
]
