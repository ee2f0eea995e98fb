"""Files of knowledge: uploaded, planned, applied.

A plan tells what applying would change, by the same steps without the writing. Both go
over the file in batches, whose entries, counts and cursor are committed together: who
was killed goes on behind the last of them.
"""

from .background import KIND, enqueue_import, import_in_background
from .running import run_import
from .uploads import Upload, limits, start_import, unfinished_import

__all__ = [
    "KIND",
    "Upload",
    "enqueue_import",
    "import_in_background",
    "limits",
    "run_import",
    "start_import",
    "unfinished_import",
]
