"""Directions in a model's activations: what honest differs from untruthful by, and so on."""

from .fitting import (
    Direction,
    fit_direction,
    fit_direction_set,
)
from .sets import (
    FORM,
    DirectionSet,
    DirectionSettings,
    Method,
    TraitDirections,
    direction_files,
    directions_from,
)
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
