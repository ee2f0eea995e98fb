"""The headline report: one page with a verdict for each claim of each paper."""

from collections.abc import Iterator, Mapping, Sequence

from qa.evaluation.report.tables import TextTable, markdown_of
from studies.figures import points, table, with_interval
from studies.study import Claim

from .parts import BY_NAME, PARTS
from .stored import Result

NOTES = (
    "Each difference is measured on the same questions and has a 95 % interval; above "
    "0 the method is better. A claim gains if its whole interval is above 0, and harms "
    "if the whole interval is below.",
    "Verdicts are not corrected for multiple comparisons: of forty claims without an "
    "effect, about one gains and one harms by chance.",
    "Differences are in percentage points unless the row says AUROC.",
    "A verdict applies to this model: a method that gains nothing with a small one may "
    "gain with a larger one, which the same command measures.",
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
    """Return the whole report as Markdown: verdicts, then the tables of each part."""
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
            # The part's title is replaced by ours, and its headings move down a level.
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
