from django.apps import AppConfig


class IntegrationsConfig(AppConfig):
    name = "integrations"
    verbose_name = "Integrations"

    def ready(self) -> None:
        from integrations.metrics import counting  # noqa: F401, PLC0415  # receivers
        from integrations.traces import spans  # noqa: PLC0415

        spans.start()
