from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from accounts.exceptions import NescioError


def change_each(
    model_admin: ModelAdmin,
    request: HttpRequest,
    chosen: QuerySet[Any],
    change: Callable[[int], object],
    done: str,
) -> None:
    """Change the chosen rows one by one, and tell how many were and why others not.

    Args:
        done: What was done to them, such as "taken".
    """
    changed = 0
    for key in list(chosen.values_list("pk", flat=True)):
        try:
            change(key)
        except NescioError as error:
            model_admin.message_user(request, str(error), messages.ERROR)
        else:
            changed += 1
    if changed:
        model_admin.message_user(request, f"{changed} {done}.", messages.SUCCESS)
