"""Where in a language model activations are read; plain Python, without torch."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Activations = NDArray[np.float32]


class Part(StrEnum):
    """What is read of a block: its output, or its feed-forward part's inner state."""

    BLOCK = "block"
    FFN = "ffn"


@dataclass(frozen=True, slots=True, order=True)
class Tap:
    layer: int
    part: Part = Part.BLOCK
