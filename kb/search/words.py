"""Which words of a question are worth looking up.

PostgreSQL keeps the most frequent words of every full-text column for its planner, and
renews them with each ANALYZE; so no table of counts need be kept here.
"""

import threading
import time
from dataclasses import dataclass

from accounts.acting import as_owner

from .scope import execute

# A word that more entries contain tells little and costs much: an OR of five words, two
# of them very common, took 0.9 s among a million entries.
FREQUENCY_CUT = 0.02
# Among so few entries a lookup is cheap whatever the word, and every match may count.
_UNCUT_ENTRIES = 5_000
_KEPT_SECONDS = 300

_COMMON = """
SELECT c.reltuples, s.most_common_elems::text::text[], s.most_common_elem_freqs
FROM pg_class c
LEFT JOIN pg_stats s
    ON s.schemaname = c.relnamespace::regnamespace::text
    AND s.tablename = c.relname AND s.attname = 'search_vector'
WHERE c.oid = 'kb_entry'::regclass
"""


@dataclass(frozen=True, slots=True)
class _Kept:
    words: tuple[str, ...]
    until: float


_lock = threading.Lock()
_kept = _Kept((), 0.0)


def common_words() -> tuple[str, ...]:
    """Return the lexemes above the document-frequency cut; asked anew every five minutes."""
    global _kept  # one value per process
    with _lock:
        if _kept.until < time.monotonic():
            _kept = _Kept(_read_common_words(), time.monotonic() + _KEPT_SECONDS)
        return _kept.words


def _read_common_words() -> tuple[str, ...]:
    with as_owner("frequencies of words"):  # a secured table's are hidden from others
        rows = execute(_COMMON, {})
    for entries, words, frequencies in rows:
        if entries < _UNCUT_ENTRIES or words is None:
            break
        # Behind the frequencies of the words stand the least, the greatest and that of
        # NULL.
        return tuple(
            word
            for word, frequency in zip(words, frequencies, strict=False)
            if frequency > FREQUENCY_CUT
        )
    return ()
