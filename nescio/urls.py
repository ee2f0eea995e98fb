from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.routers import SimpleRouter

from accounts import pages
from accounts.api import AuditViewSet, TokenViewSet
from accounts.invitations import ChoosePasswordPage
from accounts.provider import pages as sign_in
from accounts.provider.provisioning import UserViewSet
from integrations.events.api import DeliveryViewSet, EndpointViewSet
from jobs.api import JobViewSet
from nescio import health
from nescio.schema import DescriptionView
from qa.dashboard.admin import dashboard_page
from qa.privacy.pages import person_page

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("audit", AuditViewSet, "audit")
router.register("jobs", JobViewSet, "jobs")
router.register("tokens", TokenViewSet, "tokens")
router.register("users", UserViewSet, "users")
router.register("webhook-deliveries", DeliveryViewSet, "webhook-deliveries")
router.register("webhooks", EndpointViewSet, "webhooks")

api: list[URLPattern | URLResolver] = [
    path("", include(router.urls)),
    path("", include("kb.urls")),
    path("", include("qa.urls")),
    path("schema", DescriptionView.as_view(), name="schema"),
    # Its script has a URL of its own, as the Content-Security-Policy requires.
    path(
        "docs",
        SpectacularSwaggerSplitView.as_view(permission_classes=[AllowAny]),
        name="docs",
    ),
]

urlpatterns = [
    path("api/v1/", include(api)),
    path("", include("integrations.urls")),
    path(
        "admin/qa/answer/dashboard/",
        admin.site.admin_view(dashboard_page),
        name="dashboard",
    ),
    path(
        "admin/auth/user/<int:user_id>/data/",
        admin.site.admin_view(person_page),
        name="admin-person",
    ),
    path("admin/login/", sign_in.admin_sign_in),
    path("admin/", admin.site.urls),
    path("healthz", health.ready, name="healthz"),
    path("healthz/live", health.live, name="healthz-live"),
    path("login", sign_in.SignInPage.as_view(), name="login"),
    path("login/provider", sign_in.provider_start, name="login-provider"),
    path(
        "login/provider/callback",
        sign_in.provider_callback,
        name="login-provider-callback",
    ),
    path("login/link/<str:user_id>/<str:token>", sign_in.link, name="login-link"),
    path(
        "login/password/<str:uidb64>/<str:token>",
        ChoosePasswordPage.as_view(),
        name="choose-password",
    ),
    path("logout", sign_in.SignOutPage.as_view(), name="logout"),
    path("profile", pages.profile, name="profile"),
    path("undo", pages.undo, name="undo"),
    path("profile/preferences", pages.set_preferences, name="preferences"),
    path("tokens", pages.tokens, name="own-tokens"),
    path("tokens/<uuid:token_id>/revoke", pages.revoke, name="own-token-revoke"),
    path("", include("qa.desk.urls")),
]

handler400 = "nescio.exception_handler.bad_request"
handler403 = "nescio.exception_handler.permission_denied"
handler404 = "nescio.exception_handler.page_not_found"
handler500 = "nescio.exception_handler.server_error"
