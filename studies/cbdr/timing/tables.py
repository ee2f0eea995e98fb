"""The comparison as tables, and as curves of accuracy against retrieval rate."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from qa.evaluation.report.svg_charts import (
    INK,
    Description,
    Drawing,
    draw_legend,
    draw_steps,
    house_style,
    panels,
    share_axes,
    styles,
    write_drawing,
)
from qa.evaluation.report.tables import TextTable, percent
from studies.figures import number, percent_with_interval, points, table
from studies.study import Claim

from .build import (
    ACCOUNTS,
    ALWAYS,
    CBDR,
    CHANCE,
    CTRLA,
    DH_ICL,
    LEVEL,
    NEVER,
    RATES,
)

Figures = Mapping[str, Any]
# The table in which each paper compares its decider.
_PAPER: Final = {CBDR: "Table 3", DH_ICL: "Table 1", CTRLA: "Tables 1 and 3"}


def tables(figures: Figures) -> Iterator[TextTable]:
    """Yield the tables of each account, the papers' account first."""
    for name in ACCOUNTS:
        account = figures["accounts"][name]
        yield _table(account, f"Retrieval rate and accuracy ({name})")
        yield _cost_table(account, f"Cost of deciding ({name})")
        yield _areas(account, figures["knowing"], f"Over all thresholds ({name})")
        yield _equal(account, f"At equal retrieval rates ({name})")
        yield _sets(account, f"By set: accuracy @ retrieval rate ({name})")


def notes(figures: Figures) -> list[str]:
    """Return what a reader must know to interpret the figures."""
    within = 100 * figures["within"]
    return [
        figures["protocol"],
        f"Thresholds were chosen on {figures['calibration']:,} questions, to retrieve as "
        f"little as keeps accuracy within {within:g} percentage points of its best there; all "
        f"figures are from {figures['test']:,} others.",
        "As published: the best note that was found is given to the model, whatever it is. "
        "Behind the gates, as this product answers: an entry whose question is asked again "
        "is shown word for word, and a question without near evidence is refused, which is "
        "right only for a question that nobody can answer.",
        "Right: the answer contains a reference; for TruthfulQA it is nearer to a true "
        "answer than to any false one (ROUGE-L).",
        "Cost is the cost of deciding per question, beyond generating the answer, at the "
        "threshold of the accuracy table: over all questions where it retrieves, over a "
        "sample where it does not. Passes and tokens are counted; times are of this run.",
        "Intervals are 95 %: Wilson's for a share, the paired bootstrap's for a difference. "
        f"A decider is ahead if McNemar's exact test says so at {LEVEL:g}, with Holm's "
        "correction over all pairs and rates of an account.",
    ]


def claims_of(figures: Figures) -> Iterator[Claim]:
    """Yield the gain of each decider at its threshold, and over all thresholds."""
    account = figures["accounts"][next(iter(ACCOUNTS))]
    for row in account["table"]:
        name = row["decider"]
        if name in (NEVER, ALWAYS):
            continue
        knowing = number(figures["knowing"][name]["auroc"])
        why = f"AUROC of knowing {knowing}."
        always, area = row["against_always"], account["areas"][name]
        yield Claim(
            f"{name}: accuracy against always retrieving, at its threshold "
            f"(retrieves {percent(row['retrieval_rate'])})",
            _PAPER.get(name, ""),
            always["difference"],
            always["difference_95"],
            row["questions"],
            why,
        )
        yield Claim(
            f"{name}: mean accuracy over all retrieval rates, against chance",
            _PAPER.get(name, ""),
            area["above_chance"],
            area["above_chance_95"],
            row["questions"],
            why,
        )


def _table(account: Figures, title: str) -> TextTable:
    rows = [
        (
            row["decider"],
            _threshold(row["threshold"], row["decider"]),
            percent(row["retrieval_rate"]),
            percent_with_interval(row["accuracy"], row["accuracy_95"]),
            _difference(row["against_never"]),
            _difference(row["against_always"]),
        )
        for row in account["table"]
    ]
    best = account["oracle"]
    accuracy = percent_with_interval(best["accuracy"], best["accuracy_95"])
    rows.append(("oracle", "", percent(best["retrieval_rate"]), accuracy, "", ""))
    heads = (
        "decider", "threshold", "retrieves", "accuracy", "vs. never", "vs. always",
    )  # fmt: skip
    return TextTable(title, heads, tuple(rows))


def _cost_table(account: Figures, title: str) -> TextTable:
    return table(
        title,
        account["table"],
        {
            "decider": lambda row: row["decider"],
            "prompt passes": lambda row: f"{row['cost']['prompt_passes']:.2f}",
            "tokens read": lambda row: f"{row['cost']['prompt_tokens']:.0f}",
            "tokens written": lambda row: f"{row['cost']['steps']:.1f}",
            "ms": lambda row: f"{row['cost']['milliseconds']:.0f}",
        },
    )


