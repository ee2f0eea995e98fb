"""Measure how well follow-ups are rewritten as standalone questions.

    python -m benchmarks.follow_ups [--files own.tsv held_out.tsv] [--show]
    python -m benchmarks.follow_ups --dialogs questions.jsonl

Each row holds a desk of `qa/training/support_desks`, a question, the text typed after
it, and the accepted standalone questions, none if the text stands on its own and must
stay as typed. Articles, case and punctuation are ignored. Rewritings are chosen by form
alone, and by the nearest entry of the desk according to the configured embedder. For
doc2dial's dialogs (Feng et al., EMNLP 2020) it counts the rewritten last turns and
prints a sample.
"""

import argparse
import json
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import django
import numpy as np

from qa.pipeline.follow_up import standalone

HERE = Path(__file__).parent
_DESKS = HERE.parents[1] / "qa" / "training" / "support_desks"
_ARTICLES = frozenset(
    [
        "a",
        "an",
        "the",
        "my",
        "your",
        "our",
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "einen",
        "einem",
        "einer",
    ]
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", nargs="+", default=["own.tsv", "held_out.tsv"])
    parser.add_argument("--show", action="store_true", help="print wrong rewritings")
    parser.add_argument("--dialogs", type=Path, help="doc2dial's questions.jsonl")
    options = parser.parse_args()
    django.setup()
    if options.dialogs:
        read_dialogs(options.dialogs)
        return
    print(
        "rows                right by form  by knowledge   touched by form  by knowledge  ms"
    )
    for name in options.files:
        measure(name, show=options.show)


def measure(name: str, *, show: bool) -> None:
    rows = [line.split("\t") for line in (HERE / name).read_text().splitlines()[1:]]
    counts = {"form": [0, 0], "known": [0, 0]}
    wanted_rows = sum(bool(row[3:] and row[3]) for row in rows)
    spent = 0.0
    for desk, earlier, typed, *rest in rows:
        wanted = (
            {plain(each) for each in rest[0].split(" | ")}
            if rest and rest[0]
            else set()
        )
        for way, distances in (("form", None), ("known", nearest(desk))):
            began = time.perf_counter()
            made = standalone(typed, earlier, distances=distances)
            spent += time.perf_counter() - began if way == "known" else 0.0
            if wanted:
                is_right = plain(made) in wanted
                counts[way][0] += is_right
                if show and not is_right:
                    print(f"  {way:5} wrong    {earlier} | {typed} | {made}")
            elif made != typed:
                counts[way][1] += 1
                print(f"  {way:5} touched  {earlier} | {typed} | {made}")
    others = len(rows) - wanted_rows
    print(
        f"{name:18} {counts['form'][0]:5}/{wanted_rows:<8} {counts['known'][0]:5}/{wanted_rows:<8}"
        f" {counts['form'][1]:7}/{others:<8} {counts['known'][1]:5}/{others:<8}"
        f" {spent / len(rows) * 1000:5.1f}"
    )


def plain(text: str) -> tuple[str, ...]:
    words = re.findall(r"\w+(?:[-'.]\w+)*", text.lower())
    return tuple(word for word in words if word not in _ARTICLES)


@cache
def nearest(desk: str) -> Callable[[Sequence[str]], Sequence[float]] | None:
    """Return a function from questions to the distances of the desk's nearest entries.

    None if there is no such desk.
    """
    from django.conf import settings

    from kb.embedding.embedder import load_embedder

    path = next(_DESKS.glob(f"{desk}*.jsonl"), None)
    if path is None:
        return None
    embedder = load_embedder(settings.EMBEDDING_MODEL)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    texts = [each["question"] for each in entries if each["question"]]
    texts += [each["text"] for each in entries]
    texts += [
        f"{each['title']} > {each['section']}\n{each['text']}" for each in entries
    ]
    vectors = embedder.encode(texts)

    def distances(questions: Sequence[str]) -> Sequence[float]:
        asked = np.stack([embedder.encode_question(each) for each in questions])
        apart = np.sqrt(np.maximum(2 - 2 * asked @ vectors.T, 0))
        return [float(each) for each in apart.min(axis=1)]

    return distances


def read_dialogs(path: Path, *, shown: int = 40) -> None:
    """Print how many last turns of dialogs are rewritten, and about `shown` of them."""
    pairs = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        turns = [
            turn.partition(":")[2].strip()
            for turn in row["question"].split("\t")
            if turn.startswith("user:")
        ]
        asked = [turn for turn in turns if turn.endswith("?")]
        if len(asked) > 1 and turns[0] == asked[0]:
            pairs.append((asked[1], asked[0]))
    made = [(e, t, standalone(t, e)) for e, t in pairs]
    touched = [each for each in made if each[2] != each[1]]
    print(f"{len(touched)} of {len(pairs)} last turns that are questions are rewritten")
    step = max(len(touched) // shown, 1)
    for earlier, typed, text in touched[::step]:
        print(f"  {earlier} | {typed} | {text}")


if __name__ == "__main__":
    main()
