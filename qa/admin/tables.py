from collections.abc import Iterable

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


def table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> SafeString:
    """Return a plain table; what stands in the cells is escaped."""
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        ((format_html_join("", '<td class="pr-6 py-1">{}</td>', ((c,) for c in row)),) for row in rows),
    )  # fmt: skip
    head = format_html_join(
        "", '<th class="pr-6 py-1 text-left">{}</th>', ((name,) for name in heads)
    )
    return format_html(
        '<table class="tabular-nums"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>',
        head,
        body,
    )