def _areas(account: Figures, knowing: Figures, title: str) -> TextTable:
    def above(row: tuple[str, Figures]) -> str:
        name, area = row
        gained = points(area["above_chance"], area["above_chance_95"])
        return "" if name == CHANCE else gained

    return table(
        title,
        account["areas"].items(),
        {
            "decider": lambda row: row[0],
            "mean accuracy": lambda row: f"{row[1]['area']:.3f}",
            "above chance, points": above,
            "AUROC of knowing": lambda row: number(
                knowing.get(row[0], {}).get("auroc")
            ),
        },
    )


def _equal(account: Figures, title: str) -> TextTable:
    pairs = account["equal_rates"]
    names = list(account["areas"])
    rows = []
    for name in names:
        cells = [name]
        for rate in RATES:
            own = [
                pair
                for pair in pairs
                if pair["retrieval_rate"] == rate
                and name in (pair["first"], pair["second"])
            ]
            cells += [_own_accuracy(own, name), _beaten(own, name)]
        rows.append(tuple(cells))
    heads = ["decider"]
    for rate in RATES:
        heads += [f"at {rate:.0%}", "ahead of"]
    return TextTable(title, tuple(heads), tuple(rows))


def _own_accuracy(pairs: Sequence[Figures], name: str) -> str:
    values = [
        pair["first_accuracy" if pair["first"] == name else "second_accuracy"]
        for pair in pairs
    ]
    return percent(values[0]) if values else "-"


def _beaten(pairs: Sequence[Figures], name: str) -> str:
    beaten = [
        pair["second"] if pair["first"] == name else pair["first"]
        for pair in pairs
        if pair["ahead"] == name
    ]
    return ", ".join(beaten) or "none"


def _sets(account: Figures, title: str) -> TextTable:
    names = [row["decider"] for row in account["table"]]
    rows = [
        (
            data_set,
            str(found[NEVER]["questions"]),
            *(
                f"{100 * found[name]['accuracy']:.0f}"
                if name in (NEVER, ALWAYS)
                else f"{100 * found[name]['accuracy']:.0f} "
                f"@ {100 * found[name]['retrieval_rate']:.0f}"
                for name in names
            ),
        )
        for data_set, found in account["sets"].items()
    ]
    return TextTable(title, ("set", "questions", *names), tuple(rows))


def _threshold(value: float | str | None, decider: str) -> str:
    if decider in (NEVER, ALWAYS):
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value or "always")


def _difference(found: Figures) -> str:
    return points(found["difference"], found["difference_95"])


# Curves of accuracy against retrieval rate, one for each decider.


def write_plots(figures: Mapping[str, Any], directory: Path) -> list[Path]:
    """Draw the curves of each account as SVG and PNG; return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for account, found in figures["accounts"].items():
        with house_style():
            name = f"retrieval-timing-{account.replace(' ', '-')}"
            drawing = _drawing(found, account, figures["test"])
            files += write_drawing(drawing, name, directory)
    return files


def _drawing(account: Mapping[str, Any], name: str, questions: int) -> Drawing:
    figure, (axes,) = panels(width=9.0)  # with room for the legend
    lines = {row["decider"]: row for row in account["table"]}
    never, always = lines[NEVER]["accuracy"], lines[ALWAYS]["accuracy"]
    summaries = []
    named = enumerate(account["curves"].items())
    for (place, (decider, curve)), style in zip(named, styles(), strict=False):
        area = account["areas"][decider]["area"]
        label = f"{decider} ({area:.3f})"
        rates, accuracies = curve["retrieval_rate"], curve["accuracy"]
        draw_steps(axes, rates, accuracies, label=label, place=place, style=style)
        chosen = lines[decider]
        axes.plot(
            chosen["retrieval_rate"], chosen["accuracy"], linestyle="",
            marker=style["marker"], markersize=11.0, color=style["color"],
            markerfacecolor="none", markeredgewidth=2.0,
        )  # fmt: skip
        summaries.append(
            f"{decider} {area:.3f}, and at its threshold {chosen['accuracy']:.1%} with "
            f"{chosen['retrieval_rate']:.1%} retrieved"
        )
    by_chance = account["areas"][CHANCE]["area"]
    axes.plot(
        [0, 1], [never, always], color=INK, linestyle=":",
        label=f"{CHANCE} ({by_chance:.3f})",
    )  # fmt: skip
    axes.set_xlabel("retrieval rate: share of the questions that retrieve evidence")
    axes.set_ylabel("accuracy: share of all questions answered correctly")
    highest = max(max(c["accuracy"]) for c in account["curves"].values())
    share_axes(axes, top=min(1.0, 1.15 * max(highest, always, 0.05)))
    draw_legend(axes, "decider (mean accuracy)")
    text = (
        f"{questions:,} questions, {name}. Never retrieving answers {never:.1%} correctly, "
        f"always {always:.1%}. Mean accuracy over all retrieval rates, higher is better: "
        f"{'; '.join(summaries)}; chance {by_chance:.3f}."
    )
    return figure, Description(f"Accuracy against retrieval rate, {name}", text)
