"""Entries as the verifier reads them: read once, then kept in memory and in a file."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from prometheus_client import Counter

from .reading import Reader, Tokens
from .token_file import Placed, TokenFile

# In memory: about 2,500 short entries.
_KEPT_BYTES: Final = 64 << 20
_TEXTS: Final = Counter(
    "nescio_verifier_texts",
    "Entries and sentences that the verifier needed, by whether they were kept.",
    ["how"],
)
_KEPT_TEXTS, _FILED_TEXTS, _READ_TEXTS = map(_TEXTS.labels, ("kept", "filed", "read"))


class EntryTokens:
    """The windows of entries as tokens; for one thread at a time."""

    def __init__(self, reader: Reader, file: TokenFile | None) -> None:
        self._reader, self._file = reader, file
        self._kept: OrderedDict[Placed, list[Tokens]] = OrderedDict()
        self._bytes = 0

    def windows(self, texts: Sequence[Placed]) -> list[list[Tokens]]:
        """Return each text's windows; those kept nowhere are read in one go."""
        found = {text: self._kept[text] for text in texts if text in self._kept}
        for text in found:
            self._kept.move_to_end(text)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        filed = self._file.find(missing) if self._file and missing else {}
        read = self._read([text for text in missing if text not in filed])
        if self._file and read:
            self._file.keep(read)
        _KEPT_TEXTS.inc(len(found))
        _FILED_TEXTS.inc(len(filed))
        _READ_TEXTS.inc(len(read))
        new = {**filed, **read}
        self._keep(new)
        return [(found.get(text) or new[text]) for text in texts]

    def _read(self, texts: Sequence[Placed]) -> dict[Placed, list[Tokens]]:
        windows = {text: self._reader.windows(*text) for text in texts}
        rows = [row for own in windows.values() for row in own]
        read = iter(self._reader.read(rows) if rows else ())
        return {text: [next(read) for _ in own] for text, own in windows.items()}

    def _keep(self, new: Mapping[Placed, list[Tokens]]) -> None:
        for text, windows in new.items():
            self._kept[text] = windows
            self._bytes += _size(windows)
        while self._bytes > _KEPT_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= _size(dropped)


def _size(windows: Sequence[Tokens]) -> int:
    return sum(tokens.nbytes for tokens in windows)
