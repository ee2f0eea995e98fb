"""Measure what monitoring a steered answer costs on top of writing it.

    python benchmarks/monitoring.py [--questions N]

Runs on the configured white-box language model without its adapter, with the active
directions. Both sides write the same sentence, alternating on the same question in one
run; the monitored one also projects every token on the directions of the monitored
blocks and finds its new words. The result is the median of the per-question ratios. The
exit status is 1 if it is above the limit.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
django.setup()

from django.conf import settings  # noqa: E402

from benchmarks.abstention import QUESTIONS, SUBJECTS, Compared, compared  # noqa: E402
from probes.directions.sets import DirectionSet  # noqa: E402
from qa.inference.closed_book_form import ClosedBookForm  # noqa: E402
from qa.inference.monitored_writer import SteeredWriter, monitored_writer  # noqa: E402
from qa.pipeline.monitored_words import new_words, unconfident, word_keys  # noqa: E402

LIMIT = 1.05
STEERING = 0.3


def sides(
    writer: SteeredWriter, question: str
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return functions that write one steered sentence, plain and monitored."""
    prompt = ClosedBookForm(writer.model).prompt_ids(question)

    def plain() -> object:
        return writer.continue_from(prompt, (), steering=STEERING, is_monitored=False)

    def watched() -> object:
        draft = writer.write(question, (), (), steering=STEERING)
        known = word_keys([question])
        words = new_words(draft.text, draft.tokens, draft.confidences, known=known)
        return unconfident(words, 0.0)

    return plain, watched


def measure(writer: SteeredWriter, count: int) -> tuple[Compared, float]:
    """Return the comparison, and the median number of tokens of a sentence."""
    asked = [
        f"{SUBJECTS[number % len(SUBJECTS)]}: {QUESTIONS[number % len(QUESTIONS)]} "
        f"({number})"
        for number in range(count)
    ]
    written = [writer.write(each, (), (), steering=STEERING) for each in asked[:8]]
    found = compared(
        "watched / plain, both steered", [sides(writer, each) for each in asked], LIMIT
    )
    return found, statistics.median(len(draft.tokens) for draft in written)


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--questions", type=int, default=24)
    count = parser.parse_args().questions
    writer = monitored_writer()
    found, tokens = measure(writer, count)
    directions: DirectionSet = writer.directions
    print(
        f"{writer.model.name}, {writer.model.dtype}, {settings.TORCH_THREADS} threads; "
        f"{len(directions.steered)} blocks steered and {len(directions.monitored)} "
        f"watched of {directions.blocks}; {count} questions, {tokens:.0f} tokens written"
    )
    print(
        f"{found.what}: {found.first:.1f} ms plain, {found.second:.1f} ms watched, "
        f"ratio {found.ratio:.3f} (limit {LIMIT:.2f})"
    )
    return int(found.ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
