"""The golden test of "as of": a year of changes, and every answer of it decided again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from benchmarks.past_year import DAYS, Year
from qa.answers.replaying import find_answer, replay

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.verifier]

ANSWERS, UNCHANGED = 30, 4


def test_every_answer_of_a_year_of_changes_is_decided_again_as_it_was():
    now = timezone.now().replace(microsecond=0)
    year = Year(start=now - timedelta(days=DAYS + 2), seed=1)
    stored = [answer.pk for answer in year.run(ANSWERS)]
    end = now - timedelta(hours=1)
    unchanged = [year.ask(end + timedelta(minutes=at)).pk for at in range(UNCHANGED)]

    replays = [replay(find_answer(pk)) for pk in (*stored, *unchanged)]

    unequal = [
        (each.answer.pk, each.stored.differing(each.then))
        for each in replays
        if not each.is_equal
    ]
    assert unequal == []
    # The year was not a quiet one, and what differs today is explained.
    otherwise = [each for each in replays if each.stored.differing(each.now)]
    assert otherwise
    assert all(each.changed for each in otherwise)
    assert {each.stored.outcome for each in replays} == {"answered", "refused"}
    # What nothing happened to since is decided today as it was.
    assert all(each.stored == each.now for each in replays[-UNCHANGED:])
