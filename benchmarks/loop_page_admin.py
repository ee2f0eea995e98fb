"""All admin pages, by registered model: lists, rows, forms, suggestions."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse
from django.utils.html import escape

from benchmarks.loop_page_list import Page
from kb.entries.due import Reason
from kb.models import Entry, KnowledgeBase
from qa.models import Policy

_FORMS = (
    "kb/import/upload/", "kb/proposal/propose/",
    "kb/conflict/check_now/", "qa/evaluationrun/start/", "qa/policy/evaluate/",
    "qa/reviewsample/draw/", "qa/savedcase/bring/", "qa/savedcase/take/",
    "qa/retraining/retrain/", "probes/probe/train/", "probes/probe/train_method/",
    "probes/probe/upload/", "search/?s=con", "password_change/",
)  # fmt: skip
# Addresses that are not pages: form targets, files, charts and streams, redirects, and
# what other programs call; and admin pages for what nobody may add or delete.
_NO_PAGES = re.compile(
    r"(?:^|/)(vote|retry|stream|choose|escalate|comments|delete|flag|still-true|validity|cases|change|read"
    r"|revoke|postpone|restore|retire|verify|cancel|apply|check|resolve|decide|close|reply"
    r"|dismiss|draft|link|propose|reopen|skip|lock|judgement|next|handled|owner|assignee"
    r"|undo|preferences"
    r"|save|certify|itself|roll-back|token|ask|search|file|export|events)$"
    r"|\.csv$|\.svg$|object_id>/$|/(add|delete|export|password|next)/$|_this/$|_secret/$|open_"
    r"|_conflicts/$|_version/$|/apply/$|_preview|_back/$|/preview/$|_change/done/"
    r"|^(admin/)?(login|logout|jsi18n|r/)|^slack|^teams|^widget|^mcp|^dify|^v1/|^metrics|^healthz"
    r"|url>|app_label>|jobs/<"
)


def admin_pages() -> Iterator[Page]:
    """Yield the admin's pages, for a superuser if the reviewer may not see the rows."""
    requests = {name: _request(name) for name in ("reviewer", "root")}
    for model, model_admin in admin.site._registry.items():
        readers = [
            name
            for name, request in requests.items()
            if model_admin.has_view_permission(request)
        ]
        if readers:
            reader = readers[0]
            yield from _of_model(model, model_admin, requests[reader], reader)
    yield from _others()


def _request(username: str) -> HttpRequest:
    request = HttpRequest()
    request.user = User.objects.get(username=username)
    return request


def _of_model(
    model: Any,
    model_admin: Any,
    request: HttpRequest,
    reader: str,
) -> Iterator[Page]:
    meta = model._meta
    name, prefix = meta.verbose_name_plural, f"admin:{meta.app_label}_{meta.model_name}"
    listed = reverse(f"{prefix}_changelist")
    yield Page(f"admin: {name}", listed, reader)
    if model_admin.search_fields:
        yield Page(f"admin: {name}, a word", f"{listed}?q=contract", reader)
        yield Page(f"admin: {name}, a rare word", f"{listed}?q=12345", reader)
    row = model_admin.get_queryset(request).order_by("-pk").first()
    if row is not None:
        for page in ("change", "history"):
            address = reverse(f"{prefix}_{page}", args=[row.pk])
            yield Page(f"admin: {name}, one: {page}", address, reader)
        if model_admin.has_delete_permission(request, row):
            address = reverse(f"{prefix}_delete", args=[row.pk])
            yield Page(f"admin: {name}, one: delete", address, reader)
    if model_admin.has_add_permission(request):
        yield Page(f"admin: {name}, new", reverse(f"{prefix}_add"), reader)
    for field in model_admin.get_autocomplete_fields(request):
        of = f"app_label={meta.app_label}&model_name={meta.model_name}&field_name={field}"
        yield Page(
            f"admin: {name}, suggested {field}",
            f"/admin/autocomplete/?term=con&{of}",
            reader,
        )


def _others() -> Iterator[Page]:
    """Yield the admin pages that are neither a list of a model nor one of its rows."""
    base, agent = (
        KnowledgeBase.objects.earliest("pk"),
        User.objects.get(username="agent"),
    )
    entry = Entry.objects.filter(audience__everyone=True, state="verified").latest("pk")
    policies = Policy.objects.filter(knowledge_base=base)
    due = reverse("admin:kb_entry_due")
    calibration = reverse("admin:qa_policy_calibrate", args=[base.pk])
    new = f"?new={policies.latest('pk').pk}"
    for path in _FORMS:
        yield Page(f"admin: {path}", f"/admin/{path}")
    activate = reverse("admin:qa_policy_activate_this", args=[policies.latest("pk").pk])
    yield Page("admin: activate a version", activate)
    yield Page("admin: due", due)
    yield Page("admin: due, mine", f"{due}?whose=mine")
    for reason in Reason:
        yield Page(f"admin: due, {reason}", f"{due}?reason={reason}")
    yield Page(
        "admin: compare revisions", reverse("admin:kb_entry_compare", args=[entry.pk])
    )
    yield Page("admin: exports", reverse("admin:kb_entry_exports"))
    yield Page("admin: calibration", reverse("admin:qa_policy_calibration"))
    yield Page("admin: calibration of a base", calibration)
    yield Page("admin: calibration, labelled", f"{calibration}labelled")
    yield Page("admin: calibration, traffic", f"{calibration}traffic")
    yield Page("admin: compare versions", f"{calibration}compare{new}")
    yield Page(
        "admin: a person's data", reverse("admin-person", args=[agent.pk]), "root"
    )


def followed(page: Page, html: str) -> Iterator[Page]:
    """Yield what an admin list links to on itself: filters, orders, further pages."""
    path = page.address.partition("?")[0]
    for query in sorted(set(re.findall(r'href="(\?[^"#]+)"', html))):
        yield Page(
            f"{page.name} {query}", path + query.replace(escape("&"), "&"), page.reader
        )


def unopened(pages: list[Page]) -> list[str]:
    """Return the routes that lead to a page but that none of `pages` opens."""
    opened = {resolve(page.address.partition("?")[0]).route for page in pages}
    return sorted(
        route
        for route in _routes(get_resolver())
        if route not in opened and not _NO_PAGES.search(route)
    )


def _routes(resolver: URLResolver | URLPattern, prefix: str = "") -> Iterator[str]:
    if isinstance(resolver, URLPattern):
        actions: Mapping[str, str] = getattr(resolver.callback, "actions", {"get": ""})
        if "get" in actions:
            yield prefix + str(resolver.pattern)
        return
    for each in resolver.url_patterns:
        yield from _routes(each, prefix + str(resolver.pattern).removeprefix("^/"))
