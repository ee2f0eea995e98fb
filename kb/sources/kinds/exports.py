"""Unpacked exports below a directory that the operator allows.

Confluence: a space exported as HTML (one file per page, `index.html` names the space)
or as XML (`entities.xml`). Zendesk: responses of the help centre's API for articles, as
JSON files.
"""

import hashlib
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from lxml import etree, html
from pydantic import BaseModel, ConfigDict, ValidationError

from .files import allowed_folder, files_below, read_file
from .interface import RESTRICTED, Bounds, Content, Listed, Place, SourceError
from .web import child_text

_ENTITIES = "entities.xml"
_MAIN = "main-content"
_CDATA = re.compile(r"<ac:plain-text-(link-)?body>\s*<!\[CDATA\[")
# An export writes "]] >", since the body is inside a CDATA section itself.
_CDATA_END = re.compile(r"\]\] ?>\s*</ac:plain-text-(?:link-)?body>")
_CDATA_GOES_ON = re.compile(r"\]\] ?><!\[CDATA\[")
_TITLE_IN_ADDRESS = re.compile(r"(/articles/[0-9]+)-.*", re.DOTALL)


class _Export:
    lists_all = True

    def check_address(self, address: str) -> None:
        allowed_folder(address)


class Confluence(_Export):
    name = "confluence"
    label = "a Confluence export"
    address_help = "the folder of the unpacked HTML or XML export of a space"

    @contextmanager
    def open(self, place: Place) -> Iterator[Iterator[Listed]]:
        root = allowed_folder(place.address)
        names = [path.name for path in files_below(root, place.bounds)]
        if _ENTITIES in names:
            yield _entities(root, place.bounds)
        elif "index.html" in names:
            yield _html_pages(root, place.bounds)
        else:
            raise SourceError(
                "address",
                f"There is neither {_ENTITIES} nor index.html below {place.address!r}; "
                "name the folder of an unpacked export.",
            )


def _html_pages(root: Path, bounds: Bounds) -> Iterator[Listed]:
    """Yield the pages of an HTML export, one folder for each space."""
    for path in files_below(root, bounds):
        if path.suffix != ".html" or path.name == "index.html":
            continue
        found = (root / path).lstat()
        yield Listed(
            # A page that is renamed keeps its number: "Title_12345.html".
            key=f"{path.parent.as_posix()}/{path.stem.rpartition('_')[2]}",
            marker=f"{found.st_mtime_ns} {found.st_size}",
            # The folder, which an export names after the space's key.
            groups=(path.parent.name or root.name,),
            read=lambda known, path=path: _html_page(root, path, bounds),  # type: ignore[misc]  # its default
        )


def _html_page(root: Path, path: PurePosixPath, bounds: Bounds) -> Content:
    """Return a page without its frame: breadcrumbs, author, attachments, footer."""
    content = read_file(root, path, bounds)
    page = _parsed(content)
    title = (page.findtext(".//title") or path.stem).partition(" : ")
    main = page.get_element_by_id(_MAIN, None)
    if main is None:
        raise SourceError("file", "It has no part with the id main-content.")
    return _content((title[2] or title[0]).strip(), _markup(main))


def _parsed(content: bytes) -> html.HtmlElement:
    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False)
    try:
        return html.document_fromstring(content, parser)
    except etree.LxmlError as error:
        raise SourceError("file", f"The page cannot be read: {error}.") from error


def _markup(element: html.HtmlElement) -> str:
    """Return an element as HTML, without parts that only macros and scripts read."""
    for each in list(element.iter("ac:parameter", "script", "style")):
        each.drop_tree()
    return str(etree.tostring(element, encoding="unicode", method="html"))


def _content(title: str, body: str) -> Content:
    page = html.document_fromstring("<html><head><title></title></head><body/></html>")
    page.find(".//title").text = title
    head = etree.tostring(page.find(".//title"), encoding="unicode", method="html")
    whole = f"<html><head>{head}</head><body>{body}</body></html>".encode()
    return Content(whole, "page.html")


@dataclass(slots=True)
class _Space:
    """The pages, spaces and labels of an XML export, by their ids."""

    titles: dict[str, str] = field(default_factory=dict)
    spaces: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    labelled: defaultdict[str, list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )
    parents: dict[str, str] = field(default_factory=dict)
    restricted: set[str] = field(default_factory=set)

    def groups(self, page: str) -> tuple[str, ...]:
        """Return a page's space and labels, and `RESTRICTED` if not all may see it."""
        labels = [self.labels.get(each, "") for each in self.labelled[page]]
        found = [self.keys.get(self.spaces.get(page, ""), ""), *labels]
        seen: set[str] = set()
        while page and page not in seen:  # restrictions also apply to the pages below
            if page in self.restricted:
                return (*filter(None, found), RESTRICTED)
            seen.add(page)
            page = self.parents.get(page, "")
        return tuple(filter(None, found))


