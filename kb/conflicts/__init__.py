"""Whether two entries say the same, contradict each other, or speak of different things.

Plain Python without Django: texts and their distance in, a `Judgement` out, in well
under a millisecond. What it is worth is measured by `manage.py evaluate_conflicts` on
`labelled_pairs.jsonl`, pairs of which the model's weights never saw the held-out half.
"""

from kb.text.words import Span

from .judgement import judge
from .language_judge import Judge
from .values import Clash, Judgement, Kind, Opinion, Statement

__all__ = [
    "Clash", "Judge", "Judgement", "Kind", "Opinion", "Span", "Statement", "judge",
]  # fmt: skip
