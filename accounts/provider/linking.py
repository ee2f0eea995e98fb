"""Mapping of the identity provider's verified claims to a local account and its groups.

An account is linked to an issuer and subject only: people choose names and mail
addresses themselves, so an equal one proves nothing.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import CharField

from accounts.acting import SIGN_IN, reading_as
from accounts.exceptions import ForbiddenError
from accounts.models import ApiToken, ProviderAccount, ProviderGroup
from accounts.services import set_groups, set_knowledge_roles


class SignInRefusedError(ForbiddenError):
    """The user signed in at the provider but gets no session here."""

    code = "sign_in_refused"


class _NameTakenError(SignInRefusedError):
    """Another account already has the user name."""


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights that the provider's groups grant here."""

    groups: tuple[Group, ...]
    is_superuser: bool

    @property
    def opens_anything(self) -> bool:
        return bool(self.groups) or self.is_superuser


def sign_in_by_claims(claims: Mapping[str, Any]) -> User:
    """Return the account of the claims' issuer and subject, with its groups updated.

    It is created at the first sign-in if the provider's groups grant anything. An
    account whose groups no longer grant anything loses its groups and is refused.

    Raises:
        SignInRefusedError: The groups grant nothing, the account is closed, or another
            account has its name.
    """
    rights = _rights(claims)
    with reading_as(SIGN_IN):
        user = _find_account(claims, rights) or _make_account(claims, rights)
    if not user.is_active:
        raise SignInRefusedError(
            f"Your account {user.username!r} is closed here. An administrator can open it."
        )
    if rights is not None and not rights.opens_anything:
        raise _nothing_opened(claims)
    return user


def _find_account(claims: Mapping[str, Any], rights: Rights | None) -> User | None:
    with transaction.atomic():
        found = ProviderAccount.objects.select_for_update(of=("self",))
        of_subject = found.filter(issuer=claims["iss"], subject=claims["sub"])
        account = of_subject.select_related("user").first()
        if account is None:
            return None
        _describe(account.user, claims)
        account.user.save(update_fields=["first_name", "last_name", "email"])
        if rights is not None:
            _give(account.user, rights)
        return account.user


def _make_account(claims: Mapping[str, Any], rights: Rights | None) -> User:
    """Create the account, or return the one that a concurrent sign-in just created."""
    try:
        return _create_account(claims, rights)
    except _NameTakenError:
        if made := _find_account(claims, rights):
            return made
        raise


def _create_account(claims: Mapping[str, Any], rights: Rights | None) -> User:
    if rights is None:
        raise SignInRefusedError(
            f"There is no account here for the subject {claims['sub']!r}. Groups are not "
            "taken from the provider, so an administrator must create and connect one."
        )
    if not rights.opens_anything:
        raise _nothing_opened(claims)
    user = User(username=_username(claims))
    user.set_unusable_password()
    _describe(user, claims)
    # People would take "Root" and "root" for the same person.
    if User.objects.filter(username__iexact=user.username).exists():
        raise _name_taken(user.username, claims)
    try:
        with transaction.atomic():
            user.save()
            ProviderAccount.objects.create(
                user=user, issuer=claims["iss"], subject=claims["sub"]
            )
            _give(user, rights)
    except IntegrityError as error:  # a concurrent request created it
        raise _name_taken(user.username, claims) from error
    return user


def _username(claims: Mapping[str, Any]) -> str:
    claim = settings.OIDC_USERNAME_CLAIM
    name = User.normalize_username(str(claims.get(claim, "")))
    try:
        User(username=name).clean_fields(exclude=["password"])
    except ValidationError as error:
        raise SignInRefusedError(
            f"The claim {claim!r} is {name[:150]!r}, which can't be a user name: "
            f"{' '.join(error.messages)} NESCIO_OIDC_USERNAME_CLAIM may name another claim."
        ) from error
    return name


def _name_taken(name: str, claims: Mapping[str, Any]) -> _NameTakenError:
    return _NameTakenError(
        f"There is an account {name!r} here that does not belong to your sign-in. If it "
        "is yours, an administrator can connect it: admin, Users, its page, issuer "
        f"{claims['iss']!r}, subject {claims['sub']!r}."
    )


def _describe(user: User, claims: Mapping[str, Any]) -> None:
    """Copy the person's name, and their mail address unless it is unverified."""
    values = {
        "first_name": claims.get("given_name") or claims.get("name"),
        "last_name": claims.get("family_name"),
        "email": claims.get("email") if claims.get("email_verified", True) else None,
    }
    for name, value in values.items():
        if isinstance(value, str) and "\0" not in value:
            field = cast("CharField[str, str]", User._meta.get_field(name))
            with suppress(ValidationError):  # an invalid value must not block sign-in
                setattr(user, name, field.clean(value, user))


def _give(user: User, rights: Rights) -> None:
    """Replace all rights of the account, groups and roles, by those from the provider.

    A new superuser loses password, tokens and sessions: before, administrators could
    link the account and set its password.
    """
    if user.is_superuser != rights.is_superuser:
        user.is_superuser = rights.is_superuser
        if user.is_superuser:
            user.set_unusable_password()  # this ends the sessions too
            ApiToken.objects.owned_by(user).delete()
        user.save(update_fields=["is_superuser", "password"])
    set_groups(user, rights.groups)
    set_knowledge_roles(user, {})


def _rights(claims: Mapping[str, Any]) -> Rights | None:
    """Return the rights from the provider's groups; None if groups are managed here."""
    if not settings.OIDC_GROUPS_CLAIM:
        return None
    names = {ProviderGroup.EVERYONE, *_group_names(claims)}
    rows = ProviderGroup.objects.filter(name__in=names).prefetch_related("groups")
    groups = {group.pk: group for row in rows for group in row.groups.all()}
    return Rights(tuple(groups.values()), any(row.is_superuser for row in rows))


def _group_names(claims: Mapping[str, Any]) -> Collection[str]:
    """Return the groups from the claim, given by name or path (realm_access.roles)."""
    path = settings.OIDC_GROUPS_CLAIM
    found: object = claims
    for part in [path] if path in claims else path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    names = [found] if isinstance(found, str) else found
    if not isinstance(names, list):
        return ()
    return [name for name in names if isinstance(name, str) and "\0" not in name]


def _nothing_opened(claims: Mapping[str, Any]) -> SignInRefusedError:
    names = sorted(_group_names(claims))
    said = (
        f"Your groups there ({', '.join(names)[:500]}) open nothing here."
        if names
        else f"It sent no groups in the claim {settings.OIDC_GROUPS_CLAIM!r}."
    )
    return SignInRefusedError(
        f"{settings.OIDC_NAME} knows you. {said} An administrator can let one of your "
        "groups in: admin, Provider groups."
    )
