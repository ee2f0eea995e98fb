"""Directions in a model's activations, such as from untruthful to honest."""
