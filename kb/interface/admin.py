"""Shared parts of kb's admin, such as forms that rehearse their service calls."""

from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from accounts.base_admin import BaseAdmin, UserFormAdmin
from accounts.exceptions import NescioError
from accounts.people import AnyUser
from accounts.prepared import check_constraints
from accounts.roles import Role, has_role_in, where_role
from jobs.models import Job
from kb.documents.models import KnowledgeBase
from kb.exceptions import InvalidKnowledgeError

_REFRESH_SECONDS = "3"


def job_of(row: Any) -> Job | None:
    """Return the job that works, or worked, on a row."""
    return Job.objects.filter(pk=row.job_id).first() if row.job_id else None


class WorkedOnAdmin(BaseAdmin):
    """An admin of rows that a job works on: their page refreshes until it ends."""

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        # Read before the row, so that a row whose job ends meanwhile is refreshed once
        # more.
        row = self.get_object(request, object_id)
        job = job_of(row) if row and request.method == "GET" else None
        response: HttpResponse = super().change_view(
            request, object_id, form_url, extra_context
        )
        if job and not job.is_finished:
            response["Refresh"] = _REFRESH_SECONDS
        return response

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_model(request, row)


class InBaseAdmin(BaseAdmin):
    """An admin of rows of knowledge bases: read by their experts, changed by curators.

    Comes first among the base classes. Lists also depend on the rows' `visible_to`, or
    on `rows_of` here.
    """

    base_path: ClassVar = "knowledge_base"

    def get_list_display(self, request: HttpRequest) -> list[str]:
        """Omit the column of the knowledge base if there is only one."""
        columns = list(super().get_list_display(request))
        if "knowledge_base" in columns and KnowledgeBase.objects.count() < 2:
            columns.remove("knowledge_base")
        return columns

    def rows_of(self, request: HttpRequest) -> Q:
        return where_role(request.user, Role.SME, self.base_path)

    def base_of(self, row: Any) -> int:
        return int(row.knowledge_base_id)

    def may_touch(self, request: HttpRequest, row: Any) -> bool:
        curates = has_role_in(request.user, Role.CURATOR, self.base_of(row))
        return curates and super().may_touch(request, row)

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> Any:
        """Offer only the knowledge bases that the user curates."""
        if db_field.name == "knowledge_base":
            options["queryset"] = bases_curated_by(request.user)
        return super().formfield_for_foreignkey(db_field, request, **options)


def bases_curated_by(user: AnyUser) -> QuerySet[KnowledgeBase]:
    """Return the knowledge bases that the user may write to."""
    curated = KnowledgeBase.objects.in_use().of_role(user, Role.CURATOR)
    return curated.order_by("name")


class ServiceAdmin(UserFormAdmin):
    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        obj.pk = form.write().pk
        obj.refresh_from_db()


class RefusedDeletionAdmin(BaseAdmin):
    """An admin that reports when rows the user may not see prevent a deletion.

    Django lists the dependents that the user may see; only the database knows the rest.
    """

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        self.delete_queryset(request, type(obj)._default_manager.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        with transaction.atomic():
            queryset.delete()
            check_constraints()

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        try:
            response: HttpResponse = super().delete_view(
                request, object_id, extra_context
            )
        except IntegrityError:
            return self._refused(request)
        return response

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            with transaction.atomic():
                response: HttpResponse = super().changelist_view(request, extra_context)
        except IntegrityError:
            return self._refused(request)
        return response

    def _refused(self, request: HttpRequest) -> HttpResponse:
        self.message_user(
            request,
            "Nothing was deleted: knowledge that you may not see still belongs to it. "
            "Someone in that knowledge's audience must move it first.",
            level=messages.ERROR,
        )
        return HttpResponseRedirect(request.path)


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]  # not at run time
    """A form whose `write` calls services, and is rehearsed when the form is cleaned.

    The rehearsal is rolled back: a service's error becomes an error of the form, all
    input is kept, and the checks exist only in the services. `lock` protects what
    another writer could change between the rehearsal and saving.
    """

    user: User

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.preselect_only("knowledge_base", bases_curated_by(self.user))

    def preselect_only(self, name: str, rows: QuerySet[Any]) -> None:
        """Preselect a new row's field if there is only one choice."""
        if name in self.fields and not self.instance.pk:
            keys = rows.values_list("pk", flat=True)[:2]
            if len(keys) == 1:
                self.initial.setdefault(name, keys[0])

    def write(self) -> Any:
        raise NotImplementedError

    def lock(self) -> None:
        """Lock the rows to be written until the view's transaction ends."""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            self.lock()
            try:
                with transaction.atomic():
                    self.write()
                    transaction.set_rollback(True)
            except InvalidKnowledgeError as error:
                field = error.field if error.field in self.fields else None
                self.add_error(field, str(error))
            except NescioError as error:
                self.add_error(None, str(error))
        return cleaned

    def _post_clean(self) -> None:
        """Leave the instance as it was read; the services change the row."""
