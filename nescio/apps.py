from django.apps import AppConfig


class NescioConfig(AppConfig):
    name = "nescio"

    def ready(self) -> None:
        from nescio import fitness  # noqa: F401, PLC0415  # registers at import
