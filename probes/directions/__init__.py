"""Directions in a model's activations: what honest differs from untruthful by, and so on."""

from .fitting import Direction, Method, fit_direction

__all__ = ["Direction", "Method", "fit_direction"]
