from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import AnonymousUser
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminTextareaWidget,
)

from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.gaps.escalation_models import Escalation
from qa.gaps.escalations import REPLY_LIMIT, close, reply
from qa.gaps.models import Gap
from qa.gaps.near_entries import (
    Readers,
    choosable,
    entries_near,
    entries_of,
    nearest_entries,
)
from qa.gaps.services import (
    SHOWN,
    TEXT_LIMIT,
    dismiss,
    draft,
    expected_answers,
    link,
    propose,
)

from .expert_form import EntryField, ExpertForm, wrapping
from .regrouping import split

_DRAFT, _LINK, _PROPOSE, _SPLIT, _DISMISS = (
    "draft", "link", "propose", "split", "dismiss",
)  # fmt: skip
_WAYS = {
    _DRAFT: "write the answer as a new entry",
    _LINK: "link an existing entry that answers it",
    _PROPOSE: "let a language model propose entries",
    _SPLIT: "move the chosen questions to a gap of their own",
    _DISMISS: "dismiss it and say why",
}
WAITS = "An entry for it already waits for review: finish that, or reopen the gap."


class GapForm(ExpertForm):
    linking = _LINK

    how = forms.ChoiceField(
        label="How", choices=[], initial=_DRAFT, widget=UnfoldAdminRadioSelectWidget
    )
    asked = forms.CharField(
        label="Question",
        max_length=TEXT_LIMIT,
        required=False,
        help_text="The question of the new entry.",
    )
    said = forms.CharField(
        label="Answer, or why it is dismissed",
        max_length=2 * TEXT_LIMIT,
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text="The answer, word for word. Prefilled with the answer expected by "
        "somebody who voted an answer down.",
    )

    moved = forms.TypedMultipleChoiceField(
        label="Questions to move",
        coerce=int,
        choices=[],
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="To a gap of their own; the newest questions are listed, up to "
        f"{SHOWN}.",
    )

    class Meta:
        model = Gap
        fields: ClassVar[list[str]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        how = self.fields["how"]
        if isinstance(how, forms.ChoiceField):
            how.choices = [way for way in _WAYS.items() if self._may(way[0])]
        if not self.instance.can_be_filled:
            self._only_dismiss()
            return
        moved = self.fields["moved"]
        if isinstance(moved, forms.MultipleChoiceField):
            newest = self.instance.members.visible_to(self.user).newest()
            moved.choices = [
                (each.pk, wrapping(each.answer.question))
                for each in newest.select_related("answer")[:SHOWN]
            ]
        self.initial.setdefault("asked", self.instance.question)
        expected = expected_answers(self.instance, self.user).first()
        if expected is not None:
            self.initial.setdefault("said", expected.expected_answer)

    def _may(self, way: str) -> bool:
        if not self.instance.can_be_filled:
            return way == _DISMISS
        return self.is_curator or way != _PROPOSE

    def _only_dismiss(self) -> None:
        how, said = self.fields["how"], self.fields["said"]
        self.initial.setdefault("how", _DISMISS)
        how.error_messages["invalid_choice"] = WAITS
        said.label, said.help_text = "Why it is dismissed", ""

    def nearest(self) -> list[Entry]:
        gap: Gap = self.instance
        self._choose(gap.chosen)
        hits = nearest_entries(gap, self.user)
        near = entries_of(hits, choosable(self.knowledge_base, self.readers))
        first = [entry for entry, _ in gap.chosen]
        return [*first, *(entry for entry in near if entry not in first)]

    def _choose(self, chosen: Sequence[tuple[Entry, list[str]]]) -> None:
        """Show who chose which entry; preselect it if there is only one."""
        field = self.fields["entry"]
        if isinstance(field, EntryField):
            field.chosen_by = {entry.pk: people for entry, people in chosen}
        if len(chosen) == 1 and self.instance.state == Gap.State.OPEN:
            self.initial.setdefault("entry", chosen[0][0].pk)
            self.initial.setdefault("how", _LINK)

    @property
    def knowledge_base(self) -> KnowledgeBase:
        base: KnowledgeBase = self.instance.knowledge_base
        return base

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        needs_audience = given.get("how") in {_DRAFT, _PROPOSE}
        is_empty = not given.get("audience") and "audience" not in self.errors
        if needs_audience and is_empty:
            self.add_error("audience", "Choose the audience.")
        return super().clean()

    def write(self) -> Gap:
        given, key = self.cleaned_data, self.instance.pk
        if given["how"] == _LINK:
            return link(key, by=self.user, entry_id=given["entry"].pk)
        if given["how"] == _PROPOSE:
            return propose(key, by=self.user, audience=given["audience"])
        if given["how"] == _SPLIT:
            return split(key, by=self.user, question_ids=given["moved"])
        if given["how"] == _DISMISS:
            return dismiss(key, by=self.user, reason=given["said"])
        return draft(
            key,
            by=self.user,
            text=given["said"],
            options=self.entry_options,
            question=given["asked"],
        )


_ANSWER, _ENTRY, _CLOSE = "answer", "entry", "close"


class ReplyForm(ExpertForm):
    linking = _ENTRY

    said = forms.CharField(
        label="Reply",
        max_length=2 * REPLY_LIMIT,
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5}),
        help_text="Shown to the asker word for word. May be empty with an existing "
        "entry, whose text the asker then reads.",
    )
    how = forms.ChoiceField(
        label="What it is",
        choices=[
            (_ANSWER, "the answer"),
            (_ENTRY, "an existing entry that answers it"),
            (_CLOSE, "why there is no answer"),
        ],
        initial=_ANSWER,
        widget=UnfoldAdminRadioSelectWidget,
    )
    keep = forms.BooleanField(
        label="Keep the answer as an entry",
        required=False,
        initial=True,
        help_text="Question and answer are kept word for word and wait for review.",
    )

    class Meta:
        model = Escalation
        fields: ClassVar[list[str]] = []

    def nearest(self) -> list[Entry]:
        question = self.instance.answer.question
        return entries_near(question, self.knowledge_base, self.readers)

    @property
    def knowledge_base(self) -> KnowledgeBase:
        base: KnowledgeBase = self.instance.answer.knowledge_base
        return base

    @property
    def readers(self) -> Readers:
        """The expert and the asker, who reads the entry's text."""
        return [self.user, self.instance.answer.asker or AnonymousUser()]

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if self._keeps and not given.get("audience") and "audience" not in self.errors:
            self.add_error(
                "audience", "Choose who may see the entry, or do not keep it."
            )
        return super().clean()

    def write(self) -> Escalation:
        given = self.cleaned_data
        if given["how"] == _CLOSE:
            return close(self.instance.pk, by=self.user, reason=given["said"])
        key, said = self.instance.pk, given["said"]
        if given["how"] == _ENTRY:
            return reply(key, by=self.user, text=said, entry_id=given["entry"].pk)
        keep = self.entry_options if self._keeps else None
        return reply(key, by=self.user, text=said, keep=keep)

    @property
    def _keeps(self) -> bool:
        given = self.cleaned_data
        return bool(given.get("keep")) and given.get("how") == _ANSWER
