"""Patterns of kb's admin: forms whose services report errors before anything is saved."""

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
    """Rows that a job works on: a row's page is shown anew until it has ended."""

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        # Asked before the row is read: one whose job ends meanwhile is shown once more.
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
    """Rows of knowledge bases: read where the user is an expert, changed by curators.

    Comes first among the bases. What a list shows also a `visible_to` of the rows says,
    or `rows_of` here.
    """

    base_path: ClassVar = "knowledge_base"

    def get_list_display(self, request: HttpRequest) -> list[str]:
        """Leave out the column of the knowledge base where there is one only."""
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
        """Offer the knowledge bases that the user curates."""
        if db_field.name == "knowledge_base":
            options["queryset"] = bases_curated_by(request.user)
        return super().formfield_for_foreignkey(db_field, request, **options)


def bases_curated_by(user: AnyUser) -> QuerySet[KnowledgeBase]:
    """Return those that a user may write to."""
    curated = KnowledgeBase.objects.in_use().of_role(user, Role.CURATOR)
    return curated.order_by("name")


class ServiceAdmin(UserFormAdmin):
    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        obj.pk = form.write().pk
        obj.refresh_from_db()


class RefusedDeletionAdmin(BaseAdmin):
    """Reports what the user may not see but still needs what is deleted.

    Django lists what the user sees; the rest only the database knows of.
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
            "Somebody of its audience must move that first.",
            level=messages.ERROR,
        )
        return HttpResponseRedirect(request.path)


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]  # not at run time
    """A form whose `write` calls services, and is rehearsed when the form is cleaned.

    The rehearsal is rolled back: what a service refuses becomes an error of the form,
    with all that was typed kept, and the checks stand in the services alone. `lock`
    holds what another writer could change between rehearsal and saving.
    """

    user: User

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.preselect_only("knowledge_base", bases_curated_by(self.user))

    def preselect_only(self, name: str, rows: QuerySet[Any]) -> None:
        """Choose beforehand what a new row's field has no other choice for."""
        if name in self.fields and not self.instance.pk:
            keys = rows.values_list("pk", flat=True)[:2]
            if len(keys) == 1:
                self.initial.setdefault(name, keys[0])

    def write(self) -> Any:
        raise NotImplementedError

    def lock(self) -> None:
        """Lock what is written until the view's transaction ends."""

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
