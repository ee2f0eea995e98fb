"""Turning what is known and labelled into what models and probes are fitted on."""
