import hashlib
from dataclasses import dataclass

from kb.exceptions import InvalidKnowledgeError


class ImportFileError(InvalidKnowledgeError):
    """A file that can not be read any further; what stood before it may be imported."""

    code = "import_file"

    def __init__(self, message: str) -> None:
        super().__init__("file", message)


# What readers make of a file, and what they may take for it.


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file may cost.

    Attributes:
        file_bytes: Largest file.
        unpacked_bytes: Most that a packed file may unpack to.
    """

    file_bytes: int
    unpacked_bytes: int


@dataclass(frozen=True, slots=True)
class Fact:
    """What becomes one entry.

    Attributes:
        text: What it states, or the answer to `question`.
        place: Where in its source it stands, such as "line 7".
        question: Set for a question with its exact answer.
        id: What its source calls it; empty where it has no name.
        headings: The headings it stands under, outermost first.
    """

    text: str
    place: str
    question: str = ""
    id: str = ""
    headings: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return _sha256("fact", self.question, self.text)

    @property
    def key(self) -> str:
        """Digest of what tells it from the others of its source.

        Its id, else its question, else all that it says: 64 hex digits.
        """
        if self.id:
            return _sha256("id", self.id)
        return _sha256("question", self.question) if self.question else self.digest


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document with all its facts.

    Attributes:
        title: As it calls itself; empty where it does not.
        source: What tells it from other documents; empty for the file's only one.
        headings: The path of every heading, in order, also of those without facts.
        place: Where in the file it begins.
    """

    title: str
    source: str
    headings: tuple[tuple[str, ...], ...]
    facts: tuple[Fact, ...]
    place: str = ""


@dataclass(frozen=True, slots=True)
class BadRow:
    """What could not be read, and why; the rest goes on without it."""

    place: str
    reason: str


FileItem = Fact | SourceDocument | BadRow
"""A row of a table, a document, or what is neither."""


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
