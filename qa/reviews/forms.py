from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q

from accounts.ids import number_in
from accounts.roles import Role, has_role_in
from kb.audiences.models import Audience
from kb.entries.models import Entry
from qa.answers.models import Answer
from qa.answers.submitted_text import EntryOptions
from qa.reviews.judgements import GRADES, IDEAL_LIMIT, NOTE_LIMIT, Correction, Judgement
from qa.reviews.models import Review

_QUESTIONS = {
    "completeness": "Is it complete?",
    "correctness": "Is it correct?",
    "truthfulness": "Is it true to the evidence?",
    "should_be_answered": "Should it have been answered?",
}
_YES_OR_NO = {True: "yes", False: "no", None: None}
_NOTHING, _ADD, _EDIT = "nothing", "add", "edit"


class JudgementForm(forms.Form):
    evidence = forms.TypedMultipleChoiceField(coerce=int, required=False)
    ideal_answer = forms.CharField(
        required=False,
        max_length=2 * IDEAL_LIMIT,
        widget=forms.Textarea(attrs={"rows": 4, "class": "cal-input rev-wide"}),
    )
    note = forms.CharField(
        required=False,
        max_length=2 * NOTE_LIMIT,
        widget=forms.Textarea(attrs={"rows": 2, "class": "cal-input rev-wide"}),
        help_text="For other experts.",
    )
    knowledge = forms.ChoiceField(required=False, widget=forms.RadioSelect)
    audience = forms.ModelChoiceField(
        Audience.objects.none(),
        required=False,
        widget=forms.Select(attrs={"class": "cal-input"}),
    )
    verify = forms.BooleanField(required=False)

    def __init__(self, review: Review, user: User, data: Any = None) -> None:
        """Start from the judgement stored in the review, if the user may read it."""
        self._answer = review.answer
        self._is_answer = self._answer.outcome == Answer.Outcome.ANSWERED
        is_readable = review.is_readable_by(user)
        names = (*GRADES, "should_be_answered", "ideal_answer", "note")
        initial = {name: getattr(review, name) for name in names} if is_readable else {}
        initial["should_be_answered"] = _YES_OR_NO[initial.get("should_be_answered")]
        initial["evidence"] = review.evidence_used
        if not is_readable and review.state != Review.State.DONE:
            cited = [piece.pk for piece in self._answer.pieces if piece.role == "cited"]
            initial["evidence"] = cited
        super().__init__(data, initial=initial)
        base = self._answer.knowledge_base_id
        self.may_verify = has_role_in(user, Role.CURATOR, base)
        grades = [(str(value), label) for value, label in Review.Grade.choices]
        false_refusal = [("no", "no, it was rightly refused"), ("yes", "yes")]
        for name in GRADES if self._is_answer else ("should_be_answered",):
            self.fields[name] = forms.ChoiceField(
                label=_QUESTIONS[name],
                choices=grades if self._is_answer else false_refusal,
                widget=forms.RadioSelect,
            )
        entries = (
            Entry.objects.visible_to(user)
            .filter(~Q(state=Entry.State.RETIRED), uses__answer=self._answer)
            .defer("search_vector")
            .with_revision_number()
        )
        self._entries = {entry.pk: entry for entry in entries}
        self._limit_choices(user)

    def _limit_choices(self, user: User) -> None:
        chosen: Any = self.fields["evidence"]
        chosen.choices = [(piece.pk, "") for piece in self._answer.pieces]
        knowledge: Any = self.fields["knowledge"]
        knowledge.choices = [
            (_NOTHING, "Nothing"),
            (_ADD, "Add the ideal answer as an entry"),
            *((f"{_EDIT}-{pk}", f"Edit entry {pk}") for pk in self._entries),
        ]
        self.initial["knowledge"] = _NOTHING
        audience: Any = self.fields["audience"]
        audience.queryset = Audience.objects.visible_to(user)
        everyone = audience.queryset.filter(everyone=True).first()
        self.initial["audience"] = everyone and everyone.pk

    def grades(self) -> list[forms.BoundField]:
        return [self[name] for name in _QUESTIONS if name in self.fields]

    def pieces(self) -> Iterator[dict[str, Any]]:
        """Yield the pieces of evidence with what was marked and typed.

        `entry` is the entry a piece was taken from, as it is now; None if it is
        withheld, retired or hidden from the user.
        """
        marked = {str(key) for key in self["evidence"].value() or ()}
        for row in self._answer.pieces:
            entry = None if row.is_withheld else self._entries.get(row.entry_id or 0)
            yield {
                "row": row,
                "entry": entry,
                "is_used": str(row.pk) in marked,
                "text": self.data.get(
                    f"text-{row.entry_id}", entry.text if entry else ""
                ),
                "is_edited": self.data.get("knowledge") == f"{_EDIT}-{row.entry_id}",
            }

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if given.get("knowledge") == _ADD and not given.get("audience"):
            self.add_error("audience", "Choose who may see the entry.")
        return given

    def judgement(self) -> Judgement:
        given = self.cleaned_data
        should = given.get("should_be_answered")
        return Judgement(
            **{name: int(given[name]) for name in GRADES if name in given},
            should_be_answered=None if should is None else should == "yes",
            evidence_used=given["evidence"],
            ideal_answer=given["ideal_answer"],
            note=given["note"],
            knowledge=self._knowledge(),
        )

    def _knowledge(self) -> EntryOptions | Correction | None:
        given = self.cleaned_data
        what, _, key = given["knowledge"].partition("-")
        if what == _ADD:
            return EntryOptions(given["audience"], verify=given["verify"])
        if what == _EDIT:
            revision = self.data.get(f"revision-{key}", "")
            return Correction(
                entry=int(key),
                text=self.data.get(f"text-{key}", ""),
                revision=number_in(revision),
            )
        return None