def _entities(root: Path, bounds: Bounds) -> Iterator[Listed]:
    path = next(each for each in files_below(root, bounds) if each.name == _ENTITIES)
    space = _read_entities(read_file(root, path, bounds, is_document=False))
    for number, title in space.titles.items():
        body = _with_code(space.bodies.get(number, ""))
        yield Listed(
            key=number,
            title=title,
            marker=_digest(title, body),
            groups=space.groups(number),
            read=lambda known, title=title, body=body: _content(  # type: ignore[misc]  # its defaults
                title, _markup(_parsed(f"<div>{body}</div>".encode()))
            ),
        )


def _with_code(body: str) -> str:
    """Write CDATA in a body as HTML, since an HTML parser does not read CDATA."""
    *parts, rest = _CDATA_END.split(body)
    written = []
    for part in parts:
        if begin := _CDATA.search(part):
            tag = "span" if begin[1] else "pre"
            text = escape(_CDATA_GOES_ON.sub("", part[begin.end() :]))
            part = f"{part[: begin.start()]}<{tag}>{text}</{tag}>"
        written.append(part)
    return "".join((*written, rest))


def _read_entities(content: bytes) -> _Space:
    """Read the rows of an XML export; each is an object with an id and properties."""
    space = _Space()
    try:
        rows = etree.iterparse(
            io.BytesIO(content),
            tag="object",
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
        )
        for _, row in rows:
            _take_row(space, row)
            row.clear()
    except etree.LxmlError as error:
        raise SourceError(
            "address", f"{_ENTITIES} is not valid XML: {error}."
        ) from error
    if rows.root.getroottree().docinfo.doctype:
        raise SourceError(
            "address", f"{_ENTITIES} declares a document type, which is not read."
        )
    return space


def _take_row(space: _Space, row: etree._Element) -> None:
    number = child_text(row, "id")
    said = {each.get("name", ""): each for each in row if each.tag == "property"}

    def text(name: str) -> str:
        return "".join(said[name].itertext()).strip() if name in said else ""

    match row.get("class"):
        # Earlier versions and drafts are pages, too.
        case "Page" | "BlogPost" if not text("originalVersion") and text(
            "contentStatus"
        ) in ("", "current"):
            space.titles[number] = text("title")
            space.spaces[number] = text("space")
            space.parents[number] = text("parent")
        case "Space":
            space.keys[number] = text("key")
        case "BodyContent":
            space.bodies[text("content")] = text("body")
        case "Label" if text("namespace") in ("", "global"):  # not a person's own
            space.labels[number] = text("name")
        case "Labelling":
            space.labelled[text("content")].append(text("label"))
        case "ContentPermissionSet" if text("type").lower() == "view":
            space.restricted.add(text("owningContent"))
        case _:
            pass


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    id: int


class _Named(_Row):
    name: str = ""
    category_id: int | None = None


class _Article(_Row):
    title: str = ""
    body: str | None = None
    draft: bool = False
    locale: str = ""
    html_url: str = ""
    section_id: int | None = None
    user_segment_id: int | None = None
    user_segment_ids: list[int] | None = None
    label_names: list[str] = []
    updated_at: str = ""


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    articles: list[_Article]
    sections: list[_Named] = []
    categories: list[_Named] = []


class Zendesk(_Export):
    name = "zendesk"
    label = "a Zendesk help centre export"
    address_help = (
        "the folder of the JSON files returned by /api/v2/help_center/articles.json"
        "?include=sections,categories, one file per page"
    )

    @contextmanager
    def open(self, place: Place) -> Iterator[Iterator[Listed]]:
        root = allowed_folder(place.address)
        paths = [
            path
            for path in files_below(root, place.bounds)
            if path.suffix.lower() == ".json"
        ]
        if not paths:
            raise SourceError("address", f"There is no JSON below {place.address!r}.")
        yield _articles([_answer(root, path, place.bounds) for path in paths])


def _answer(root: Path, path: PurePosixPath, bounds: Bounds) -> _Answer:
    try:
        found: Any = json.loads(read_file(root, path, bounds, is_document=False))
        return _Answer.model_validate(found)
    except (ValueError, RecursionError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise SourceError(
            "address", f"{path} is not a response of Zendesk's API: {said}."
        ) from error


def article_address(address: str) -> str:
    """Return an article's address without its title, which leads to the same page."""
    return _TITLE_IN_ADDRESS.sub(r"\1", address)


def _articles(answers: list[_Answer]) -> Iterator[Listed]:
    sections = {each.id: each for answer in answers for each in answer.sections}
    categories = {each.id: each for answer in answers for each in answer.categories}
    for answer in answers:
        for article in answer.articles:
            if not article.draft:
                yield _article(article, sections, categories)


def _article(
    article: _Article, sections: Mapping[int, _Named], categories: Mapping[int, _Named]
) -> Listed:
    section = sections.get(article.section_id or 0)
    category = categories.get((section and section.category_id) or 0)
    names = [each.name for each in (category, section) if each and each.name]
    groups = [*names, "/".join(names), *article.label_names]
    segments = [article.user_segment_id, *(article.user_segment_ids or ())]
    if any(each is not None for each in segments):
        groups.append(RESTRICTED)
    return Listed(
        key=article_address(article.html_url) or f"{article.id}/{article.locale}",
        title=article.title,
        marker=_digest(article.title, article.body or ""),
        groups=tuple(groups),
        read=lambda known: _content(article.title, article.body or ""),
    )
