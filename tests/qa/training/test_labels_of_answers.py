"""What reviews label, and that the golden set stays apart."""

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from qa.models import Vote
from qa.reviews.labels import GOLDEN_PERCENT, Part, part_of
from qa.training.labels import drafts_of_reviews, judged_since
from qa.votes.services import vote
from tests.factories import make_entries, make_entry
from tests.qa.training.reviewed import judge, make_draft


def labelled(**options):
    both = [d for part in Part for d in drafts_of_reviews(part, **options)]
    return {draft.id: draft.is_right for draft in both}


@given(st.text())
def test_a_group_falls_into_one_part_and_stays_there(group):
    assert part_of(group) is part_of(group)


def test_about_the_wanted_share_is_golden():
    golden = sum(part_of(f"entry {n}") is Part.GOLDEN for n in range(4_000))

    assert abs(golden / 40 - GOLDEN_PERCENT) < 2


@pytest.mark.django_db
class TestReviewedDrafts:
    def test_are_right_where_an_expert_found_them_right(self):
        entry = make_entry()
        right, wrong = make_draft(entry), make_draft(entry)
        judge(right, is_right=True)
        judge(wrong, is_right=False)

        assert labelled() == {str(right.pk): True, str(wrong.pk): False}

    def test_hold_what_was_read_and_written(self):
        answer = make_draft(make_entry("A new card costs 12 euros."))
        judge(answer, is_right=True)

        (draft,) = [d for part in Part for d in drafts_of_reviews(part)]

        assert draft.answer == "12 euros"
        assert draft.prompt.question == answer.question
        assert [p.text for p in draft.prompt.evidence] == ["A new card costs 12 euros."]
        assert draft.signals["verdict_probability"] == 0.7

    def test_judged_before_a_probe_was_made_are_nothing_new_to_it(self):
        entry = make_entry()
        known, both, new = (make_draft(entry) for _ in range(3))
        judge(known, is_right=True)
        judge(both, is_right=True)
        moment = timezone.now()
        judge(both, is_right=True, second=True)
        judge(new, is_right=False)

        drafts = [d for part in Part for d in drafts_of_reviews(part)]

        assert len(drafts) == 3
        assert [d.id for d in judged_since(drafts, moment)] == [str(new.pk)]

    def test_behind_a_right_refusal_are_wrong(self):
        answer = make_draft(make_entry(), answered=False)
        judge(answer, is_right=True)

        assert labelled() == {str(answer.pk): False}

    def test_behind_a_false_refusal_teach_nothing(self):
        judge(make_draft(make_entry(), answered=False), is_right=False)

        assert labelled() == {}

    def test_that_two_experts_do_not_agree_on_teach_nothing(self):
        answer = make_draft(make_entry())
        judge(answer, is_right=True)
        judge(answer, is_right=False, second=True)

        assert labelled() == {}

    def test_of_another_language_model_are_left_out(self):
        answer = make_draft(make_entry(), language_model="one")
        judge(answer, is_right=True)

        assert labelled(language_model="another") == {}
        assert labelled(language_model="one") == {str(answer.pk): True}

    def test_are_never_labelled_by_votes(self):
        answer = make_draft(make_entry())
        assert answer.asker is not None
        vote(answer.pk, user=answer.asker, is_up=True)

        assert Vote.objects.count() == 1
        assert labelled() == {}

    def test_about_one_entry_are_never_torn_apart(self):
        entries = make_entries([f"Rule {n} costs {n} euros." for n in range(12)])
        for entry in entries:
            for _ in range(2):
                judge(make_draft(entry), is_right=True)

        groups = {part: {d.group for d in drafts_of_reviews(part)} for part in Part}

        assert not groups[Part.GOLDEN] & groups[Part.TRAINING]
        assert len(groups[Part.GOLDEN] | groups[Part.TRAINING]) == 12
