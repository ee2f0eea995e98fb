"""Admin pages for users, groups, tokens and the audit of changes to them.

Only superusers may change superusers, the superuser flag and single permissions.
"""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from unfold.admin import StackedInline, TabularInline
from unfold.forms import PaginationInlineFormSet, UserChangeForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.account_forms import BY_LINK, NewAccountForm, PasswordForm
from accounts.acting import SIGN_IN
from accounts.admin_parts import ReadOnlyAdmin, confirmed, secret_page, table
from accounts.base_admin import BaseAdmin, action, column, nobody, superusers
from accounts.ids import number_in
from accounts.invitations import days_of_links, invite
from accounts.models import (
    ApiToken,
    AuditEntry,
    KnowledgeRole,
    ProviderAccount,
    ProviderGroup,
)
from accounts.people import group_names
from accounts.roles import Role
from accounts.services import end_access, keeping_staff, revocable_tokens, update_staff

admin.site.unregister(User)
admin.site.unregister(Group)


def _may_touch(
    model_admin: object, request: HttpRequest, row: User | ProviderGroup
) -> bool:
    """A `may_touch` that reserves rows with superuser rights for superusers."""
    return request.user.is_superuser or not row.is_superuser


class GroupBoxes:
    """Shows groups as checkboxes, with a help text on what each allows."""

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> forms.ModelMultipleChoiceField:  # type: ignore[type-arg]  # not subscriptable when it runs
        options["widget"] = UnfoldAdminCheckboxSelectMultipleWidget
        field: Any = super().formfield_for_manytomany(db_field, request, **options)  # type: ignore[misc]  # the page's
        field.help_text = (
            "agent asks; sme also reviews; curator also writes and verifies; admin also "
            "manages policies and users. Other groups open audiences. A role chosen here "
            "applies in every knowledge base."
        )
        return field  # type: ignore[no-any-return]  # unfold ships no types


class _KnowledgeRoles(PaginationInlineFormSet):  # type: ignore[misc]  # unfold ships no types
    """Refuses a second role in the same knowledge base, even if the page hid the first.

    Django does not check constraints that include the parent row of an inline.
    """

    def clean(self) -> None:
        super().clean()
        rows = KnowledgeRole.objects.filter(**{self.fk.name: self.instance.pk})
        there = {_place(row): row.pk for row in rows}
        # Django saves changes and removals in order, and additions last.
        removed = {form.instance.pk for form in self.deleted_forms}
        for form in self.forms:
            row: KnowledgeRole = form.instance
            if form in self.deleted_forms or not form.is_valid():
                continue
            held = there.get(_place(row), row.pk)
            if held != row.pk and (row.pk or held not in removed):
                form.add_error(
                    None,
                    f"{row.user or row.group} has a role in {row.knowledge_base} already: "
                    "change that row, or remove it and save first. Reload the page if it "
                    "is not shown.",
                )


def _place(row: KnowledgeRole) -> tuple[int | None, ...]:
    return row.knowledge_base_id, row.user_id, row.group_id


class KnowledgeRoleInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    """The roles of a user or a group in single knowledge bases."""

    model = KnowledgeRole
    formset = _KnowledgeRoles
    fields: ClassVar = ["knowledge_base", "role"]
    extra = 0


class UserRoleInline(KnowledgeRoleInline):
    fk_name = "user"


class GroupRoleInline(KnowledgeRoleInline):
    fk_name = "group"
    verbose_name_plural = "roles of its members in single knowledge bases"


class ProviderAccountInline(StackedInline):  # type: ignore[misc]  # unfold ships no types
    model = ProviderAccount
    verbose_name = "sign-in by the identity provider"
    fields = ["issuer", "subject"]
    extra = 0


