"""Files of knowledge read into facts: plain values, no database.

`read` knows every format; what it yields is planned and applied by
`kb.imports.services`.
"""

from .formats import detect_format
from .reading import read
from .values import BadRow, Fact, FileItem, ImportFileError, Limits, SourceDocument

__all__ = [
    "BadRow",
    "Fact",
    "FileItem",
    "ImportFileError",
    "Limits",
    "SourceDocument",
    "detect_format",
    "read",
]
