"""The admin page of a person's data: counts, export and erasure; for superusers."""

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods

from accounts.admin_parts import StyledForm
from accounts.exceptions import NescioError
from accounts.ids import row_at
from accounts.roles import caller
from qa.privacy.persons import counts_of, export_person, is_erased, request_erasure


class EraseForm(StyledForm):
    name = forms.CharField(label="Type the person's name to confirm")

    def __init__(self, *arguments: Any, person: User, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._person = person

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self._person.username:
            raise forms.ValidationError(
                f"{name!r} is not this person's name; nothing was erased."
            )
        return name


@require_http_methods(["GET", "HEAD", "POST"])
def person_page(request: HttpRequest, user_id: int) -> HttpResponse:
    """Show what is stored about a person; POST exports or erases it."""
    by = caller(request)
    if not by.is_superuser:
        raise PermissionDenied
    person = row_at(User.objects.all(), pk=user_id)
    if request.POST.get("what") == "export":
        return _download(person)
    erases = request.POST.get("what") == "erase"
    form = EraseForm(request.POST if erases else None, person=person)
    if form.is_valid():
        try:
            job = request_erasure(person, by=by)
        except NescioError as error:
            form.add_error(None, str(error))
        else:
            said = format_html(
                '<a href="{}">A job</a> erases what is stored about this person.',
                reverse("admin:jobs_job_change", args=[job.pk]),
            )
            messages.success(request, said)
            return redirect("admin-person", user_id)
    counts = [
        (name.replace("_", " "), count) for name, count in counts_of(person).items()
    ]
    context = {
        **admin.site.each_context(request),
        "title": f"Data of {person}",
        "person": person,
        "counts": counts,
        "form": form,
        "is_erased": is_erased(person),
        "back": reverse("admin:auth_user_change", args=[user_id]),
    }
    return render(request, "admin/auth/user/data.html", context)


def _download(person: User) -> HttpResponse:
    text = json.dumps(
        export_person(person), cls=DjangoJSONEncoder, ensure_ascii=False, indent=2
    )
    response = HttpResponse(text, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="person-{person.pk}.json"'
    return response
