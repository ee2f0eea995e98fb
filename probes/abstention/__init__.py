"""Probes that predict from activations whether an answer is right; need torch."""
