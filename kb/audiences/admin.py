from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from accounts.base_admin import column
from accounts.people import group_names
from kb.audiences.models import Audience
from kb.audiences.services import create_audience, edit_audience
from kb.interface.admin import RefusedDeletionAdmin, ServiceAdmin, ServiceForm


class AudienceForm(ServiceForm):
    groups = forms.ModelMultipleChoiceField(
        queryset=Group.objects.all(),
        required=False,
        help_text="Members of these groups see the entries of this audience.",
    )

    class Meta:
        model = Audience
        fields = ["slug", "name", "everyone", "groups"]

    def write(self) -> Audience:
        fields = dict(self.cleaned_data)
        slug = fields.pop("slug", "")
        fields["groups"] = [group.name for group in fields["groups"]]
        if self.instance.pk is None:
            return create_audience(slug=slug, **fields)
        return edit_audience(audience_id=self.instance.pk, **fields)

    def _save_m2m(self) -> None:
        """The service wrote the groups."""


@admin.register(Audience)
class AudienceAdmin(ServiceAdmin, RefusedDeletionAdmin):
    form = AudienceForm
    list_display = ["name", "slug", "everyone", "members", "number_of_entries"]
    list_filter = ["everyone"]
    search_fields = ["name", "slug"]
    filter_horizontal = ["groups"]
    prepopulated_fields = {"slug": ["name"]}
    fixed_fields = ["slug"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Audience]:
        audiences = Audience.objects.listed_for(request.user)
        return audiences.prefetch_related("groups").annotate(
            entry_count=Count("entries", distinct=True)
        )

    members = column("groups", lambda row: ", ".join(group_names(row.groups.all())))
    number_of_entries = column("entries", lambda audience: audience.entry_count)
