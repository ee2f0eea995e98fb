"""Exports in the admin: requested on one page, made by a job, fetched from there."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin.options import ModelAdmin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from accounts.exceptions import NescioError, NotFoundError
from accounts.roles import Role, caller, has_role, has_role_somewhere
from kb.archive.exports import exported_file, get_exports, request_export
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry

_SHOWN = 20


class ExportForm(forms.Form):
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.none(),
        required=False,
        empty_label="all that you curate",
        widget=forms.Select(attrs={"class": "cal-input"}),
    )
    complete = forms.BooleanField(
        required=False, label="Everything, not only what I may see"
    )

    def __init__(self, data: QueryDict | None, *, reader: User) -> None:
        super().__init__(data)
        field: Any = self.fields["knowledge_base"]
        curated = KnowledgeBase.objects.of_role(reader, Role.CURATOR)
        field.queryset = curated.order_by("name")


def exports_page(admin: "ModelAdmin[Entry]", request: HttpRequest) -> HttpResponse:
    user = caller(request)
    if not has_role_somewhere(user, Role.CURATOR):
        raise PermissionDenied
    form = ExportForm(request.POST or None, reader=user)
    if not has_role(user, Role.ADMIN):
        del form.fields["complete"]
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data["knowledge_base"]
        try:
            request_export(
                by=user,
                knowledge_base="" if chosen is None else chosen.slug,
                complete=form.cleaned_data.get("complete", False),
            )
        except NescioError as error:
            admin.message_user(request, str(error), messages.ERROR)
        else:
            admin.message_user(
                request,
                "The export is being made; you will find it below once it is done.",
                messages.SUCCESS,
            )
        return redirect("admin:kb_entry_exports")
    context = {
        **admin.admin_site.each_context(request),
        "opts": admin.model._meta,
        "title": "Exports",
        "form": form,
        "jobs": get_exports(user)[:_SHOWN],
    }
    return TemplateResponse(request, "admin/kb/entry/exports.html", context)


def export_file(request: HttpRequest, job_id: UUID) -> HttpResponseBase:
    try:
        path = exported_file(job_id, by=caller(request))
    except NotFoundError as error:
        raise Http404(str(error)) from error
    except NescioError as error:
        raise PermissionDenied(str(error)) from error
    return FileResponse(path.open("rb"), as_attachment=True, filename="knowledge.zip")
