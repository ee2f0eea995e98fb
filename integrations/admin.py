from integrations.events import admin as events

__all__ = ["events"]
