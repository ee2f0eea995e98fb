"""Admin pages for queues of experts' work: assignment, and handling in a form."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.admin_parts import FixedRowsAdmin, change_each
from accounts.base_admin import holders_somewhere
from accounts.people import person_name
from accounts.roles import Role, caller
from accounts.undo import ChangedSinceError, take_back_each, undoes


class QueueAdmin(FixedRowsAdmin):
    """An admin page of rows that wait for experts, as far as the user may see them."""

    actions: ClassVar = ["assign_to_me", "unassign"]
    assignee: ClassVar = "assignee"  # the field's name

    def __init__(self, model: type[Model], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        name = self.opts.verbose_name
        undoes(
            self._undo,
            lambda noted: (f"assigning {name} {row['row']}" for row in noted["rows"]),
        )(self._assign_back)

    @property
    def _undo(self) -> str:
        return f"{self.opts.label_lower} assigned"

    def assign_to(self, user: User | None, key: int, *, by: User) -> object:
        raise NotImplementedError

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: Any = super().get_queryset(request)
        visible: QuerySet[Any] = rows.visible_to(request.user)
        return visible

    has_view_permission = has_change_permission = holders_somewhere(Role.SME)

    @admin.action(description="Assign to me", permissions=["change"])
    def assign_to_me(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        user = caller(request)
        act = partial(self._assign, user, by=user)
        change_each(self, request, chosen, act, "assigned to you", undo=self._undo)

    @admin.action(description="Unassign", permissions=["change"])
    def unassign(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        act = partial(self._assign, None, by=caller(request))
        change_each(self, request, chosen, act, "unassigned", undo=self._undo)

    @transaction.atomic
    def _assign(self, user: User | None, key: int, *, by: User) -> dict[str, Any]:
        """Assign a row and return the values for undoing it."""
        row = self._locked(key, by)
        before = getattr(row, self.assignee) if row else None
        self.assign_to(user, key, by=by)
        return {
            "row": key,
            "before": before.pk if before else None,
            "after": user.pk if user else None,
        }

    def _assign_back(self, noted: Mapping[str, Any], by: User) -> Sequence[str]:
        """Restore earlier assignees, except of rows that were assigned since."""
        return take_back_each(noted["rows"], partial(self._assign_one_back, by=by))

    @transaction.atomic
    def _assign_one_back(self, noted: Mapping[str, Any], *, by: User) -> None:
        key, name = noted["row"], self.opts.verbose_name.capitalize()
        row = self._locked(key, by)
        if row is None:
            raise ChangedSinceError(f"{name} {key} is gone, or you may not see it.")
        now = getattr(row, self.assignee)
        if (now.pk if now else None) != noted["after"]:
            whom = person_name(now) if now else "nobody"
            raise ChangedSinceError(
                f"{name} {key} was assigned to {whom} since; it stays as it is."
            )
        before = User.objects.filter(pk=noted["before"]).first()
        self.assign_to(before, key, by=by)

    def _locked(self, key: int, by: User) -> Any:
        rows: Any = self.model._default_manager
        locked = rows.visible_to(by).select_for_update(of=("self",), no_key=True)
        return locked.filter(pk=key).first()


class QueueFormAdmin(QueueAdmin):
    """A queue whose open rows have a form, a `ServiceForm` with the current user."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        sections = self.get_fieldsets(request, obj)
        names = [name for _, options in sections for name in options["fields"]]
        return [name for name in names if name not in self.form.declared_fields]

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,
        **options: Any,
    ) -> type[forms.ModelForm]:  # type: ignore[type-arg]  # not at run time
        return type("FormOfUser", (self.form,), {"user": caller(request)})

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_open = obj is None or obj.is_open
        return is_open and super().has_change_permission(request, obj)

    def save_model(
        self, request: HttpRequest, obj: Model, form: Any, change: bool
    ) -> None:
        form.write()
        obj.refresh_from_db()

    def outcome(self, row: Any) -> str:
        """Return a message on the form's result; if empty, Django's own is shown."""
        return ""

    def response_change(self, request: HttpRequest, obj: Model) -> HttpResponse:
        said = self.outcome(obj)
        answer = super().response_change
        if said:
            self.message_user(request, said, messages.SUCCESS)
            answer = self.response_post_save_change
            if "_continue" in request.POST:
                return redirect(request.get_full_path())
        response: HttpResponse = answer(request, obj)
        return response
