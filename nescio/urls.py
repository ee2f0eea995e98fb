from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, include, path

from accounts import pages
from nescio import health
from qa.dashboard.admin import dashboard_page

api: list[URLPattern | URLResolver] = [
    path("", include("accounts.urls")),
    path("", include("jobs.urls")),
    path("", include("kb.urls")),
    path("", include("qa.urls")),
    path("", include("nescio.schema")),
]

urlpatterns = [
    path("api/v1/", include(api)),
    path(
        "admin/qa/answer/dashboard/",
        admin.site.admin_view(dashboard_page),
        name="dashboard",
    ),
    path("admin/", admin.site.urls),
    path("healthz", health.ready, name="healthz"),
    path("healthz/live", health.live, name="healthz-live"),
    path("login", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("tokens", pages.tokens, name="own-tokens"),
    path("tokens/<uuid:token_id>/revoke", pages.revoke, name="own-token-revoke"),
    path("", include("qa.desk.urls")),
]

handler400 = "nescio.exception_handler.bad_request"
handler403 = "nescio.exception_handler.permission_denied"
handler404 = "nescio.exception_handler.page_not_found"
handler500 = "nescio.exception_handler.server_error"
