"""The kinds of sources that can be followed; a new one is added to `_ALL`.

A kind lists all existing documents, cheaply, and reads one only on request: the list
alone shows what is new, what may have changed and what is gone. A kind keeps no state,
writes nothing and knows no entries.
"""

from collections.abc import Mapping
from types import MappingProxyType

from .exports import Confluence, Zendesk, article_address
from .files import Folder
from .git import Git
from .interface import Bounds, Content, Kind, Listed, Place, SourceError
from .sites import Feed, Sitemap

__all__ = [
    "KINDS", "Bounds", "Content", "Kind", "Listed", "Place", "SourceError",
    "current_key", "find_kind",
]  # fmt: skip


_ALL: tuple[Kind, ...] = (Folder(), Git(), Sitemap(), Feed(), Confluence(), Zendesk())
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})


def find_kind(name: str) -> Kind:
    kind = KINDS.get(name)
    if kind is None:
        raise SourceError(
            "kind", f"There is no kind {name[:50]!r}; there are: {', '.join(KINDS)}."
        )
    return kind


def current_key(kind: str, key: str) -> str:
    """Return a document's current key, given one that may be from an older version."""
    return article_address(key) if kind == Zendesk.name else key
