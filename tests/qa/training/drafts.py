"""Made-up labelled drafts whose right answers a model's insides can tell."""

import numpy as np

from qa.pipeline.language_model import Prompt
from qa.training.labels import LabelledDraft, piece_of


def draft(number: int, *, is_right: bool, group: str = "", answer: str = ""):
    """Return a draft whose answer, and question, begin with what tells it right."""
    random = np.random.default_rng(number)
    word = f"k{number:04d}"
    mark = "aa" if is_right else "zz"
    return LabelledDraft(
        id=f"d{number}",
        group=group or f"g{number // 3 % 12}",
        signals={
            "log_probability": float(random.normal() + is_right),
            "mean_entropy": None if number % 5 == 0 else float(random.uniform()),
            "verdict_probability": float(random.uniform()),
        },
        is_answerable=True,
        is_correct=is_right,
        prompt=Prompt(f"{mark} {word}?", (piece_of("", f"Fact {word}."),), "en"),
        answer=answer or f"{mark}{word}",
    )


def many(count: int) -> list[LabelledDraft]:
    """Return drafts of twelve groups, a third of them wrong."""
    return [draft(number, is_right=number % 3 > 0) for number in range(count)]
