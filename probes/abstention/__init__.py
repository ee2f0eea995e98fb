"""Probes that judge from a model's activations if its answer is right; need torch."""
