"""The rows of what is known."""

from .audience import Audience, AudienceQuerySet
from .document import Document, KnowledgeBase, Section
from .embedding import EmbeddingModel, EntryEmbedding
from .entry import Entry, EntryQuerySet, Revision

__all__ = [
    "Audience",
    "AudienceQuerySet",
    "Document",
    "EmbeddingModel",
    "Entry",
    "EntryEmbedding",
    "EntryQuerySet",
    "KnowledgeBase",
    "Revision",
    "Section",
]
