"""The web application: `granian --interface wsgi nescio.wsgi:application`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
application = get_wsgi_application()
