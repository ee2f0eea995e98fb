"""The web application: `python -m nescio.web_server`."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
# WhiteNoise warns if this directory, the output of `collectstatic`, does not exist.
settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
application = get_wsgi_application()

from nescio import fitness, warm_up  # noqa: E402  # models need Django set up

fitness.require_fit_database()
if settings.WARM_UP:
    warm_up.begin()
