"""Measure the speed and memory of the configured white-box language model.

    python benchmarks/language_model.py

Prints the time of a prompt pass with and without the cached prefix, tokens per second,
the time to answer a question with four pieces of evidence, and the resident memory.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
django.setup()

from django.conf import settings  # noqa: E402

from kb.types import Evidence  # noqa: E402
from probes.language_model import load_model  # noqa: E402
from qa.inference.guided import GuidedLanguageModel  # noqa: E402
from qa.pipeline.language_model import Prompt  # noqa: E402

ROUNDS = 9
NOTES = (
    "The Gold card costs 72 euros a year, charged on the day the card was issued.",
    "An additional card for a family member costs 12 euros a year.",
    "The annual fee is refunded if at least 9,000 euros were spent in a year.",
    "The Student card is free until the year in which its holder turns 27.",
)


def resident_mebibytes() -> float:
    """Return this process's resident memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def median_milliseconds(work: Callable[[], object]) -> float:
    """Return the median time of `work` after one warm-up run."""
    work()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def evidence(number: int, text: str) -> Evidence:
    """Return a verified entry as evidence."""
    return Evidence(
        entry_id=number, revision_id=number, text=text, question="", confidence=1.0,
        is_verified=True, distance=0.5, vector_rank=1, text_rank=None, score=0.1,
        document_title="", section="", verified_at=None, valid_until=None,
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    before = resident_mebibytes()
    began = time.perf_counter()
    model = load_model(settings.LANGUAGE_MODEL)
    print(f"load                         {time.perf_counter() - began:8.1f} s")
    print(
        f"model, dtype, threads        {model.name}, {model.dtype}, {settings.TORCH_THREADS}"
    )
    guided = GuidedLanguageModel(model)
    examples = model.tokens.encode_text(guided.examples)
    note = model.tokens.encode_text(f"Note: {NOTES[0]}\nQuestion: What does Gold cost?")
    prefix = model.read_prefix(examples)
    cold = median_milliseconds(lambda: model.read([*examples, *note]))
    warm = median_milliseconds(lambda: model.read(note, model.read_prefix(examples)))
    print(f"prefix / note, tokens        {len(examples)} / {len(note)}")
    print(f"prompt pass without cache    {cold:8.0f} ms")
    print(
        f"prompt pass with cache       {warm:8.0f} ms  ({cold / warm:.1f} times shorter)"
    )
    context = model.read(note, prefix)
    decode = median_milliseconds(lambda: model.generate(context, max_tokens=16)) / 16
    print(f"writing freely               {1000 / decode:8.1f} tokens/s")
    prompt = Prompt(
        "What does the Gold card cost per year?",
        tuple(evidence(n, text) for n, text in enumerate(NOTES, start=1)),
        "en",
    )
    answered = median_milliseconds(lambda: guided.generate(prompt))
    print(f"answered question            {answered:8.0f} ms  (4 pieces of evidence)")
    print(
        f"resident memory              {resident_mebibytes():8.0f} MiB  ({before:.0f} before)"
    )


if __name__ == "__main__":
    main()
