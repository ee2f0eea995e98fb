from accounts.exceptions import (
    ConflictError,
    ForbiddenError,
    NescioError,
    NotFoundError,
    UnavailableError,
)


class InvalidKnowledgeError(NescioError):
    """A value that may not be written; `field` names it."""

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
    """What entries said at a moment has to be embedded before it can be searched."""

    code = "past_not_ready"


class KnowledgeBaseNotFoundError(NotFoundError):
    code = "knowledge_base_not_found"


class KnowledgeBaseExistsError(ConflictError):
    code = "knowledge_base_exists"


class KnowledgeBaseArchivedError(ConflictError):
    """It is only read until somebody unarchives it."""

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
    """Somebody else changed the entry since it was read."""

    code = "revision_conflict"


class RevisionOfOthersError(ConflictError):
    """Who sees the entry now was not to see what it said then."""

    code = "revision_of_others"


class NeverDueError(ConflictError):
    """No answer uses the entry, so that nobody is asked to review it."""

    code = "never_due"


class AudienceExistsError(ConflictError):
    code = "audience_exists"


class TagExistsError(ConflictError):
    code = "tag_exists"


class PreconditionFailedError(ConflictError):
    """The entry is not at the revision that If-Match names."""

    code = "precondition_failed"
    status = 412


class InvalidArchiveError(NescioError):
    """The file is no archive of knowledge, a damaged one, or does not fit in here."""

    code = "invalid_archive"


class ExportNotFoundError(NotFoundError):
    """There is no such export, it is another user's, or its file is gone."""

    code = "export_not_found"


class ExportNotReadyError(ConflictError):
    """The export is being made, or could not be."""

    code = "export_not_ready"


class ExportForbiddenError(ForbiddenError):
    """The caller may not have, or may no longer have, what the export holds."""


class ConflictNotFoundError(NotFoundError):
    code = "conflict_not_found"


class ConflictOpenError(ConflictError):
    """Which of two contradicting entries is right is to be decided first."""

    code = "conflict_open"


class ConflictResolvedError(ConflictError):
    """It was resolved before, or a change of an entry has settled it."""

    code = "conflict_resolved"


class EmbedderUnavailableError(UnavailableError):
    """An embedding model could not be loaded or asked, or is not the one it should be."""

    code = "embedder_unavailable"
