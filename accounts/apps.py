from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Who may do what: roles as groups, tokens, throttles."""

    name = "accounts"
