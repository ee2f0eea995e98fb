from accounts.exceptions import ConflictError, NescioError, NotFoundError


class InvalidKnowledgeError(NescioError):
    """A value that may not be written; `field` names it."""

    code = "invalid_knowledge"
    status = 400

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class EntryNotFoundError(NotFoundError):
    """There is no such entry, or the asker may not see it."""

    code = "entry_not_found"


class RevisionNotFoundError(NotFoundError):
    """The entry has no revision of this number."""

    code = "revision_not_found"


class DocumentNotFoundError(NotFoundError):
    """There is no such document, or the asker may not see it."""

    code = "document_not_found"


class AudienceNotFoundError(NotFoundError):
    """There is no such audience, or the asker does not belong to it."""

    code = "audience_not_found"


class ProposalNotFoundError(NotFoundError):
    """There is no such proposal, or the asker may not see its entry."""

    code = "proposal_not_found"


class ProposalDecidedError(ConflictError):
    """A proposal is decided on once; afterwards its entry is changed."""

    code = "proposal_decided"


class ImportNotFoundError(NotFoundError):
    """There is no such import, or it is another user's."""

    code = "import_not_found"


class EntryRetiredError(ConflictError):
    """A retired entry is changed only by restoring it first."""

    code = "entry_retired"


class RevisionConflictError(ConflictError):
    """Somebody else changed the entry since it was read."""

    code = "revision_conflict"


class AudienceExistsError(ConflictError):
    """The slug belongs to another audience."""

    code = "audience_exists"


class TagExistsError(ConflictError):
    """The slug of a new tag is taken."""

    code = "tag_exists"


class PreconditionFailedError(ConflictError):
    """The entry is not at the revision that If-Match names."""

    code = "precondition_failed"
    status = 412


class InvalidArchiveError(NescioError):
    """The file is no archive of knowledge, a damaged one, or does not fit in here."""

    code = "invalid_archive"
    status = 400


class ExportNotFoundError(NotFoundError):
    """There is no such export, it is another user's, or its file is gone."""

    code = "export_not_found"


class ExportNotReadyError(ConflictError):
    """The export is being made, or could not be."""

    code = "export_not_ready"


class ExportForbiddenError(NescioError):
    """The asker may not have, or may no longer have, what the export holds."""

    code = "permission_denied"
    status = 403


class ConflictNotFoundError(NotFoundError):
    """There is no such conflict, or the asker may not see both of its entries."""

    code = "conflict_not_found"


class ConflictResolvedError(ConflictError):
    """It was resolved before, or a change of an entry has settled it."""

    code = "conflict_resolved"
