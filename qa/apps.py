from django.apps import AppConfig


class QaConfig(AppConfig):
    """Questions, answers, policies, votes, evaluation."""

    name = "qa"
    verbose_name = "Questions"
