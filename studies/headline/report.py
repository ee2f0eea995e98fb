"""The headline report: one page with a verdict for each claim of each paper."""

from collections.abc import Iterator, Mapping, Sequence

from qa.evaluation.report.tables import TextTable, markdown_of
from studies.figures import points, table, with_interval
from studies.study import Claim

from .parts import BY_NAME, PARTS
from .stored import Result

NOTES = (
    "Each difference is of the same questions, with its 95 % interval: above 0 the method "
    "is better. A row gains where the whole interval is above 0, and harms where it is "
    "below.",
    "Verdicts are not corrected for their number: of forty claims without an effect one "
    "gains and one harms by chance.",
    "Percentage points unless the row says AUROC.",
    "A verdict is about this model: a method that gains nothing with a small one may gain "
    "with a larger one, which the same command measures.",
)


def verdict_table(results: Mapping[str, Result]) -> TextTable:
    rows = [
        claim
        for part in PARTS
        if part.name in results
        for claim in results[part.name].claims
    ]
    return table(
        "Verdicts",
        rows,
        {
            "claim": lambda claim: claim.name,
            "paper": lambda claim: claim.paper,
            "verdict": lambda claim: claim.verdict,
            "why not": lambda claim: claim.reason,
            "difference (95 %)": _difference,
            "of": lambda claim: f"{claim.count:,}",
        },
        words=4,
    )


def status_table(results: Mapping[str, Result], wanted: Sequence[str]) -> TextTable:
    def status(name: str) -> str:
        if name not in results:
            return "not measured yet"
        result = results[name]
        return result.fault or f"measured {result.made_on}"

    return TextTable(
        "Parts",
        ("part", "tables", "status", "tables in full"),
        tuple(
            (
                name,
                BY_NAME[name].method,
                status(name),
                results[name].page or "below" if name in results else "",
            )
            for name in wanted
        ),
        words=4,
    )


def report(
    heading: Mapping[str, object], results: Mapping[str, Result], wanted: Sequence[str]
) -> str:
    """Return the whole report as Markdown: verdicts, and each part's tables."""
    page = markdown_of(
        "Headline report",
        heading,
        [verdict_table(results), status_table(results, wanted)],
        NOTES,
    )
    return "\n".join([page, *_details(results)])


def _details(results: Mapping[str, Result]) -> Iterator[str]:
    for part in PARTS:
        result = results.get(part.name)
        if result and result.markdown:
            yield f"## {part.method}\n"
            # Its own headings one level down, and its title is ours.
            _, _, rest = result.markdown.partition("\n")
            yield "\n".join(
                f"#{line}" if line.startswith("#") else line
                for line in rest.splitlines()
            )
            yield ""


def _difference(claim: Claim) -> str:
    if claim.unit == "points":
        return points(claim.value, claim.interval)
    shown = with_interval(claim.value, claim.interval, 3, sign="+")
    return f"{shown} {claim.unit}"
