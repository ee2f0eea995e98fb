"""Filters for lists of entries, in REST and in the admin."""

from django.http import HttpRequest
from django.utils import timezone

from accounts.admin_parts import ListFilter
from accounts.rest import BooleanFilter, MomentFilter, StrictFilterSet
from kb.audiences.models import Audience
from kb.entries.due import EXPIRY_NOTICE, REASON_CHOICES, Reason
from kb.entries.models import Entry, EntryQuerySet
from kb.interface import api
from kb.tags.models import Tag
from kb.text.cleaning import KEY_LIMIT, clean_line, digest_of_key


class EntryFilter(StrictFilterSet):
    knowledge_base = api.KnowledgeBaseFilter()
    audience = api.AudienceFilter()
    document = api.DocumentFilter()
    own_key = api.WordsFilter(
        method="filter_own_key",
        max_length=KEY_LIMIT,
        label="Its id in the system it was imported from; unique within a document.",
    )
    product_line = api.TagFilter(Tag.Facet.PRODUCT_LINE)
    line_of_business = api.TagFilter(Tag.Facet.LINE_OF_BUSINESS)
    state = api.ChoicesFilter(Entry.State)
    origin = api.ChoicesFilter(Entry.Origin)
    updated_after = MomentFilter("updated_at", "gte")
    expired = BooleanFilter(method="filter_expired", label="Past its valid_until?")
    q = api.WordsFilter(
        method="filter_words",
        max_length=api.WORDS_LIMIT,
        label='Words of question and text, by stem; "..." for a phrase, -word to exclude it.',
    )

    def filter_expired(
        self, queryset: EntryQuerySet, _name: str, value: bool
    ) -> EntryQuerySet:
        now = timezone.now()
        return queryset.expired(now) if value else queryset.current(now)

    def filter_own_key(
        self, queryset: EntryQuerySet, _name: str, value: str
    ) -> EntryQuerySet:
        # The digest also finds entries imported before the key itself was stored.
        own_key = clean_line(value, field="own_key", limit=KEY_LIMIT)
        return queryset.filter(source_key=digest_of_key(own_key))

    def filter_words(
        self, queryset: EntryQuerySet, _name: str, value: str
    ) -> EntryQuerySet:
        return queryset.saying(value)


class ExpiryListFilter(ListFilter):
    title = parameter_name = "expiry"
    choices_by_value = {
        "expired": "expired",
        "lost": "expired, and in use before",
        "soon": f"in use, expires within {EXPIRY_NOTICE.days} days",
        "current": "not expired",
    }

    def narrow(
        self, entries: EntryQuerySet, value: str, request: HttpRequest
    ) -> EntryQuerySet:
        now = timezone.now()
        match value:
            case "expired":
                return entries.expired(now)
            case "lost":
                return entries.servable().expired(now)
            case "soon":
                in_use = entries.servable().current(now)
                return in_use.expired(now + EXPIRY_NOTICE)
            case _:
                return entries.current(now)


class AudienceListFilter(ListFilter):
    title = parameter_name = "audience"

    def get_choices(self, request: HttpRequest) -> dict[str, str]:
        visible = Audience.objects.visible_to(request.user)
        return dict(visible.values_list("slug", "name"))

    def narrow(
        self, entries: EntryQuerySet, value: str, request: HttpRequest
    ) -> EntryQuerySet:
        return entries.filter(audience__slug=value)


class DueListFilter(ListFilter):
    title = parameter_name = "due"
    choices_by_value = {"any": "for any reason", **dict(REASON_CHOICES)}

    def narrow(
        self, entries: EntryQuerySet, value: str, request: HttpRequest
    ) -> EntryQuerySet:
        due = entries.due(timezone.now())
        if value == "any":
            return due
        return due.due_for(Reason(value), timezone.now())


class OwnerListFilter(ListFilter):
    title = "owner"
    parameter_name = "owned"
    choices_by_value = {"mine": "mine", "nobody": "nobody's"}

    def narrow(
        self, entries: EntryQuerySet, value: str, request: HttpRequest
    ) -> EntryQuerySet:
        if value == "mine":
            return entries.filter(owner_id=request.user.pk)
        return entries.filter(owner__isnull=True)
