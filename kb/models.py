from kb.audiences.models import Audience, AudienceQuerySet
from kb.conflicts.models import Conflict, ConflictQuerySet, JudgedEntry
from kb.documents.models import Document, KnowledgeBase, Section
from kb.embedding.models import EmbeddingModel, EntryEmbedding, FormerVector, HalfVector
from kb.enrichment.models import Proposal, ProposalQuerySet
from kb.entries.comments import Comment
from kb.entries.models import Entry, EntryQuerySet, EntryWords, Revision
from kb.entries.wordings import Wording
from kb.imports.models import Import, ImportedKey, PlannedEntry
from kb.search.models import FormerRow
from kb.sources.models import FollowedDocument, FollowedSource, FollowRule
from kb.synonyms.models import Synonym
from kb.tags.models import Tag, TagQuerySet
from kb.upkeep.models import Flag, Reminder, Upkeep
