"""The base of every admin page, which only accepts input that the page offers.

Django passes the text of addresses and forms to the database unchecked: any lookup of a
field, any id of a row, any initial value of a form.
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
"""Limit for counting rows that prevent a deletion; above it, "more than" is shown."""


def action(**options: object) -> Callable[[Decorated], Decorated]:
    """Wrap unfold's `action`, which has no type hints."""
    return cast(Callable[[Decorated], Decorated], decorators.action(**options))


def display(**options: object) -> Callable[[Decorated], Decorated]:
    """Wrap unfold's `display`, which has no type hints."""
    return cast(Callable[[Decorated], Decorated], decorators.display(**options))


def nobody(model_admin: object, request: HttpRequest, obj: object = None) -> bool:
    """A `has_..._permission` method that denies everyone."""
    return False


def holders_of(*wanted: Role | str) -> Callable[..., bool]:
    """Return a `has_..._permission` that requires all these roles and permissions."""

    def allowed(model_admin: object, request: HttpRequest, obj: object = None) -> bool:
        user = request.user
        return all(
            has_role(user, each) if isinstance(each, Role) else user.has_perm(each)
            for each in wanted
        )

    return allowed


def holders_somewhere(least: Role) -> Callable[..., bool]:
    """Return a `has_..._permission` that requires a role in any knowledge base.

    The service that acts on a row checks the role in that row's knowledge base.
    """

    def allowed(model_admin: object, request: HttpRequest, obj: object = None) -> bool:
        return has_role_somewhere(request.user, least)

    return allowed


def superusers(model_admin: object, request: HttpRequest, obj: object = None) -> bool:
    """A `has_..._permission` method that allows only superusers."""
    return request.user.is_superuser


def badge(field: str, colours: Mapping[Any, str]) -> Callable[..., tuple[str, str]]:
    """Return a column that shows a choice field's label in the value's colour."""

    @display(description=field, ordering=field, label=colours)
    def shown(model_admin: object, row: Model) -> tuple[str, str]:
        return getattr(row, field), getattr(row, f"get_{field}_display")()

    return shown


def column(
    description: str, shown: Callable[[Any], object], *, ordering: str | None = None
) -> Callable[[object, Any], object]:
    """Return a column that shows the result of `shown` for a row."""

    @admin.display(description=description, ordering=ordering)
    def of_row(model_admin: object, row: Any) -> object:
        return shown(row)

    return of_row


class _IdsOnly:
    """A widget that ignores values that are not ids; Django's would look them up."""

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        ids = [each for each in value if number_in(str(each)) is not None]
        return super().optgroups(name, ids, attr)  # type: ignore[misc]  # the widget's


class _Select(_IdsOnly, AutocompleteSelect):
    pass


class _SelectMultiple(_IdsOnly, AutocompleteSelectMultiple):
    pass


class _NamedFiltersOnly(ChangeList):  # type: ignore[misc]  # unfold ships no types
    """Refuses filters that the page does not offer.

    Django also accepts any lookup on the model's own fields: by counting the rows that
    match `text__regex`, a user could read a withheld text letter by letter.
    """

    def get_filters(self, request: HttpRequest) -> Any:
        filters = self.get_filters_params()  # without the search term
        if any("\0" in value for values in filters.values() for value in values):
            raise IncorrectLookupParameters  # PostgreSQL text can't contain it
        found = super().get_filters(request)
        hierarchy = [f"{self.date_hierarchy}__{bound}" for bound in ("gte", "lt")]
        unnamed = sorted(found[2].keys() - hierarchy)
        if unnamed:
            raise DisallowedModelAdminLookup(
                f"This list has no filter {unnamed[0][:80]!r}; use those beside it."
            )
        return found

    def get_results(self, request: HttpRequest) -> None:
        """Hide "Show all" where the list is complete."""
        super().get_results(request)
        if not (self.get_filters_params() or self.query):
            self.full_result_count = self.result_count


def _count(relation: ForeignObjectRel, rows: Sequence[Model]) -> int:
    """Return how many rows refer to these, counting up to one above the limit."""
    others = relation.related_model._base_manager
    found = others.filter(**{f"{relation.field.name}__in": rows})
    counted: int = found[: _COUNTED + 1].count()
    return counted


class BaseAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """An admin page that only accepts existing rows, known filters and valid values."""

    list_per_page = 50
    show_full_result_count = False  # it would count the whole table
    when_empty = ""  # shown in place of an empty list whose rows are not added by hand
    fixed_fields: Sequence[str] = ()  # read-only once the row exists

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
        """Count the rows that prevent a deletion if they are too many to list.

        Django would read all of them, after all rows that would be deleted as well.
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
        """Return whether a user who may change or delete rows may do so to this one."""
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
        """Prepopulate fields from others only while the row is new."""
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
            # The field's label covers both inputs, so each needs one of its own.
            for box, part in zip(field.widget.widgets, ("date", "time"), strict=True):
                box.attrs["aria-label"] = f"{capfirst(field.label)}: {part}"
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Take only valid initial values from the address; Django takes any text."""
        given: dict[str, Any] = super().get_changeform_initial_data(request)
        return {name: text for name, text in given.items() if self._is_for(name, text)}

    def _is_for(self, name: str, text: object) -> bool:
        try:
            field = self.opts.get_field(name)
        except FieldDoesNotExist:
            return True
        # A datetime has two inputs, which one text can't fill.
        if isinstance(field, DateTimeField):
            return False
        if isinstance(field, Field) and not field.many_to_many:
            try:
                field.to_python(text)
            except (ValidationError, ValueError):  # the second from an array field
                return False
        return True

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        """Refuse invalid ids of chosen rows; Django passes any text to the database."""
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
        """Return the paths of the buttons that would not change the row `key`."""
        return ()

    def get_actions_detail(
        self, request: HttpRequest, object_id: int | str
    ) -> list[UnfoldAction]:
        # The id comes straight from the address; Django has not checked it yet.
        useless = self.useless_actions(number_in(str(object_id)) or 0)
        found = super().get_actions_detail(request, object_id)
        return [each for each in found if each.path not in useless]

    def found(self, request: HttpRequest, object_id: object) -> Any:
        """Return the row with the id from the address, if the user may see it.

        Raises:
            Http404: There is no such row, or the id is not valid.
        """
        row = self.get_object(request, str(object_id))
        if row is None:
            name = self.opts.verbose_name
            raise Http404(f"There is no {name} {str(object_id)[:80]!r}.")
        return row


class _OpenOrAll(ChoicesFieldListFilter):
    """Gives "All" a query parameter; without one, the list would be filtered again."""

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
    """A list that shows only open rows at first; its filters include `OPEN_OR_ALL`."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not request.GET:
            return HttpResponseRedirect(f"{request.path}?{OPEN}")
        response: HttpResponse = super().changelist_view(request, extra_context)
        shown = getattr(response, "context_data", None) or {}
        if changes := shown.get("cl"):
            # An address without parameters would filter the list again.
            changes.clear_all_filters_qs = "?o="
            changes.full_result_count = changes.result_count  # hides "Show all"
            changes.is_of_open = request.GET.urlencode() == OPEN
        return response


class UserFormAdmin(BaseAdmin):
    """An admin page whose form class has the current user as `user`."""

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
