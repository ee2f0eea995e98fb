from integrations.events.models import Alert, Delivery, Endpoint, Event
from integrations.widget.models import Widget
