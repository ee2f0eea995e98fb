from kb.exceptions import InvalidKnowledgeError


class ImportFileError(InvalidKnowledgeError):
    """A file that can not be read any further; what stood before it may be imported."""

    code = "import_file"

    def __init__(self, message: str) -> None:
        super().__init__("file", message)
