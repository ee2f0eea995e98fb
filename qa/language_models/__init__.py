"""Language models behind one protocol: a local white-box model or a server."""

from qa.language_models.selection import load_language_model

__all__ = ["load_language_model"]
