"""Content-Security-Policy: strict for our pages, looser by path for what needs more.

Our pages load files of their own origin and nothing else: no inline script, no inline
style, no eval. Two foreign interfaces cannot live with that, and each gets what it
needs on its own path alone: the admin's Alpine evaluates expressions and its theme
writes inline styles; the API documentation writes inline styles and data images.
"""

from collections.abc import Mapping

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest, HttpResponseBase

STRICT: Mapping[str, list[str]] = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
}
_BY_PREFIX: tuple[tuple[str, Mapping[str, list[str]]], ...] = (
    (
        "/admin/",
        {
            "script-src": [SELF, UNSAFE_EVAL],
            "style-src": [SELF, UNSAFE_INLINE],
            "img-src": [SELF, "data:"],
            "font-src": [SELF],
        },
    ),
    (
        "/api/v1/docs",
        {"style-src": [SELF, UNSAFE_INLINE], "img-src": [SELF, "data:"]},
    ),
)


class ContentSecurityMiddleware(CSPMiddleware):
    """Sends the strict policy, loosened by path."""

    def get_policy_parts(
        self,
        request: HttpRequest,
        response: HttpResponseBase,
        report_only: bool = False,
    ) -> PolicyParts:
        """Return the parts of the policy, with the path's replacements."""
        parts = super().get_policy_parts(request, response, report_only)
        for prefix, replacements in _BY_PREFIX:
            if request.path_info.startswith(prefix):
                parts.replace = {**replacements, **(parts.replace or {})}
        return parts
