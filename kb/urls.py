from django.urls import include, path
from rest_framework.routers import SimpleRouter

from kb.archive import api as exports
from kb.audiences.api import AudienceViewSet
from kb.conflicts.api import ConflictViewSet
from kb.documents.api import DocumentViewSet
from kb.documents.knowledge_bases_api import KnowledgeBaseViewSet
from kb.enrichment.api import ProposalViewSet
from kb.entries.api import EntryViewSet
from kb.entries.bulk_api import BulkEntryViewSet
from kb.imports.api import ImportViewSet
from kb.sources.api import FollowedSourceViewSet
from kb.synonyms.api import SynonymViewSet
from kb.tags.api import TagViewSet
from kb.upkeep.api import DueEntryViewSet

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
# First, so that "entries/due" is not taken for an entry's id.
router.register("entries", DueEntryViewSet, "due-entries")
router.register("entries", BulkEntryViewSet, "bulk-entries")
router.register("entries", EntryViewSet, "entries")
router.register("knowledge-bases", KnowledgeBaseViewSet, "knowledge-bases")
router.register("documents", DocumentViewSet, "documents")
router.register("imports", ImportViewSet, "imports")
router.register("sources", FollowedSourceViewSet, "sources")
router.register("exports", exports.ExportViewSet, "exports")
router.register("synonyms", SynonymViewSet, "synonyms")
router.register("tags", TagViewSet, "tags")
router.register("audiences", AudienceViewSet, "audiences")
router.register("conflicts", ConflictViewSet, "conflicts")
router.register("proposals", ProposalViewSet, "proposals")

urlpatterns = [
    path("entries.csv", exports.EntryTableView.as_view(), name="entries-table"),
    path("", include(router.urls)),
]
