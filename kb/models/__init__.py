"""The rows of what is known."""

from .audience import Audience, AudienceQuerySet
from .conflict import Conflict, ConflictQuerySet, JudgedEntry
from .document import Document, KnowledgeBase, Section
from .embedding import EmbeddingModel, EntryEmbedding, HalfVector
from .entry import Entry, EntryQuerySet, EntryWords, Revision
from .knowledge_import import Import, ImportedKey
from .proposal import Proposal, ProposalQuerySet
from .tag import Tag, TagQuerySet
from .upkeep import Reminder, Upkeep

__all__ = [
    "Audience",
    "AudienceQuerySet",
    "Conflict",
    "ConflictQuerySet",
    "Document",
    "EmbeddingModel",
    "Entry",
    "EntryEmbedding",
    "EntryQuerySet",
    "EntryWords",
    "HalfVector",
    "Import",
    "ImportedKey",
    "JudgedEntry",
    "KnowledgeBase",
    "Proposal",
    "ProposalQuerySet",
    "Reminder",
    "Revision",
    "Section",
    "Tag",
    "TagQuerySet",
    "Upkeep",
]
