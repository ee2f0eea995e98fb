"""Parts of the report that can be left out; nothing here needs torch."""

from typing import Final

# The first asks the model again about each answer, the others fit many probes.
OWN_WORDS: Final = "own-words"
VARIANTS: Final = "variants"
LEARNING: Final = "learning"
PARTS: Final = (OWN_WORDS, VARIANTS, LEARNING)
