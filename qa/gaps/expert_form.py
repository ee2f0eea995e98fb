"""The base of the two expert forms: write an answer, or choose an existing entry."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from unfold.widgets import UnfoldAdminRadioSelectWidget

from accounts.admin_parts import style
from accounts.people import AnyUser
from accounts.roles import Role, has_role_in
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from kb.interface.admin import ServiceForm
from qa.answers.submitted_text import EntryOptions
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap
from qa.gaps.near_entries import Readers, choosable, entries_saying

_SHOWN = 240


def link_to_page(entry_id: int | None) -> SafeString:
    """Return a link to an entry's page, which is open to users without admin access."""
    address = reverse("entry", args=[entry_id])
    return format_html('<a class="underline" href="{}">entry {}</a>', address, entry_id)


def is_curator_of(user: AnyUser, row: Gap | Escalation) -> bool:
    of = row if isinstance(row, Gap) else row.answer
    return has_role_in(user, Role.CURATOR, of.knowledge_base_id)


def wrapping(text: str, then: str = "") -> SafeString:
    """Return the label of a choice that wraps; unfold would truncate it to one line."""
    said = Truncator(text).chars(_SHOWN)
    return format_html('<span class="whitespace-normal">{}{}</span>', said, then)


class EntryField(forms.ModelChoiceField):  # type: ignore[type-arg]  # not at run time
    chosen_by: Mapping[int, Sequence[str]] = MappingProxyType({})

    def label_from_instance(self, obj: Entry) -> SafeString:
        said = f"{obj.question} {obj.text}".lstrip()
        notes = [obj.get_state_display()]
        if people := self.chosen_by.get(obj.pk):
            notes.append(f"chosen by {', '.join(people)}")
        return wrapping(said, f" ({', '.join(notes)})")


class ExpertForm(ServiceForm):
    """A form for an expert's words, kept as an entry, or for an existing entry.

    The admin sets `user`.
    """

    user: User
    linking: ClassVar[str]
    """The value of the field `how` that selects an existing entry."""

    entry = EntryField(
        Entry.objects.none(),
        label="Existing entry",
        required=False,
        widget=UnfoldAdminRadioSelectWidget,
        help_text="The nearest in meaning.",
    )
    words = forms.CharField(
        label="Find other entries",
        max_length=200,
        required=False,
        help_text="Words of the entry. Saving shows the entries found, to choose from.",
    )
    audience = forms.ModelChoiceField(
        Audience.objects.none(), required=False, help_text="Who may see the entry."
    )
    verify = forms.BooleanField(
        label="Verify now",
        required=False,
        help_text="For curators; those who asked get the answer and a notice.",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        style(self)
        audience = self.fields["audience"]
        if isinstance(audience, forms.ModelChoiceField):
            audience.queryset = Audience.objects.visible_to(self.user)
            everyone = audience.queryset.filter(everyone=True).first()
            self.initial.setdefault("audience", everyone and everyone.pk)
        if not self.is_curator:
            del self.fields["verify"]
        if self.instance.is_open:
            self._offer(self.nearest())

    def nearest(self) -> list[Entry]:
        raise NotImplementedError

    @property
    def knowledge_base(self) -> KnowledgeBase:
        raise NotImplementedError

    @property
    def readers(self) -> Readers:
        """Everyone who must be able to see an offered entry, the user first."""
        return [self.user]

    def _offer(self, entries: list[Entry]) -> None:
        """List `entries` as choices, but accept any choosable entry.

        The nearest entries may change between showing the form and submitting it.
        """
        field = self.fields["entry"]
        if isinstance(field, EntryField):
            field.queryset = choosable(self.knowledge_base, self.readers)
            widget: Any = field.widget
            shown = [(each.pk, field.label_from_instance(each)) for each in entries]
            widget.choices = [("", "none of these"), *shown]

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        is_read = self.errors.keys().isdisjoint({"entry", "words"})
        is_wanted = given.get("how") == self.linking or given.get("words")
        if is_wanted and is_read:
            self._check_choice(given["entry"], given["words"])
            if given.get("how") != self.linking and "how" in given:
                self._say_how()
        elif given.get("entry") and "entry" in self.changed_data and "how" in given:
            self._say_how()
        return super().clean()

    def _say_how(self) -> None:
        how: Any = self.fields["how"]
        way = dict(how.choices)[self.linking]
        said = (
            f"To use an existing entry, choose “{way}”; otherwise choose “none of "
            "these” below, and leave the words empty."
        )
        self.add_error("how", said)

    def _check_choice(self, entry: Entry | None, words: str) -> None:
        """Check the chosen entry, or offer the entries that the words find."""
        found = []
        if words:
            found = entries_saying(words, self.knowledge_base, self.readers)
        if entry is not None and (not found or entry in found):
            return
        if found:
            self._offer(found)
            self.add_error("entry", f"Choose one of those found for “{words}”.")
        elif words:
            said = f"No entry is found for “{words}”; try other words."
            self.add_error("words", said)
        else:
            self.add_error("entry", "Choose an entry, or find others by words.")

    @property
    def is_curator(self) -> bool:
        return is_curator_of(self.user, self.instance)

    @property
    def entry_options(self) -> EntryOptions:
        """How the entry is created; requires a clean form with an audience."""
        given = self.cleaned_data
        return EntryOptions(given["audience"], verify=given.get("verify", False))
