"""Probes at work: those of the registry, asked of every answer."""

from qa.probing.in_force import probes_in_force

__all__ = ["probes_in_force"]
