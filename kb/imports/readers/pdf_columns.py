"""Tables without rules, and columns of text, found by the gaps between lines."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from .pdf_parts import Line, Part, Table, has_headings

Row = list[Line]  # lines at the same height, from the left
Gap = tuple[float, float]

_NARROWEST = 0.5  # gap between columns, in line heights
_FARTHEST = 1.8  # distance between rows, likewise
_WORDS_OF_TEXT = 4  # per line in a column of text, but seldom in a table
_ALIGNED = 2.0  # points by which aligned positions may differ


def arranged(parts: Sequence[Part]) -> list[Part]:
    """Return a page's parts in reading order, with tables that have no rules."""
    order = list(parts)
    lines = [part for part in parts if isinstance(part, Line) and part.size]
    if _is_in_disorder(lines):
        order.sort(key=lambda part: part.top)
    for rows, gaps in _runs(_rows(lines)):
        if not (is_text := _is_text(rows, gaps)):
            rows = _without_below(rows, gaps)
        inside = {id(line) for row in rows for line in row}
        its = [part for part in order if id(part) in inside]
        begin = next(at for at, part in enumerate(order) if id(part) in inside)
        instead: list[Part]
        if is_text:
            columns = [_column(line, gaps) for line in its if isinstance(line, Line)]
            if sum(a != b for a, b in pairwise(columns)) <= 2 * len(gaps):
                continue  # in reading order already
            instead = [
                line
                for column in range(len(gaps) + 1)
                for row in rows
                for line in row
                if _column(line, gaps) == column
            ]
        elif _is_table(rows, gaps):
            instead = [_table(rows, gaps)]
        else:
            continue
        rest = [part for part in order if id(part) not in inside]
        order = [*rest[:begin], *instead, *rest[begin:]]
    return order


def _is_in_disorder(lines: Sequence[Line]) -> bool:
    """Return whether lines often precede lines that are above them."""
    back = sum(b.bottom < a.top and a.shares_width(b) for a, b in pairwise(lines))
    return back > max(2, len(lines) / 5)


def _rows(lines: Sequence[Line]) -> list[Row]:
    rows: list[Row] = []
    for line in sorted(lines, key=lambda line: (line.top, line.x0)):
        if rows and rows[-1][0].is_beside(line):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.x0) for row in rows]


def _runs(rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], list[Gap]]]:
    """Yield runs of neighbouring rows that leave the same gaps free."""
    at = 0
    while at < len(rows):
        gaps = [(a.x1, b.x0) for a, b in pairwise(rows[at]) if b.x0 > a.x1]
        end = at + 1
        while (
            gaps and end < len(rows) and _distance(*rows[end - 1 : end + 1]) < _FARTHEST
        ):
            left = _left_free(gaps, rows[end])
            # A row with more gaps than it shares begins something else.
            own = len(rows[end]) - 1
            if not left or len(left) < max(min(len(gaps), own), own - 1):
                break
            gaps = left
            end += 1
        run = rows[at:end]
        # A run that ends with the page may end in the rest of a first column.
        run = run if end == len(rows) else _without_below(run, gaps)
        if gaps and len(run) > 1:
            yield run, gaps
        at += len(run)


def _distance(above: Row, below: Row) -> float:
    """Return the space between two rows, in heights of the lower line."""
    bottom = max(line.bottom for line in above)
    return (min(line.top for line in below) - bottom) / below[0].height


def _left_free(gaps: Sequence[Gap], row: Row) -> list[Gap]:
    """Return what a row leaves of gaps; nothing if its only line crosses one."""
    left = []
    for begin, end in gaps:
        for line in row:
            if line.x0 < end and line.x1 > begin:
                if line.x0 + line.x1 < begin + end:
                    begin = max(begin, line.x1)
                else:
                    end = min(end, line.x0)
        if end - begin >= _NARROWEST * row[0].height:
            left.append((begin, end))
        elif len(row) == 1:
            return []
    return left


def _without_below(rows: Sequence[Row], gaps: Sequence[Gap]) -> Sequence[Row]:
    """Return rows without trailing ones that are only below the first column."""
    end = len(rows)
    while end > 1:
        row, above = rows[end - 1], rows[end - 2]
        if len(row) > 1 or _column(row[0], gaps) > 0:
            break
        if _distance(above, row) <= _NARROWEST and row[0].size <= 1.1 * above[0].size:
            break
        end -= 1
    return rows[:end]


def _column(line: Line, gaps: Sequence[Gap]) -> int:
    return bisect_right([begin + end for begin, end in gaps], line.x0 + line.x1)


def _columns(rows: Sequence[Row], gaps: Sequence[Gap]) -> list[list[Line]]:
    columns: list[list[Line]] = [[] for _ in range(len(gaps) + 1)]
    for row in rows:
        for line in row:
            columns[_column(line, gaps)].append(line)
    return columns


def _is_text(rows: Sequence[Row], gaps: Sequence[Gap]) -> bool:
    words = [
        median(len(line.text.split()) for line in column)
        for column in _columns(rows, gaps)
        if column
    ]
    return len(rows) > 2 and sum(each >= _WORDS_OF_TEXT for each in words) > 1


def _is_table(rows: Sequence[Row], gaps: Sequence[Gap]) -> bool:
    several = [row for row in rows if len(row) > 1]
    on_lines = sum(
        max(line.bottom for line in row) - min(line.bottom for line in row) < _ALIGNED
        for row in several
    )
    return (
        len(several) > (1 if len(gaps) > 1 else 2)
        and on_lines > 0.8 * len(several)
        and all(column and _is_aligned(column) for column in _columns(several, gaps))
    )


def _is_aligned(column: Sequence[Line]) -> bool:
    for places in (
        [line.x0 for line in column],
        [line.x1 for line in column],
        [(line.x0 + line.x1) / 2 for line in column],
    ):
        middle = median(places)
        near = sum(abs(place - middle) < _ALIGNED for place in places)
        if near >= 0.7 * len(places):
            return True
    return False


def _table(rows: Sequence[Row], gaps: Sequence[Gap]) -> Table:
    distances = [0.0, *(_distance(a, b) for a, b in pairwise(rows))]
    widest = max(distances)
    grouped: list[list[Row]] = []
    for row, distance in zip(rows, distances, strict=True):
        filled = {_column(line, gaps) for line in row}
        is_tight = widest > 0.3 and distance < 0.5 * widest
        goes_on = len(filled) <= len(gaps) and (
            is_tight or (0 not in filled and len(filled) <= max(1, len(gaps) // 2))
        )
        if grouped and goes_on:
            grouped[-1].append(row)
        else:
            grouped.append([row])
    cells = [_columns(group, gaps) for group in grouped]
    return Table(
        tuple(
            tuple("\n".join(line.text for line in cell) for cell in row)
            for row in cells
        ),
        tuple(min(line.x0 for line in column) for column in _columns(rows, gaps)),
        min(line.top for line in rows[0]),
        max(line.bottom for line in rows[-1]),
        is_headed=has_headings(cells, default=False),
    )
