from django.urls import include, path
from rest_framework.routers import SimpleRouter

from kb.archive import api as exports
from kb.audiences.api import AudienceViewSet
from kb.conflicts import api as conflicts
from kb.documents.api import DocumentViewSet
from kb.enrichment import api as proposals
from kb.entries.api import EntryViewSet
from kb.imports.api import ImportViewSet
from kb.tags.api import TagViewSet
from kb.upkeep import api as due

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("entries", EntryViewSet, "entries")
router.register("documents", DocumentViewSet, "documents")
router.register("imports", ImportViewSet, "imports")
router.register("exports", exports.ExportViewSet, "exports")
router.register("tags", TagViewSet, "tags")
router.register("audiences", AudienceViewSet, "audiences")

urlpatterns = [
    path("entries/due", due.DueEntryListView.as_view(), name="entries-due"),
    path(
        "entries/<int:entry_id>/postpone",
        due.EntryPostponeView.as_view(),
        name="entry-postpone",
    ),
    path("entries.csv", exports.EntryTableView.as_view(), name="entries-table"),
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
    path("", include(router.urls)),
]
