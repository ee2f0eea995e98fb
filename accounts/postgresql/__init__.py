"""Django's PostgreSQL backend, which sets for whom the database runs each statement."""
