"""Directions in a model's activations: what honest differs from untruthful by, and so on."""

from .files import FORM, direction_files, directions_from
from .fitting import (
    Direction,
    DirectionSettings,
    Method,
    fit_direction,
    fit_direction_set,
)
from .sets import DirectionSet, TraitDirections
from .statements import (
    OWN_STATEMENTS,
    Trait,
    read_confident_statements,
    read_true_statements,
)

__all__ = [
    "FORM",
    "OWN_STATEMENTS",
    "Direction",
    "DirectionSet",
    "DirectionSettings",
    "Method",
    "Trait",
    "TraitDirections",
    "direction_files",
    "directions_from",
    "fit_direction",
    "fit_direction_set",
    "read_confident_statements",
    "read_true_statements",
]
