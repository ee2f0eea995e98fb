"""Knowledge in the admin: every change goes through `kb.services`.

What is seen here is limited to the user's audiences, as everywhere else.
"""

from .audience import AudienceAdmin
from .conflict import ConflictAdmin
from .document import DocumentAdmin
from .embedding_model import EmbeddingModelAdmin
from .entry import EntryAdmin
from .knowledge_base import KnowledgeBaseAdmin
from .knowledge_import import ImportAdmin
from .proposal import ProposalAdmin
from .tag import TagAdmin

__all__ = [
    "AudienceAdmin",
    "ConflictAdmin",
    "DocumentAdmin",
    "EmbeddingModelAdmin",
    "EntryAdmin",
    "ImportAdmin",
    "KnowledgeBaseAdmin",
    "ProposalAdmin",
    "TagAdmin",
]
