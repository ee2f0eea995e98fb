from integrations.events.models import Delivery, Endpoint, Event

__all__ = ["Delivery", "Endpoint", "Event"]
