"""Writes: users with a role, and their tokens."""

from .tokens import IssuedToken, create_token, revoke_token, sign_in_for_token
from .users import create_user, set_role

__all__ = [
    "IssuedToken",
    "create_token",
    "create_user",
    "revoke_token",
    "set_role",
    "sign_in_for_token",
]
