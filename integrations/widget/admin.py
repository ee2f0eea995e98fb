"""Admin pages of widgets: create them, switch them off, replace their secrets."""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.postgres.forms import SimpleArrayField
from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.admin_parts import confirmed, field_errors, secret_page, switch_off
from accounts.base_admin import UserFormAdmin, action, column, holders_of, superusers
from accounts.roles import Role, caller, has_role_somewhere
from integrations.widget.models import Widget, new_seed
from integrations.widget.tokens import as_origin
from kb.documents.models import KnowledgeBase
from qa.answers.trials import askers_seen_by


class OriginField(forms.CharField):
    def clean(self, value: object) -> str:
        with field_errors():
            return as_origin(str(value))


class WidgetForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    user: User

    origins = SimpleArrayField(
        OriginField(max_length=255),
        delimiter="\n",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Origins of the pages that may embed it, one per line: "
        "https://intranet.example.org. Pages of other sites can't use it.",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:  # Django's
        super().__init__(*arguments, **options)
        bases: Any = self.fields["knowledge_base"]
        own = KnowledgeBase.objects.filter(pk=self.instance.knowledge_base_id)
        bases.queryset = KnowledgeBase.objects.in_use() | own

    def clean_account(self) -> User:
        account: User = self.cleaned_data["account"]
        if has_role_somewhere(account, Role.SME):
            raise forms.ValidationError(
                f"{account} may do more than ask; take an account with the role agent."
            )
        if not askers_seen_by(self.user).filter(pk=account.pk).exists():
            raise forms.ValidationError(
                f"{account} is not an active agent, or belongs to an audience that you do "
                "not belong to; take another."
            )
        return account


@admin.register(Widget)
class WidgetAdmin(UserFormAdmin):
    """Whoever saves a widget must see all that its account sees."""

    form = WidgetForm
    list_display: ClassVar = [
        "name", "knowledge_base", "account", "allowed", "is_active",
    ]  # fmt: skip
    list_filter: ClassVar = ["is_active", "knowledge_base"]
    list_select_related: ClassVar = ["knowledge_base", "account"]
    search_fields: ClassVar = ["name"]
    autocomplete_fields: ClassVar = ["account"]
    actions: ClassVar = [switch_off]
    actions_detail: ClassVar = ["replace_secret"]
    fields: ClassVar = [
        "name", "knowledge_base", "account", "origins", "names_users", "is_active", "tag",
    ]  # fmt: skip
    has_steer_permission = holders_of(Role.ADMIN)
    has_secret_permission = superusers

    def get_readonly_fields(
        self, request: HttpRequest, obj: Widget | None = None
    ) -> list[str]:
        fixed = ["tag"] if caller(request).is_superuser else ["tag", "names_users"]
        return [*super().get_readonly_fields(request, obj), *fixed]

    allowed = column("origins", lambda widget: ", ".join(widget.origins))

    @admin.display(description="script tag")
    def tag(self, widget: Widget) -> SafeString:
        return format_html(
            '<code>&lt;script src="{}{}" data-widget="{}" defer&gt;&lt;/script&gt;</code>',
            settings.PUBLIC_URL,
            static("nescio/widget.js"),
            widget.name or "…",
        )

    @action(description="New secret", icon="key", permissions=["secret"])
    @confirmed(
        "Create a new secret? Claims signed with the former one, and every token that "
        "pages hold now, become invalid."
    )
    def replace_secret(self, request: HttpRequest, object_id: str) -> HttpResponse:
        widget = self.found(request, object_id)
        widget.secret_seed = new_seed()
        widget.save(update_fields=["secret_seed"])
        return secret_page(
            self,
            request,
            widget,
            title=f"Secret of {widget}",
            said="The secret was replaced.",
            use="Your site signs claims about its readers with it; never show it to "
            "their browsers.",
            secret=widget.secret,
        )
