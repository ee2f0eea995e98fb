"""Forms whose services say what is wrong before anything is saved."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.db import transaction

from accounts.exceptions import NescioError
from kb.exceptions import InvalidKnowledgeError
from kb.models import KnowledgeBase


class ServiceForm(forms.ModelForm):  # type: ignore[type-arg]  # not at run time
    """A form whose `write` calls services, and is rehearsed when the form is cleaned.

    The knowledge base is chosen beforehand where there is but one.

    The rehearsal is rolled back: what a service refuses becomes an error of the form,
    with all that was typed kept, and the checks stand in the services alone. `lock`
    holds what another writer could change between rehearsal and saving.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # Django's
        super().__init__(*arguments, **options)
        if "knowledge_base" in self.fields and not self.instance.pk:
            bases = KnowledgeBase.objects.values_list("pk", flat=True)[:2]
            if len(bases) == 1:
                self.initial.setdefault("knowledge_base", bases[0])

    def write(self) -> Any:  # noqa: ANN401  # a row of the form's model
        """Write what the form holds and return the row."""
        raise NotImplementedError

    def lock(self) -> None:
        """Lock what is written until the view's transaction ends."""

    def clean(self) -> dict[str, Any]:
        """Rehearse the write."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            self.lock()
            rehearse(self.write, self.add_error, self.fields)
        return cleaned

    def _post_clean(self) -> None:
        """Leave the instance as it was read; the services change the row."""


def rehearse(
    write: Callable[[], object],
    add_error: Callable[[str | None, str], None],
    fields: dict[str, Any],
) -> None:
    """Run `write`, roll it back, and put what it refused where it belongs."""
    try:
        with transaction.atomic():
            write()
            transaction.set_rollback(True)
    except InvalidKnowledgeError as error:
        add_error(error.field if error.field in fields else None, str(error))
    except NescioError as error:
        add_error(None, str(error))
