"""The registry: probes with their files, and who let which of them decide when."""

from .change import ProbeChange
from .probe import Probe, ProbeQuerySet

__all__ = ["Probe", "ProbeChange", "ProbeQuerySet"]
