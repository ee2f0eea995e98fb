from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Background work as rows: the database is the truth, a broker only notifies."""

    name = "jobs"
    verbose_name = "Background work"
