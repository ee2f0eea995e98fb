from typing import Self

from django.contrib.auth.models import Group, User
from django.db import models
from django.db.models import Exists, OuterRef, Q

from accounts.people import AnyUser
from accounts.roles import Role, has_role


class AudienceQuerySet(models.QuerySet["Audience"]):
    def visible_to(self, user: AnyUser) -> Self:
        if not isinstance(user, User) or not user.is_active:
            return self.none()
        if user.is_superuser:
            return self.all()
        return self.filter(
            Q(everyone=True) | Q(groups__in=user.groups.all())
        ).distinct()

    def listed_for(self, user: AnyUser) -> Self:
        """Return all audiences for an admin, who manages them, else the user's own."""
        return self if has_role(user, Role.ADMIN) else self.visible_to(user)

    def ids_visible_to(self, user: AnyUser) -> tuple[int, ...]:
        return tuple(self.visible_to(user).order_by().values_list("pk", flat=True))

    def hidden_from(self, user: AnyUser) -> Self:
        return self.exclude(pk__in=self.visible_to(user).values("pk"))

    def are_all_visible_to(self, user: AnyUser) -> bool:
        return not self.hidden_from(user).exists()


class Audience(models.Model):
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    everyone = models.BooleanField(
        default=False, help_text="Every signed-in user belongs to it."
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="audiences",
        help_text="Members of these groups see the entries of this audience.",
    )

    objects = AudienceQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name

    def includes(self, other: "Audience") -> bool:
        """Return whether all of `other` is in this audience (at most two queries)."""
        if self == other or self.everyone or other.everyone:
            return self == other or self.everyone
        return not other.groups.exclude(pk__in=self.groups.values("pk")).exists()


def where_belongs(user: str, audience: str) -> Q:
    """Return the condition that the user named by a row belongs to its audience.

    Args:
        user: The row's field or annotation with the user's id.
        audience: The lookup path from the row to the audience.
    """
    shared = Audience.groups.through.objects.filter(
        audience=OuterRef(audience), group__user=OuterRef(user)
    )
    superusers = User.objects.filter(pk=OuterRef(user), is_superuser=True)
    # The condition that a join decides for most rows comes first.
    return (
        Q(**{f"{audience}__everyone": True}) | Q(Exists(shared)) | Q(Exists(superusers))
    )
