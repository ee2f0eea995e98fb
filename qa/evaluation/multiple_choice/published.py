"""The figures that the paper prints, to stand beside ours.

References:
    Cao, "Learn to Refuse: Making Large Language Models More Controllable and Reliable
    through Knowledge Scope Limitation and Refusal Mechanism" (arXiv:2311.01041),
    Tables 1 to 4. Accuracies in per cent. They were made with the right option first
    in every MC1 row of the release's file, and its MC2 scoring pairs an answer with
    another question's options once something was refused; read them with that.
"""

from collections.abc import Mapping
from typing import Final

# By suite's name: (questions answered, accuracy in per cent).
Published = Mapping[str, tuple[int, float]]

TABLE_1: Final[Mapping[str, Published]] = {
    "Llama-2-70b-chat": {"truthfulqa-mc1": (817, 31.2), "truthfulqa-mc2": (817, 50.1)},
    "gpt-3.5-turbo": {"truthfulqa-mc1": (817, 46.6), "truthfulqa-mc2": (817, 68.2)},
    "gpt-3.5-turbo, Wikipedia": {
        "truthfulqa-mc1": (817, 53.7),
        "truthfulqa-mc2": (817, 67.1),
    },
    "gpt-3.5-turbo, Wikipedia, soft refusal": {
        "truthfulqa-mc1": (530, 55.1),
        "truthfulqa-mc2": (573, 66.2),
    },
    "L2R, Llama-2-70b-chat": {
        "truthfulqa-mc1": (618, 47.1),
        "truthfulqa-mc2": (611, 56.9),
    },
    "L2R, gpt-3.5-turbo": {
        "truthfulqa-mc1": (654, 65.1),
        "truthfulqa-mc2": (655, 70.0),
    },
}
TABLE_2: Final[Mapping[str, Published]] = {
    "Llama-2-70b-chat": {
        "commonsenseqa": (1221, 73.2),
        "medqa": (1273, 41.6),
        "medqa-corpus": (1273, 41.6),
    },
    "gpt-3.5-turbo": {
        "commonsenseqa": (1221, 69.8),
        "medqa": (1273, 51.2),
        "medqa-corpus": (1273, 50.9),
    },
    "L2R, Llama-2-70b-chat": {
        "commonsenseqa": (565, 73.6),
        "medqa": (430, 43.3),
        "medqa-corpus": (512, 43.6),
    },
    "L2R, gpt-3.5-turbo": {
        "commonsenseqa": (933, 75.6),
        "medqa": (451, 52.8),
        "medqa-corpus": (776, 53.2),
    },
}
TABLE_3: Final[Mapping[str, Published]] = {
    "L2R": {"truthfulqa-mc1": (654, 65.1), "truthfulqa-mc2": (655, 70.0)},
    "without steps": {"truthfulqa-mc1": (661, 68.4), "truthfulqa-mc2": (668, 69.1)},
    "without soft refusal": {
        "truthfulqa-mc1": (668, 63.8),
        "truthfulqa-mc2": (668, 69.3),
    },
    "without hard refusal": {
        "truthfulqa-mc1": (778, 62.2),
        "truthfulqa-mc2": (784, 69.1),
    },
}
# MC1 with gold knowledge, by its share: L2R, and the same knowledge without refusal.
TABLE_4: Final[Mapping[float, tuple[tuple[int, float], tuple[int, float]]]] = {
    0.0: ((0, 0.0), (817, 46.6)),
    0.25: ((178, 93.3), (817, 64.7)),
    0.5: ((349, 90.5), (817, 73.2)),
    0.75: ((516, 93.4), (817, 79.6)),
    1.0: ((658, 93.2), (817, 84.5)),
}
# Of the 159 refusals with all gold knowledge, those whose draft was wrong (appendix C).
REFUSALS_RIGHT: Final = 73.4
# Held against a squared distance in the release, whatever the paper calls it.
ALPHA_SQUARED: Final = 0.75
EUCLIDEAN_ALPHA: Final = ALPHA_SQUARED**0.5
