"""Directions in a model's activations: what honest differs from untruthful by, and so on."""
