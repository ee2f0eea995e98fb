"""The admin of knowledge: changed through services, limited to the user's audiences."""

from kb.audiences.admin import AudienceAdmin
from kb.conflicts.admin import ConflictAdmin
from kb.documents.admin import DocumentAdmin, KnowledgeBaseAdmin
from kb.embedding.admin import EmbeddingModelAdmin
from kb.enrichment.admin import ProposalAdmin
from kb.entries.admin import EntryAdmin
from kb.imports.admin import ImportAdmin
from kb.sources.admin import FollowedSourceAdmin
from kb.synonyms.admin import SynonymAdmin
from kb.tags.admin import TagAdmin
