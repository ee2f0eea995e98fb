"""Settings of the admin's appearance: title, navigation by task, environment badge."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils.functional import lazy

_lazy_reverse = lazy(reverse, str)


def _may_view(model: str) -> Callable[[HttpRequest], bool]:
    """Return a check whether a user may view or change a model, such as "kb_entry"."""
    app, _, name = model.partition("_")

    def allowed(request: HttpRequest) -> bool:
        verbs = ("view", "change")
        return any(request.user.has_perm(f"{app}.{verb}_{name}") for verb in verbs)

    return allowed


def _item(title: str, icon: str, model: str, page: str = "") -> dict[str, Any]:
    return {
        "title": title,
        "icon": icon,
        "link": _lazy_reverse(page or f"admin:{model}_changelist"),
        "permission": _may_view(model),
    }


def _list_item(title: str, icon: str, model: str, other: str) -> dict[str, Any]:
    """Return the link to a list; `other` is a page below it that has its own link."""

    def is_open(request: HttpRequest) -> bool:
        path, address = request.path, reverse(f"admin:{model}_changelist")
        return path.startswith(address) and not path.startswith(reverse(other))

    return {**_item(title, icon, model), "active": is_open}


def _group(title: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "separator": bool(title), "items": list(items)}


def environment(request: HttpRequest) -> list[str] | None:
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
    "STYLES": [lambda request: static("nescio/admin.css")],
    "SCRIPTS": [lambda request: static("nescio/admin.js")],
    "SITE_DROPDOWN": [
        {"icon": "forum", "title": "Ask a question", "link": _lazy_reverse("ask")},
        {"icon": "history", "title": "My questions", "link": _lazy_reverse("answers")},
        {"icon": "menu_book", "title": "Knowledge", "link": _lazy_reverse("knowledge")},
        {"icon": "person", "title": "My profile", "link": _lazy_reverse("profile")},
        {"icon": "key", "title": "My API tokens", "link": _lazy_reverse("own-tokens")},
        {"icon": "help", "title": "Help", "link": _lazy_reverse("help")},
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
            _group(
                "",
                {
                    "title": "Today",
                    "icon": "today",
                    "link": _lazy_reverse("admin:index"),
                },
                {
                    "title": "Inbox",
                    "icon": "inbox",
                    "link": _lazy_reverse("inbox"),
                    "badge": "qa.inbox.navigation.badge",
                    "badge_variant": "primary",
                    "permission": "qa.inbox.navigation.may_open",
                },
                {
                    "title": "Ask a question",
                    "icon": "forum",
                    "link": _lazy_reverse("ask"),
                    # Every address begins with its address, "/".
                    "active": lambda request: False,
                },
            ),
            _group(
                "Knowledge",
                _list_item("Entries", "fact_check", "kb_entry", "admin:kb_entry_due"),
                _item(
                    "Due for review", "event_repeat", "kb_entry", "admin:kb_entry_due"
                ),
                _item("Conflicts", "compare_arrows", "kb_conflict"),
                _item("Proposals", "lightbulb", "kb_proposal"),
                _item("Documents", "description", "kb_document"),
                _item("Imports", "upload_file", "kb_import"),
                _item("Followed sources", "sync", "kb_followedsource"),
                _item("Audiences", "groups", "kb_audience"),
                _item("Synonyms", "spellcheck", "kb_synonym"),
                _item("Tags", "sell", "kb_tag"),
                _item("Knowledge bases", "menu_book", "kb_knowledgebase"),
                _item("Embedding models", "hub", "kb_embeddingmodel"),
            ),
            _group(
                "Questions",
                _item("Dashboard", "monitoring", "qa_answer", "dashboard"),
                _list_item(
                    "Answers and refusals", "question_answer", "qa_answer", "dashboard"
                ),
                _item("Votes", "thumbs_up_down", "qa_vote"),
                _item("Escalations", "support_agent", "qa_escalation"),
                _item("Reviews", "grading", "qa_review"),
                _item("Review samples", "casino", "qa_reviewsample"),
                _item("Gaps", "travel_explore", "qa_gap"),
                _item("Confidence by votes", "balance", "qa_confidencemove"),
                _item("Refusal wordings", "rate_review", "qa_refusalwording"),
            ),
            _group(
                "Thresholds",
                _item("Policies", "tune", "qa_policy"),
                _item("Probes", "neurology", "probes_probe"),
                _item("Retrainings", "model_training", "qa_retraining"),
                _item("Playground", "science", "qa_savedcase", "playground"),
                _item("Test cases", "checklist", "qa_savedcase"),
                _item("Evaluations", "query_stats", "qa_evaluationrun"),
                _item("Drift", "trending_down", "qa_driftreading"),
            ),
            _group(
                "Background work",
                _item("Jobs", "work_history", "jobs_job"),
                _item("Webhooks", "webhook", "integrations_endpoint"),
                _item("Deliveries", "outbox", "integrations_delivery"),
            ),
            _group(
                "Access",
                _item("Users", "person", "auth_user"),
                _item("Roles", "shield_person", "auth_group"),
                _item("Provider groups", "badge", "accounts_providergroup"),
                _item("API tokens", "key", "accounts_apitoken"),
                _item("Widgets", "widgets", "integrations_widget"),
                _item("Audit", "history", "accounts_auditentry"),
            ),
        ],
    },
}
