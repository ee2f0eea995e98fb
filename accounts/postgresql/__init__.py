"""Django's PostgreSQL backend, extended to set the reader of each statement."""
