from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.exceptions import InvalidAccountError
from accounts.roles import Role


def create_user(
    *, username: str, role: Role, password: str | None = None, email: str = ""
) -> User:
    """Make a user with a role; without a password they can't sign in, only use tokens.

    Raises:
        InvalidAccountError: The name is taken or no name, or the password is too weak.
    """
    user = User(username=username, email=email)
    try:
        if password is not None:
            validate_password(password, user)
        user.set_password(password)
        user.full_clean()
    except ValidationError as error:
        msg = f"User {username!r} can't be made: {' '.join(error.messages)}"
        raise InvalidAccountError(msg) from error
    with transaction.atomic():
        user.save()
        set_role(user, role=role)
    return user


def set_role(user: User, *, role: Role) -> None:
    """Give `user` this role in place of any other; other groups stay.

    Every role but agent may open the admin, where its permissions decide what it sees.
    """
    names = [each.value for each in Role]
    with transaction.atomic():
        user.groups.remove(*user.groups.filter(name__in=names))
        user.groups.add(Group.objects.get(name=role.value))
        user.is_staff = user.is_superuser or role != Role.AGENT
        user.save(update_fields=["is_staff"])
