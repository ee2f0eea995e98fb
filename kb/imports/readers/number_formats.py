"""Numbers of a workbook as its formats show them: percentages, money, fixed decimals."""

import re

# What stands around the digits: words in quotes, escaped signs, a currency in brackets, and
# room for a sign or up to the cell's edge, which shows nothing.
_PARTS = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]|'
    r"\[[^\]]*\]|[_*]."
)
_POWER = re.compile(r"E[+-]")
_DIGITS = re.compile(r"(?P<whole>[#0?][#0?,]*)(?:\.(?P<decimals>[0#?]+))?")
# Words of a format ("days") are mostly in the column's heading too.
_UNIT = re.compile(r"[%$\u00a2-\u00a5\u20a0-\u20cf]|\b(?:[A-Z]{3}|kr|Fr)\b")


def shown(value: float, number_format: str) -> str:
    """Return a number as a cell of this format shows it, with all digits that it has."""
    positive = number_format.split(";")[0]
    if "%" in _PARTS.sub("", positive):
        return f"{value * 100:.10g}%"
    text = _PARTS.sub(lambda part: "".join(filter(None, part.groups())), positive)
    digits = _DIGITS.search(text)
    if digits is None or _POWER.search(text):
        return f"{value:.15g}"
    before, after = text[: digits.start()].strip(), text[digits.end() :].strip()
    places = len(re.sub(r"[#?]", "", digits["decimals"] or ""))
    if round(value, places) != value:  # it would be rounded
        number = f"{value:.15g}"
    else:
        separator = "," if "," in digits["whole"] else ""
        number = f"{abs(value):{separator}.{places}f}"
        number = f"-{number}" if value < 0 else number
    if not _UNIT.search(f"{before} {after}"):
        return number
    sign, number = ("-", number[1:]) if number.startswith("-") else ("", number)
    gap = " " if before[-1:].isalpha() else ""
    return f"{sign}{before}{gap}{number} {after}".strip()
