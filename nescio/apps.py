from django.apps import AppConfig


class NescioConfig(AppConfig):
    """The composition root: settings, urls, embedded services, commands."""

    name = "nescio"
