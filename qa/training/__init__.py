"""Turning knowledge and labels into the data that models and probes are fitted on."""
