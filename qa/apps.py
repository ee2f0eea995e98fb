from django.apps import AppConfig


class QaConfig(AppConfig):
    name = "qa"
    verbose_name = "Questions"

    def ready(self) -> None:
        from qa.calibration import self_calibration_jobs  # noqa: F401, PLC0415  # receives
