from django.apps import AppConfig


class ProbesConfig(AppConfig):
    """Everything that touches a language model's weights and activations."""

    name = "probes"
