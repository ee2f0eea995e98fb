"""Accuracy against retrieval rate, a curve for each decider."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qa.evaluation.report.curves import (
    Drawing,
    draw_legend,
    draw_steps,
    share_axes,
    write_drawing,
)
from qa.evaluation.report.figure import INK, Description, house_style, panels, styles

from .names import ALWAYS, CHANCE, NEVER


def write_plots(figures: Mapping[str, Any], directory: Path) -> list[Path]:
    """Draw the curves of each account, as SVG and PNG; return the files."""
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
    told = []
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
        told.append(
            f"{decider} {area:.3f}, and at its threshold {chosen['accuracy']:.1%} with "
            f"{chosen['retrieval_rate']:.1%} retrieved"
        )
    by_chance = account["areas"][CHANCE]["area"]
    axes.plot(
        [0, 1], [never, always], color=INK, linestyle=":",
        label=f"{CHANCE} ({by_chance:.3f})",
    )  # fmt: skip
    axes.set_xlabel(
        "retrieval rate: share of the questions that evidence is looked for"
    )
    axes.set_ylabel("accuracy: share of all questions answered rightly")
    highest = max(max(c["accuracy"]) for c in account["curves"].values())
    share_axes(axes, top=min(1.0, 1.15 * max(highest, always, 0.05)))
    draw_legend(axes, "decider (mean accuracy)")
    text = (
        f"{questions:,} questions, {name}. Never retrieving answers {never:.1%} rightly, "
        f"always {always:.1%}. Mean accuracy over all retrieval rates, higher is better: "
        f"{'; '.join(told)}; chance {by_chance:.3f}."
    )
    return figure, Description(f"Accuracy against retrieval rate, {name}", text)
