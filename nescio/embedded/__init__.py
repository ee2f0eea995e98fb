"""Embedded PostgreSQL with pgvector; without Django, so that settings can import it."""
