"""Django's PostgreSQL backend, which tells the database for whom each statement is run."""
