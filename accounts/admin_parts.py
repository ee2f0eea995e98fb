"""Patterns that the admin pages of all apps share."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.paginator import EmptyPage, PageNotAnInteger
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminSingleDateWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.base_admin import BaseAdmin, nobody
from accounts.exceptions import NescioError
from accounts.undo import MAX_ROWS, offer_undo

View = Callable[..., HttpResponse]


def confirmed(question: str) -> Callable[[View], View]:
    """Make an admin link action act only on POST; a GET shows `question` to confirm.

    Put it below unfold's `action`, which checks the permissions before either.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def ask_first(
            self: Any, request: HttpRequest, object_id: str | None = None
        ) -> HttpResponse:
            arguments = () if object_id is None else (object_id,)
            subject = object_id and self.found(request, object_id)
            if request.method == "POST":
                return view(self, request, *arguments)
            if request.method not in {"GET", "HEAD"}:
                return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
            page = "changelist" if object_id is None else "change"
            back = reverse(_name(self, page), args=arguments)
            context = {
                **self.admin_site.each_context(request),
                "title": question,
                "subject": subject,
                "back": back,
            }
            return render(request, "admin/confirm_action.html", context)

        return ask_first

    return decorate


def _name(model_admin: ModelAdmin, page: str) -> str:
    meta = model_admin.opts
    return f"admin:{meta.app_label}_{meta.model_name}_{page}"


def form_page(
    model_admin: ModelAdmin,
    request: HttpRequest,
    form: forms.Form,
    title: str,
    template: str = "admin/form_page.html",
    **context: str,
) -> HttpResponse:
    """Return the page of a form that belongs to a list rather than to a single row."""
    shown = {
        **model_admin.admin_site.each_context(request),
        "title": title,
        "form": form,
        "back": reverse(_name(model_admin, "changelist")),
        **context,
    }
    return render(request, template, shown)


def secret_page(
    model_admin: ModelAdmin, request: HttpRequest, row: Model, **shown: str
) -> HttpResponse:
    """Return the page that shows a secret once.

    Args:
        shown: The `title`, a message (`said`), the `use` of the secret, the `secret`.
    """
    context = {
        **model_admin.admin_site.each_context(request),
        "back": reverse(_name(model_admin, "change"), args=[row.pk]),
        **shown,
    }
    return render(request, "admin/secret.html", context)


@admin.action(description="Switch off", permissions=["steer"])
def switch_off(
    model_admin: ModelAdmin, request: HttpRequest, chosen: QuerySet[Any]
) -> None:
    count = chosen.filter(is_active=True).update(is_active=False)
    model_admin.message_user(request, f"{count} switched off.", messages.SUCCESS)


def tell_of_job(
    model_admin: ModelAdmin, request: HttpRequest, said: str, job_id: object
) -> HttpResponse:
    """Return to the list with a message on a job; `{}` in it becomes the job's URL."""
    message = format_html(said, reverse("admin:jobs_job_change", args=[job_id]))
    model_admin.message_user(request, message, messages.SUCCESS)
    return redirect(_name(model_admin, "changelist"))


def act_on_row(
    model_admin: BaseAdmin, request: HttpRequest, key: object, act: Callable[[], str]
) -> HttpResponse:
    """Return to a row's page with the message that `act` returned, or its error."""
    try:
        said, level = act(), messages.SUCCESS
    except NescioError as error:
        said, level = str(error), messages.ERROR
    model_admin.message_user(request, said, level)
    return redirect(_name(model_admin, "change"), key)


def images(rows: Iterable[tuple[str, str]]) -> SafeString:
    """Return an image element for each (URL, alternative text)."""
    image = '<img class="block max-w-full mb-4" loading="lazy" src="{}" alt="{}">'
    return format_html_join("", image, rows)


def table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> SafeString:
    """Return a plain table, or "none"; the cells are escaped."""
    cell = '<td class="py-1 pr-6 align-top">{}</td>'
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        ((format_html_join("", cell, ((each,) for each in row)),) for row in rows),
    )
    if not body:
        return SafeString("none")
    heading = '<th class="py-1 pr-6 text-left">{}</th>'
    head = format_html_join(
        "",
        "{}",
        ((format_html(heading if name else "<td>{}</td>", name),) for name in heads),
    )
    return format_html(
        '<div class="overflow-x-auto" tabindex="0"><table class="tabular-nums w-full"><thead>'
        "<tr>{}</tr></thead><tbody>{}</tbody></table></div>",
        head,
        body,
    )


