from integrations.events import admin as events
from integrations.widget import admin as widget
