from integrations.events.models import Delivery, Endpoint, Event
from integrations.widget.models import Widget

__all__ = ["Delivery", "Endpoint", "Event", "Widget"]
