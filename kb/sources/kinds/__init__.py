"""The kinds of sources that can be followed; a further one is a line of `KINDS`.

A kind lists all documents that there are, cheaply, and reads one only when it is asked to:
one list says what is new, what may have changed and what is gone. It holds no state of its
own, writes nothing and knows no entry.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from .interface import Bounds, Content, Kind, Listed, Place, SourceError

__all__ = [
    "KINDS", "Bounds", "Content", "Kind", "Listed", "Place", "SourceError", "find_kind",
]  # fmt: skip


def _kinds(*paths: str) -> Mapping[str, Kind]:
    found: dict[str, Kind] = {}
    for path in paths:
        module, _, name = path.rpartition(".")
        kind: Kind = getattr(import_module(f"{__name__}.{module}"), name)()
        found[kind.name] = kind
    return MappingProxyType(found)


KINDS = _kinds(
    "files.Folder",
    "git.Git",
    "sites.Sitemap",
    "sites.Feed",
    "exports.Confluence",
    "exports.Zendesk",
)


def find_kind(name: str) -> Kind:
    kind = KINDS.get(name)
    if kind is None:
        raise SourceError(
            "kind", f"There is no kind {name[:50]!r}; there are: {', '.join(KINDS)}."
        )
    return kind
