"""The knowledge of an invented card issuer: what a new system can be tried on."""

from .loader import load_demonstration

__all__ = ["load_demonstration"]
