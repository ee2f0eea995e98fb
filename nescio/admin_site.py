"""The admin's look: title, navigation by task, environment badge, dashboard.

Every link of the navigation shows only to who may open it.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.functional import lazy


def _address(model: str) -> str:
    """Return the address of a model's list, "" while no admin is registered for it."""
    try:
        return reverse(f"admin:{model}_changelist")
    except NoReverseMatch:
        return ""


_lazy_address = lazy(_address, str)
_lazy_reverse = lazy(reverse, str)


def _may_view(app: str, model: str) -> Callable[[HttpRequest], bool]:
    def allowed(request: HttpRequest) -> bool:
        registered = bool(_address(f"{app}_{model}"))
        return registered and any(
            request.user.has_perm(f"{app}.{verb}_{model}")
            for verb in ("view", "change")
        )

    return allowed


def _is_about(model: str, *, but: str) -> Callable[[HttpRequest], bool]:
    """Tell whether a model's page is open, but for one whose address begins likewise."""

    def is_open(request: HttpRequest) -> bool:
        path = request.path
        return path.startswith(_address(model)) and not path.startswith(reverse(but))

    return is_open


def _item(title: str, icon: str, app: str, model: str) -> dict[str, Any]:
    return {
        "title": title,
        "icon": icon,
        "link": _lazy_address(f"{app}_{model}"),
        "permission": _may_view(app, model),
    }


def environment(request: HttpRequest) -> list[str] | None:
    """Return the badge beside the title: its text and colour; none in production."""
    if settings.DEBUG:
        return ["Debugging", "danger"]
    if settings.DATABASE_IS_EMBEDDED:
        return ["Embedded database", "info"]
    return None


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Nescio",
    "SITE_HEADER": "Nescio",
    "SITE_SUBHEADER": "Knowledge and answers",
    "SITE_URL": _lazy_reverse("ask"),
    "SITE_ICON": lambda request: static("nescio/logo.svg"),
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("nescio/logo.svg"),
        }
    ],
    "SCRIPTS": [lambda request: static("nescio/field_names.js")],
    "SITE_DROPDOWN": [
        {"icon": "forum", "title": "Ask a question", "link": _lazy_reverse("ask")},
        {
            "icon": "history",
            "title": "My questions",
            "link": _lazy_reverse("answers"),
        },
    ],
    "SHOW_VIEW_ON_SITE": True,
    "SHOW_BACK_BUTTON": True,
    "ENVIRONMENT": "nescio.admin_site.environment",
    "DASHBOARD_CALLBACK": "nescio.dashboard.add_figures",
    "BORDER_RADIUS": "8px",
    "COLORS": {
        "primary": {
            "50": "#effaf8",
            "100": "#d8f2ee",
            "200": "#b4e5de",
            "300": "#83d2c8",
            "400": "#4fb8ad",
            "500": "#2f9a91",
            "600": "#0b6663",
            "700": "#0a5856",
            "800": "#0b4846",
            "900": "#0c3c3a",
            "950": "#042321",
        }
    },
    "SIDEBAR": {
        "show_search": True,
        "command_search": False,
        "show_all_applications": False,
        "navigation": [
            {
                "title": "",
                "items": [
                    {
                        "title": "Today",
                        "icon": "today",
                        "link": _lazy_reverse("admin:index"),
                    },
                    {
                        "title": "Ask a question",
                        "icon": "forum",
                        "link": _lazy_reverse("ask"),
                        # Its address begins every address.
                        "active": lambda request: False,
                    },
                ],
            },
            {
                "title": "Knowledge",
                "separator": True,
                "items": [
                    {
                        **_item("Entries", "fact_check", "kb", "entry"),
                        "active": _is_about("kb_entry", but="admin:kb_entry_due"),
                    },
                    {
                        "title": "Due for review",
                        "icon": "event_repeat",
                        "link": _lazy_reverse("admin:kb_entry_due"),
                        "permission": _may_view("kb", "entry"),
                    },
                    _item("Conflicts", "compare_arrows", "kb", "conflict"),
                    _item("Proposals", "lightbulb", "kb", "proposal"),
                    _item("Documents", "description", "kb", "document"),
                    _item("Imports", "upload_file", "kb", "import"),
                    _item("Audiences", "groups", "kb", "audience"),
                    _item("Tags", "sell", "kb", "tag"),
                    _item("Knowledge bases", "menu_book", "kb", "knowledgebase"),
                    _item("Embedding models", "hub", "kb", "embeddingmodel"),
                ],
            },
            {
                "title": "Questions",
                "separator": True,
                "items": [
                    {
                        "title": "Dashboard",
                        "icon": "monitoring",
                        "link": _lazy_reverse("dashboard"),
                        "permission": _may_view("qa", "answer"),
                    },
                    {
                        **_item(
                            "Answers and refusals", "question_answer", "qa", "answer"
                        ),
                        "active": _is_about("qa_answer", but="dashboard"),
                    },
                    _item("Votes", "thumbs_up_down", "qa", "vote"),
                    _item("Escalations", "support_agent", "qa", "escalation"),
                    _item("Reviews", "grading", "qa", "review"),
                    _item("Review samples", "casino", "qa", "reviewsample"),
                    _item("Gaps", "travel_explore", "qa", "gap"),
                    _item("Confidence by votes", "balance", "qa", "confidencemove"),
                    _item("Refusal wordings", "rate_review", "qa", "refusalwording"),
                ],
            },
            {
                "title": "Thresholds",
                "separator": True,
                "items": [
                    _item("Policies", "tune", "qa", "policy"),
                    _item("Probes", "neurology", "probes", "probe"),
                    _item("Retrainings", "model_training", "qa", "retraining"),
                    _item("Evaluations", "query_stats", "qa", "evaluationrun"),
                    _item("Drift", "trending_down", "qa", "driftreading"),
                ],
            },
            {
                "title": "Background work",
                "separator": True,
                "items": [_item("Jobs", "work_history", "jobs", "job")],
            },
            {
                "title": "Access",
                "separator": True,
                "items": [
                    _item("Users", "person", "auth", "user"),
                    _item("Roles", "shield_person", "auth", "group"),
                    _item("API tokens", "key", "accounts", "apitoken"),
                ],
            },
        ],
    },
}
