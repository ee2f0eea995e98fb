"""What every page of the admin derives from: it takes no more than it offers.

Django hands the text of addresses and forms to the database as it comes: any lookup of a
field, any id of a row, any first value of a form.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from django.contrib import admin, messages
from django.contrib.admin import ChoicesFieldListFilter
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.widgets import AutocompleteSelect, AutocompleteSelectMultiple
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import (
    PROTECT,
    DateTimeField,
    Field,
    ForeignObjectRel,
    Model,
    QuerySet,
)
from django.forms import SplitDateTimeField
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import capfirst
from unfold import decorators
from unfold.admin import ModelAdmin
from unfold.dataclasses import UnfoldAction
from unfold.views import ChangeList

from accounts.ids import number_in
from accounts.roles import Role, caller, has_role, has_role_somewhere

Decorated = TypeVar("Decorated", bound=Callable[..., object])
Fieldsets = list[tuple[str | None, dict[str, Any]]]
_LISTED: Final = 100
_COUNTED: Final = 1_000
"""Of the rows that keep another from being deleted; more are "more than"."""


def action(**options: object) -> Callable[[Decorated], Decorated]:
    """Be unfold's decorator, which ships no types."""
    return cast(Callable[[Decorated], Decorated], decorators.action(**options))


def display(**options: object) -> Callable[[Decorated], Decorated]:
    """Be unfold's decorator, which ships no types."""
    return cast(Callable[[Decorated], Decorated], decorators.display(**options))


def nobody(model_admin: object, request: HttpRequest, obj: object = None) -> bool:
    """Be a `has_..._permission` that no one has."""
    return False


def holders_of(*wanted: Role | str) -> Callable[..., bool]:
    """Return a `has_..._permission` of those who have all these roles and permissions."""

    def allowed(model_admin: object, request: HttpRequest, obj: object = None) -> bool:
        user = request.user
        return all(
            has_role(user, each) if isinstance(each, Role) else user.has_perm(each)
            for each in wanted
        )

    return allowed


def holders_somewhere(least: Role) -> Callable[..., bool]:
    """Return a `has_..._permission` of those with a role in any knowledge base.

    What is done to a row, the row's service holds to its knowledge base.
    """

    def allowed(model_admin: object, request: HttpRequest, obj: object = None) -> bool:
        return has_role_somewhere(request.user, least)

    return allowed


def superusers(model_admin: object, request: HttpRequest, obj: object = None) -> bool:
    """Be a `has_..._permission` of superusers."""
    return request.user.is_superuser


def badge(field: str, colours: Mapping[Any, str]) -> Callable[..., tuple[str, str]]:
    """Return a column that shows a choice by its label, in its colour."""

    @display(description=field, ordering=field, label=colours)
    def shown(model_admin: object, row: Model) -> tuple[str, str]:
        return getattr(row, field), getattr(row, f"get_{field}_display")()

    return shown


def column(
    description: str, shown: Callable[[Any], object], *, ordering: str | None = None
) -> Callable[[object, Any], object]:
    """Return a column that shows what `shown` makes of a row."""

    @admin.display(description=description, ordering=ordering)
    def of_row(model_admin: object, row: Any) -> object:
        return shown(row)

    return of_row


class _IdsOnly:
    """Looks up no row for text that is no id, which Django's widgets would."""

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        ids = [each for each in value if number_in(str(each)) is not None]
        return super().optgroups(name, ids, attr)  # type: ignore[misc]  # the widget's


class _Select(_IdsOnly, AutocompleteSelect):
    pass


class _SelectMultiple(_IdsOnly, AutocompleteSelectMultiple):
    pass


class _NamedFiltersOnly(ChangeList):  # type: ignore[misc]  # unfold ships no types
    """Refuses each filter that the page does not offer.

    Django also takes any lookup on a field of the model's own: who counts the rows that
    `text__regex` leaves reads a withheld text letter by letter.
    """

    def get_filters(self, request: HttpRequest) -> Any:
        filters = self.get_filters_params()  # without what is searched for
        if any("\0" in value for values in filters.values() for value in values):
            raise IncorrectLookupParameters  # no text of the database has it
        found = super().get_filters(request)
        hierarchy = [f"{self.date_hierarchy}__{bound}" for bound in ("gte", "lt")]
        unnamed = sorted(found[2].keys() - hierarchy)
        if unnamed:
            raise DisallowedModelAdminLookup(
                f"This list has no filter {unnamed[0][:80]!r}; use those beside it."
            )
        return found

    def get_results(self, request: HttpRequest) -> None:
        """Offer no "Show all" where nothing is left out."""
        super().get_results(request)
        if not (self.get_filters_params() or self.query):
            self.full_result_count = self.result_count


def _count(relation: ForeignObjectRel, rows: Sequence[Model]) -> int:
    """Return how many rows refer to these, at most one more than are counted."""
    others = relation.related_model._base_manager
    found = others.filter(**{f"{relation.field.name}__in": rows})
    counted: int = found[: _COUNTED + 1].count()
    return counted


class BaseAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Holds each request to the rows, filters and values that there are."""

    list_per_page = 50
    show_full_result_count = False  # of all rows beside those that a filter leaves
    when_empty = ""  # what a list holds that nobody adds a row to by hand
    fixed_fields: Sequence[str] = ()  # shown and no longer changed once a row is there

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return _NamedFiltersOnly

    def get_readonly_fields(
        self, request: HttpRequest, obj: Any = None
    ) -> Sequence[str]:
        fixed = self.fixed_fields if obj else ()
        return [*super().get_readonly_fields(request, obj), *fixed]

    def get_deleted_objects(
        self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Count what keeps rows from being deleted, where it is more than can be listed.

        Django would read all of it, and first what would be deleted with the rows.
        """
        rows = list(objs)
        needing = [
            (relation.related_model._meta.verbose_name_plural, _count(relation, rows))
            for relation in self.model._meta.related_objects
            if relation.on_delete is PROTECT
        ]
        if max((count for _, count in needing), default=0) <= _LISTED:
            found: tuple[list[str], dict[str, int], set[str], list[str]]
            found = super().get_deleted_objects(rows, request)
            return found
        held = [
            f"{'more than ' * (count > _COUNTED)}{min(count, _COUNTED):,} {name}"
            for name, count in needing
            if count
        ]
        return [], {}, set(), held

    def may_touch(self, request: HttpRequest, row: Any) -> bool:
        """Tell whether who may change or delete rows may do so to this one."""
        return True

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed: bool = super().has_change_permission(request, obj)
        return allowed and (obj is None or self.may_touch(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        allowed: bool = super().has_delete_permission(request, obj)
        return allowed and (obj is None or self.may_touch(request, obj))

    def get_prepopulated_fields(
        self, request: HttpRequest, obj: Any = None
    ) -> dict[str, Any]:
        """Fill in what is made of another field while the row is new, and then no more."""
        made: dict[str, Any] = super().get_prepopulated_fields(request, obj)
        return {} if obj else made

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            select = _SelectMultiple if db_field.many_to_many else _Select
            options["widget"] = select(db_field, self.admin_site)
        field = super().formfield_for_dbfield(db_field, request, **options)
        if isinstance(field, SplitDateTimeField):
            # Its label is of both boxes, and names neither.
            for box, part in zip(field.widget.widgets, ("date", "time"), strict=True):
                box.attrs["aria-label"] = f"{capfirst(field.label)}: {part}"
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Take from an address no more than the fields can show; Django takes any text."""
        given: dict[str, Any] = super().get_changeform_initial_data(request)
        return {name: text for name, text in given.items() if self._is_for(name, text)}

    def _is_for(self, name: str, text: object) -> bool:
        try:
            field = self.opts.get_field(name)
        except FieldDoesNotExist:
            return True
        # A moment is shown in two inputs, which one text doesn't fill.
        if isinstance(field, DateTimeField):
            return False
        if isinstance(field, Field) and not field.many_to_many:
            try:
                field.to_python(text)
            except (ValidationError, ValueError):  # the second from a field of a list
                return False
        return True

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        """Take no chosen row whose id is none: Django hands any text to the database."""
        for chosen in request.POST.getlist(ACTION_CHECKBOX_NAME):
            try:
                self.opts.pk.to_python(chosen)
            except ValidationError:
                said = (
                    f"There is no row {chosen[:80]!r}; choose among those of the list."
                )
                self.message_user(request, said, messages.ERROR)
                return None
        response: HttpResponse | None = super().response_action(request, queryset)
        return response

    def useless_actions(self, key: int) -> Collection[str]:
        """Return the buttons that would do nothing to the row of this id."""
        return ()

    def get_actions_detail(
        self, request: HttpRequest, object_id: int | str
    ) -> list[UnfoldAction]:
        # The address's id as it came, before Django looked at it.
        useless = self.useless_actions(number_in(str(object_id)) or 0)
        found = super().get_actions_detail(request, object_id)
        return [each for each in found if each.path not in useless]

    def found(self, request: HttpRequest, object_id: object) -> Any:
        """Return the row that an address names, as far as its reader may see it.

        Raises:
            Http404: There is none, or the id is none that a row can have.
        """
        row = self.get_object(request, str(object_id))
        if row is None:
            name = self.opts.verbose_name
            raise Http404(f"There is no {name} {str(object_id)[:80]!r}.")
        return row


class _OpenOrAll(ChoicesFieldListFilter):
    """Gives "All" a value: a list that opens narrowed would be narrowed again without."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        every, *states = super().choices(changelist)
        address = changelist.get_query_string({self.lookup_kwarg: ""})
        is_chosen = not any(state["selected"] for state in states)
        yield {**every, "selected": is_chosen, "query_string": address}
        yield from states

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if request.GET.get(self.lookup_kwarg) == "":
            return queryset
        narrowed: Any = super().queryset(request, queryset)
        return cast(QuerySet[Any], narrowed)


OPEN_OR_ALL: Final = ("state", _OpenOrAll)
OPEN: Final = "state__exact=open"


class OpenFirstAdmin(BaseAdmin):
    """A list that opens with what is open; it has `OPEN_OR_ALL` among its filters."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not request.GET:
            return HttpResponseRedirect(f"{request.path}?{OPEN}")
        response: HttpResponse = super().changelist_view(request, extra_context)
        shown = getattr(response, "context_data", None) or {}
        if changes := shown.get("cl"):
            # An address without anything would narrow it again.
            changes.clear_all_filters_qs = "?o="
            changes.full_result_count = changes.result_count  # no "Show all" beside it
            changes.is_of_open = request.GET.urlencode() == OPEN
        return response


class UserFormAdmin(BaseAdmin):
    """Rows with a form that knows who fills it in, as its `user`."""

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,
        **options: Any,
    ) -> Any:
        made = super().get_form(request, obj, change, **options)
        made.user = caller(request)
        return made
