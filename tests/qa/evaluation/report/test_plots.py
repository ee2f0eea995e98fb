"""Plots: the same bytes for the same rows, told in words too."""

import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from qa.evaluation.report.plots import plot_svg, write_plots
from qa.evaluation.report.svg_charts import INK, styles
from qa.exceptions import EvaluationDataError
from tests.qa.evaluation.judged_rows import make_judged, make_shadow_run
from tests.qa.pipeline.values import make_policy

pytestmark = pytest.mark.slow

SHADOW = make_policy(hard_refusal=False, soft_refusal=False, support_check=False)
PLOTS = {
    "risk-against-coverage": "risk_coverage",
    "precision-against-recall": "precision_recall",
    "reliability": "reliability",
    "refusals-and-accuracy-against-alpha": "refusals_against_alpha",
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_is_an_svg_that_says_in_words_what_it_shows(name):
    root = ET.fromstring(plot_svg(PLOTS[name], make_shadow_run(120), SHADOW))

    assert root.tag == f"{SVG}svg"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{name}-title {name}-text"
    assert title is not None
    assert title.get("id") == f"{name}-title"
    assert description is not None
    assert "0" in (description.text or "")
    # Text is text, not outlines of letters.
    assert len(list(root.iter(f"{SVG}text"))) > 8


@pytest.mark.parametrize("name", PLOTS)
def test_the_same_rows_are_the_same_bytes(name):
    one, other = (plot_svg(PLOTS[name], make_shadow_run(60), SHADOW) for _ in range(2))

    assert one == other


def test_every_plot_is_written_as_svg_and_png(tmp_path):
    files = write_plots(make_shadow_run(60), tmp_path / "plots", policy=SHADOW)

    assert sorted(file.name for file in files) == [
        f"{name}.{kind}"
        for name in (
            "precision-recall",
            "refusals-against-alpha",
            "reliability",
            "risk-coverage",
        )
        for kind in ("png", "svg")
    ]
    assert all(
        file.read_bytes().startswith(b"\x89PNG")
        for file in files
        if file.suffix == ".png"
    )


def test_plots_that_the_rows_do_not_allow_are_left_out(tmp_path):
    assert write_plots([make_judged("a", signals={})], tmp_path, policy=None) == []
    for name in PLOTS.values():
        with pytest.raises(EvaluationDataError):
            plot_svg(name, [make_judged("a", signals={})], SHADOW)


def test_answers_that_are_all_right_have_no_precision_recall_curve():
    with pytest.raises(EvaluationDataError, match="both kinds"):
        plot_svg("precision_recall", [make_judged("a"), make_judged("b")], None)


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_colour_reads_on_a_light_and_on_a_dark_page():
    chosen = [style["color"] for style, _ in zip(styles(), range(7), strict=False)]

    assert len(set(chosen)) == 7
    for colour in (*chosen, INK):
        own, dark = luminance(colour), luminance("#14171c")
        assert (1.05) / (own + 0.05) >= 3, colour
        assert (own + 0.05) / (dark + 0.05) >= 3, colour


def test_nothing_is_loaded_for_drawing_until_something_is_drawn():
    program = (
        "import django; django.setup();"
        "import sys, qa.evaluation.report.plots;"
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
