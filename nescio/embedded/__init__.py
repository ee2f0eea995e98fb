"""PostgreSQL with pgvector from a wheel; imports no Django, so that the settings may."""