class ListFilter(admin.SimpleListFilter):
    """A list filter with the choices `choices_by_value`, or those of `get_choices`.

    `narrow` only gets one of these values; a request with any other is refused, as by
    Django's own filters.
    """

    choices_by_value: Mapping[str, str] = {}

    def get_choices(self, request: HttpRequest) -> Mapping[str, str]:
        return self.choices_by_value

    def narrow(self, rows: Any, value: str, request: HttpRequest) -> QuerySet[Any]:
        raise NotImplementedError

    def lookups(
        self, request: HttpRequest, _model_admin: object
    ) -> list[tuple[str, str]]:
        return list(self.get_choices(request).items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        if value not in dict(self.lookup_choices):
            raise IncorrectLookupParameters
        return self.narrow(queryset, value, request)


class FixedRowsAdmin(BaseAdmin):
    has_add_permission = has_delete_permission = nobody


class ReadOnlyAdmin(FixedRowsAdmin):
    has_change_permission = nobody

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [name for _, part in self.fieldsets or () for name in part["fields"]]


_COUNTED = 500


class EstimatingPaginator(InfinitePaginator):  # type: ignore[misc]  # unfold ships no types
    """A paginator that estimates the length of long lists instead of counting all rows.

    A page after the last one is empty rather than an error, as the end is not known.
    """

    @cached_property
    def count(self) -> int:
        rows = self.object_list.order_by()
        counted: int = rows[: _COUNTED + 1].count()
        if counted <= _COUNTED:
            return counted
        plan = json.loads(rows.explain(format="json"))
        return max(counted, int(plan[0]["Plan"]["Plan Rows"]))

    def validate_number(self, number: Any) -> int:
        try:
            page = int(number)
        except (TypeError, ValueError) as error:
            raise PageNotAnInteger(f"Page {number!r} is not a number.") from error
        if page < 1:
            raise EmptyPage(f"Page {page} is below 1.")
        return page

    def page(self, number: Any) -> Any:
        page = self.validate_number(number)
        end = page * self.per_page
        return self._get_page(self.object_list[end - self.per_page : end], page, self)


def change_each(
    model_admin: ModelAdmin,
    request: HttpRequest,
    chosen: QuerySet[Any],
    change: Callable[[int], object],
    done: str,
    noun: str = "",
    undo: str = "",
) -> None:
    """Change the chosen rows one by one; report the number changed, and each error.

    Args:
        done: The past participle for the message, such as "verified".
        undo: The kind of undo to offer, which gets the results of `change` as `rows`.
    """
    noted = []
    for key in list(chosen.values_list("pk", flat=True)):
        try:
            noted.append(change(key))
        except NescioError as error:
            model_admin.message_user(request, str(error), messages.ERROR)
    changed = len(noted)
    if not changed:
        return
    what = f"{noun} {done}" if changed == 1 else f"{noun}s {done}"
    said = f"{changed} {what if noun else done}."
    if undo and changed <= MAX_ROWS:
        back = request.get_full_path()
        offer_undo(request, said, kind=undo, before={"rows": noted}, back=back)
    else:
        model_admin.message_user(request, said, messages.SUCCESS)


# Unfold's widgets by Django's default ones.
_WIDGETS: Mapping[type[forms.Widget], type[forms.Widget]] = {
    forms.CheckboxInput: UnfoldBooleanSwitchWidget,
    forms.ClearableFileInput: UnfoldAdminFileFieldWidget,
    forms.DateInput: UnfoldAdminSingleDateWidget,
    forms.NumberInput: UnfoldAdminIntegerFieldWidget,
    forms.Select: UnfoldAdminSelectWidget,
    forms.SelectMultiple: UnfoldAdminSelectMultipleWidget,
    forms.TextInput: UnfoldAdminTextInputWidget,
}


def style(form: forms.BaseForm) -> None:
    """Replace Django's default widgets by the admin's."""
    for field in form.fields.values():
        kind = _WIDGETS.get(type(field.widget))
        if kind is not None:
            widget: Any = kind({**field.widget.attrs})
            widget.is_required = field.required
            if isinstance(field, forms.ChoiceField | forms.ModelChoiceField):
                widget.choices = field.choices
            field.widget = widget


class StyledForm(forms.Form):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        style(self)


@contextmanager
def field_errors() -> Iterator[None]:
    """Turn a service's `NescioError` into a validation error of the current field."""
    try:
        yield
    except NescioError as error:
        raise forms.ValidationError(str(error)) from error


def written(form: forms.Form, write: Callable[[], object]) -> bool:
    if form.is_valid():
        try:
            write()
        except NescioError as error:
            form.add_error(None, str(error))
    return form.is_bound and not form.errors
