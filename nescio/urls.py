"""Every address: the REST interface under /api/v1/, pages, admin, health."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

api: list[URLPattern | URLResolver] = [
    path("", include("accounts.urls")),
    path("", include("nescio.schema")),
]

urlpatterns = [
    path("api/v1/", include(api)),
    path("admin/", admin.site.urls),
]

handler400 = "nescio.exception_handler.bad_request"
handler403 = "nescio.exception_handler.permission_denied"
handler404 = "nescio.exception_handler.page_not_found"
handler500 = "nescio.exception_handler.server_error"
