from django.apps import AppConfig


class KbConfig(AppConfig):
    """What is known: documents, entries, revisions, audiences, embeddings, search."""

    name = "kb"
    verbose_name = "Knowledge"
