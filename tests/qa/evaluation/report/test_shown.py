"""A report in the terminal and as Markdown."""

from io import StringIO

import pytest
from rich.console import Console

from qa.evaluation.report.build import build_report
from qa.evaluation.report.tables import as_markdown, print_tables, tables
from tests.qa.evaluation.judged_rows import make_judged, make_shadow_run
from tests.qa.pipeline.values import make_policy

SHADOW = make_policy(hard_refusal=False, soft_refusal=False, support_check=False)


def printed(rows, **options):
    out = StringIO()
    console = Console(file=out, width=220)
    report = build_report(rows, policy=SHADOW)
    print_tables(tables(report, **options), report["notes"], console)
    return out.getvalue()


def test_the_terminal_shows_rates_gates_and_signals():
    text = printed(make_shadow_run(60))

    for part in ("false answers", "hard refusal alone", "AURC", "risk at 20%", "Brier"):
        assert part in text
    assert "7 groups" in text


def test_gates_are_in_their_order_whatever_the_order_they_are_stored_in():
    report = build_report(make_shadow_run(60), policy=SHADOW)
    gates = report["ablations"]["gates"]
    report["ablations"]["gates"] = dict(sorted(gates.items()))

    (shown,) = [t for t in tables(report) if t.title == "Each gate's part"]

    assert [row[0] for row in shown.rows] == [*gates]


def test_what_came_out_wrong_is_shown_with_its_question():
    rows = [
        make_judged("fee", is_answerable=False, is_correct=False),
        make_judged("fine"),
    ]
    text = printed(rows, questions={"fee": "What [b]costs[/b] it?"})

    assert "What [b]costs[/b] it?" in text
    assert "fine" not in text


def test_a_refusal_of_multiple_choice_is_not_wrong():
    rows = [
        make_judged("masked", is_answerable=None, is_correct=False, is_answered=False),
        make_judged("mistaken", is_answerable=None, is_correct=False),
    ]
    text = printed(rows)

    assert "mistaken" in text
    assert "masked  " not in text.partition("Wrong")[2]


def test_groups_never_make_an_interval_surer():
    rows = [make_judged(f"{n}", group=f"{n % 2}") for n in range(20)]

    # All 20 are right in both groups: Wilson's interval stands.
    assert "83.9 % to 100.0 %" in printed(rows)


def test_markdown_holds_the_heading_and_whole_tables():
    text = as_markdown(
        build_report(make_shadow_run(60), policy=SHADOW),
        {"suite": "squad2", "model": "a|b <script>"},
    )

    assert r"- model: a\|b \<script\>" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.replace(r"\|", "").count("|") for line in tables}
    assert len(tables) > 30
    assert min(widths) >= 4


@pytest.mark.parametrize("rows", [[], [make_judged("a", signals={})]])
def test_little_is_shown_as_little(rows):
    assert "Rates" in printed(rows)
    assert "AUROC" not in printed(rows)
    assert "# Evaluation" in as_markdown(build_report(rows, policy=None), {})
