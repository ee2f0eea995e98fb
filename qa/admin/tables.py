from collections.abc import Iterable

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


def table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> SafeString:
    """Return a plain table, or "none"; what stands in the cells is escaped."""
    cell = '<td class="py-1 pr-6 align-top">{}</td>'
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        ((format_html_join("", cell, ((each,) for each in row)),) for row in rows),
    )
    if not body:
        return SafeString("none")
    head = format_html_join(
        "", '<th class="py-1 pr-6 text-left">{}</th>', ((name,) for name in heads)
    )
    return format_html(
        '<div class="overflow-x-auto"><table class="tabular-nums w-full"><thead><tr>{}'
        "</tr></thead><tbody>{}</tbody></table></div>",
        head,
        body,
    )
