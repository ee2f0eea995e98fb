from accounts.exceptions import (
    ConflictError,
    ForbiddenError,
    NescioError,
    NotFoundError,
    UnavailableError,
)


class InvalidKnowledgeError(NescioError):
    """A value that must not be stored; `field` names it."""

    code = "invalid_knowledge"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class EntryNotFoundError(NotFoundError):
    code = "entry_not_found"


class CommentNotFoundError(NotFoundError):
    code = "comment_not_found"


class RevisionNotFoundError(NotFoundError):
    code = "revision_not_found"


class PastNotReadyError(ConflictError):
    """Former content has to be embedded before a past moment can be searched."""

    code = "past_not_ready"


class KnowledgeBaseNotFoundError(NotFoundError):
    code = "knowledge_base_not_found"


class KnowledgeBaseExistsError(ConflictError):
    code = "knowledge_base_exists"


class KnowledgeBaseArchivedError(ConflictError):
    """The knowledge base is read-only until it is unarchived."""

    code = "knowledge_base_archived"


class SynonymNotFoundError(NotFoundError):
    code = "synonym_not_found"


class SynonymExistsError(ConflictError):
    code = "synonym_exists"


class DocumentNotFoundError(NotFoundError):
    code = "document_not_found"


class AudienceNotFoundError(NotFoundError):
    code = "audience_not_found"


class ProposalNotFoundError(NotFoundError):
    code = "proposal_not_found"


class ProposalDecidedError(ConflictError):
    code = "proposal_decided"


class ImportNotFoundError(NotFoundError):
    code = "import_not_found"


class SourceNotFoundError(NotFoundError):
    code = "source_not_found"


class EntryRetiredError(ConflictError):
    code = "entry_retired"


class EntryExpiredError(ConflictError):
    """Verifying would leave the entry expired: its end of validity has passed."""

    code = "entry_expired"


class RevisionConflictError(ConflictError):
    """The entry was changed by someone else since it was read."""

    code = "revision_conflict"


class RevisionOfOthersError(ConflictError):
    """Not everyone who sees the entry now may see its former content."""

    code = "revision_of_others"


class NeverDueError(ConflictError):
    """The entry is not used by any answer, so nobody is asked to review it."""

    code = "never_due"


class AudienceExistsError(ConflictError):
    code = "audience_exists"


class TagExistsError(ConflictError):
    code = "tag_exists"


class PreconditionFailedError(ConflictError):
    """The entry's revision is not the one named by If-Match."""

    code = "precondition_failed"
    status = 412


class InvalidArchiveError(NescioError):
    """The file is not a knowledge archive, is damaged, or does not fit in here."""

    code = "invalid_archive"


class ExportNotFoundError(NotFoundError):
    """The export does not exist, is another user's, or its file was deleted."""

    code = "export_not_found"


class ExportNotReadyError(ConflictError):
    """The export is not finished yet, or failed."""

    code = "export_not_ready"


class ExportForbiddenError(ForbiddenError):
    """The caller may not, or may no longer, see the content of the export."""


class ConflictNotFoundError(NotFoundError):
    code = "conflict_not_found"


class ConflictOpenError(ConflictError):
    """The contradiction between two entries has to be decided first."""

    code = "conflict_open"


class ConflictResolvedError(ConflictError):
    """The conflict was resolved before, or settled by a change of an entry."""

    code = "conflict_resolved"


class EmbedderUnavailableError(UnavailableError):
    """An embedding model could not be loaded or asked, or is not the expected one."""

    code = "embedder_unavailable"