@admin.register(User)
class AccountAdmin(GroupBoxes, UserAdmin, BaseAdmin):  # type: ignore[type-arg]  # not subscriptable when it runs
    form = UserChangeForm
    add_form = NewAccountForm
    change_password_form = PasswordForm
    change_user_password_template = "admin/change_password.html"  # noqa: S105  # a path
    list_display = [
        "username", "full_name", "email", "roles", "is_active", "last_login",
    ]  # fmt: skip
    list_filter = ["is_active", "groups"]
    actions = ["revoke_tokens"]
    actions_detail: ClassVar = ["send_link", "open_data"]
    has_delete_permission = nobody
    has_open_data_permission = superusers
    may_touch = _may_touch
    filter_horizontal = ()
    readonly_fields = ["last_login", "date_joined"]
    fieldsets: ClassVar = [
        (None, {"fields": ["username", "password", "is_active"]}),
        ("What they may do", {"fields": ["groups", "is_superuser"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]

    add_form_template = None  # Django's announces a second page of fields
    # Groups are chosen at once: an account without any can't do anything.
    add_fieldsets = (
        (None, {"fields": ["username", "usable_password", "password1", "password2"]}),
        ("What they may do", {"fields": ["groups"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        rows = super().get_queryset(request)
        roles = KnowledgeRole.objects.select_related("knowledge_base")
        return rows.prefetch_related("groups", Prefetch("knowledge_roles", roles))

    def get_inlines(self, request: HttpRequest, obj: User | None) -> list[Any]:
        at_provider = [ProviderAccountInline] if settings.OIDC_ISSUER and obj else []
        return [UserRoleInline, *at_provider]

    @admin.display(description="full name", ordering="last_name")
    def full_name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description="groups and roles")
    def roles(self, user: User) -> str:
        names = ["superuser"] if user.is_superuser else []
        names += group_names(user.groups.all())
        return ", ".join([*names, *map(str, user.knowledge_roles.all())])

    def get_readonly_fields(
        self, request: HttpRequest, obj: User | None = None
    ) -> list[str]:
        fields = [*super().get_readonly_fields(request, obj)]
        return fields if request.user.is_superuser else [*fields, "is_superuser"]

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        update_staff(form.instance)
        if not form.instance.is_active:
            end_access(form.instance)

    def response_add(
        self, request: HttpRequest, obj: User, post_url_continue: str | None = None
    ) -> HttpResponse:
        is_by_link = request.POST.get("usable_password") == BY_LINK
        if not (settings.LOCAL_SIGN_IN and is_by_link):
            return super().response_add(request, obj, post_url_continue)
        shown = self._invite(request, obj, f"{obj} was added. ")
        if shown is not None:
            return shown
        if IS_POPUP_VAR in request.POST:
            return super().response_add(request, obj, post_url_continue)
        if "_addanother" in request.POST:
            return redirect("admin:auth_user_add")
        return redirect("admin:auth_user_change", obj.pk)

    def has_send_link_permission(
        self, request: HttpRequest, object_id: int | str | None = None
    ) -> bool:
        user = User.objects.filter(pk=number_in(str(object_id)) or 0).first()
        if not settings.LOCAL_SIGN_IN or (user is not None and not user.is_active):
            return False
        return self.has_change_permission(request, user)

    @action(description="Send a new link", icon="mail", permissions=["send_link"])
    @confirmed("Create a link for this person to choose a new password?")
    def send_link(self, request: HttpRequest, object_id: str) -> HttpResponse:
        user = self.found(request, object_id)
        page = redirect("admin:auth_user_change", user.pk)
        return self._invite(request, user) or page

    def _invite(
        self, request: HttpRequest, user: User, before: str = ""
    ) -> HttpResponse | None:
        """Mail a link; return a page that shows it if it could not be mailed."""
        made = invite(user)
        self.log_change(request, user, "A link to choose a password was created.")
        if made.is_mailed:
            said = f"{before}A link to choose a password was mailed to {user.email}."
            self.message_user(request, said, messages.SUCCESS)
            return None
        refused = ""
        if made.fault:
            refused = f"No mail to {user.email}: the mail server {made.fault.said}."
            if not made.fault.is_lasting:
                refused += " A new link may be mailed later."
        return secret_page(
            self,
            request,
            user,
            title=f"Link for {user}",
            said=before + refused,
            use=f"Pass this link on to {user}, who can choose a password with it once, "
            f"within {days_of_links()} days.",
            secret=made.link,
        )

    @action(description="Data of this person", icon="policy", permissions=["open_data"])
    def open_data(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect("admin-person", self.found(request, object_id).pk)

    @admin.action(description="Revoke all tokens", permissions=["change"])
    def revoke_tokens(self, request: HttpRequest, users: QuerySet[User]) -> None:
        count, _ = revocable_tokens(request.user).filter(user__in=users).delete()
        self.message_user(request, f"{count} tokens revoked.", messages.SUCCESS)


@admin.register(Group)
class RoleAdmin(GroupAdmin, BaseAdmin):
    inlines: ClassVar = [GroupRoleInline]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Group | None = None
    ) -> list[str]:
        fields = [*super().get_readonly_fields(request, obj)]
        if obj is not None and obj.name in {role.value for role in Role}:
            fields.append("name")
        if not request.user.is_superuser:
            fields.append("permissions")
        return fields

    def has_delete_permission(
        self, request: HttpRequest, obj: Group | None = None
    ) -> bool:
        if obj is not None and obj.name in {role.value for role in Role}:
            return False
        return super().has_delete_permission(request, obj)

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        with keeping_staff(form.instance.user_set.all):
            super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        self.delete_queryset(request, Group.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Group]) -> None:
        with keeping_staff(lambda: User.objects.filter(groups__in=queryset)):
            super().delete_queryset(request, queryset)


@admin.register(ProviderGroup)
class ProviderGroupAdmin(GroupBoxes, BaseAdmin):
    """The groups of the identity provider, with the roles and audiences they grant."""

    list_display = ["name", "opens", "audiences", "is_superuser"]
    search_fields = ["name"]
    fields = ["name", "groups", "is_superuser"]
    may_touch = _may_touch

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProviderGroup]:
        rows: QuerySet[ProviderGroup] = super().get_queryset(request)
        return rows.prefetch_related("groups__audiences")

    opens = column("opens", lambda row: ", ".join(group_names(row.groups.all())))

    @admin.display(description="audiences")
    def audiences(self, row: ProviderGroup) -> str:
        names = {
            str(each) for group in row.groups.all() for each in group.audiences.all()
        }
        return ", ".join(sorted(names))

    def get_readonly_fields(
        self, request: HttpRequest, obj: ProviderGroup | None = None
    ) -> list[str]:
        return [] if request.user.is_superuser else ["is_superuser"]


@admin.register(ApiToken)
class ApiTokenAdmin(BaseAdmin):
    """API tokens, to view and revoke; their owners or `create_token` create them.

    Only superusers and its owner may revoke a superuser's token. Django checks this for
    each row, also when many are deleted at once.
    """

    when_empty = "Users create tokens on their page API tokens, operators with manage.py create_token."
    list_display = [
        "name", "token_key", "user", "created", "expiry",
        "may_act_for_others", "may_manage_users",
    ]  # fmt: skip
    list_filter = [
        ("expiry", admin.EmptyFieldListFilter),
        "may_act_for_others",
        "may_manage_users",
    ]
    list_select_related = ["user"]
    search_fields = ["name", "user__username"]
    fields = list_display
    readonly_fields = fields
    has_add_permission = has_change_permission = nobody

    def may_touch(self, request: HttpRequest, row: ApiToken) -> bool:
        return revocable_tokens(request.user).filter(pk=row.pk).exists()


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """The audit of access: changes to users, groups, audiences, policies and tokens."""

    when_empty = "Each change of users, groups, roles, audiences, policies and tokens is recorded here, and so is each undo."
    list_display = ["at", "by", "kind", "action", "subject", "what"]
    list_filter = ["kind", "action"]
    search_fields = ["actor", "subject"]
    fieldsets: ClassVar = [
        (
            None,
            {"fields": ["at", "by", "reader", "kind", "action", "subject", "values"]},
        )
    ]

    @admin.display(description="by", ordering="actor")
    def by(self, entry: AuditEntry) -> str:
        if entry.reader == SIGN_IN.label.decode():
            return "the identity provider, at sign-in"
        return entry.actor or "no user: a job or a command"

    what = column("fields", lambda entry: ", ".join(sorted(entry.changes))[:100])

    @admin.display(description="values")
    def values(self, entry: AuditEntry) -> SafeString:
        return table(
            ("field", "before", "after"),
            ((name, *pair) for name, pair in sorted(entry.changes.items())),
        )
