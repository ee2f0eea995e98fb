"""Directions in a model's activations: what honest differs from untruthful by, and so on."""

from .contrast import (
    OWN_STATEMENTS,
    Trait,
    read_confident_statements,
    read_true_statements,
)
from .contrasting import DirectionSettings, fit_direction_set
from .files import FORM, direction_files, directions_from
from .fitting import Direction, Method, fit_direction
from .sets import DirectionSet, TraitDirections

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
