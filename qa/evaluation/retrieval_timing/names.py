"""What the deciders are called, in the order of every table."""

from typing import Final

NEVER: Final = "never"
ALWAYS: Final = "always"
CHANCE: Final = "chance"
LOG_PROBABILITY: Final = "log-probability"
CBDR: Final = "CBDR"
DH_ICL: Final = "DH-ICL"
CTRLA: Final = "CtrlA"
DECIDERS: Final = (LOG_PROBABILITY, CBDR, DH_ICL, CTRLA)
