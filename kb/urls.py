from django.urls import path

from kb.api import audiences, documents, entries

urlpatterns = [
    path("entries", entries.EntryListView.as_view(), name="entries"),
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
        "entries/<int:entry_id>/revisions",
        entries.EntryRevisionListView.as_view(),
        name="entry-revisions",
    ),
    path("documents", documents.DocumentListView.as_view(), name="documents"),
    path(
        "documents/<int:document_id>", documents.DocumentView.as_view(), name="document"
    ),
    path("audiences", audiences.AudienceListView.as_view(), name="audiences"),
    path("audiences/<slug:slug>", audiences.AudienceView.as_view(), name="audience"),
]
