"""The rows of what is known."""

from .audience import Audience, AudienceQuerySet
from .document import Document, KnowledgeBase, Section
from .embedding import EmbeddingModel, EntryEmbedding, HalfVector
from .entry import Entry, EntryQuerySet, Revision

__all__ = [
    "Audience",
    "AudienceQuerySet",
    "Document",
    "EmbeddingModel",
    "Entry",
    "EntryEmbedding",
    "EntryQuerySet",
    "HalfVector",
    "KnowledgeBase",
    "Revision",
    "Section",
]
