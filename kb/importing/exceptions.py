from kb.exceptions import InvalidKnowledgeError


class ImportFileError(InvalidKnowledgeError):
    """A file that can not be imported; nothing of it was."""

    code = "import_file"

    def __init__(self, message: str) -> None:
        super().__init__("file", message)
