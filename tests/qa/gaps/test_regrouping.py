"""Gaps that experts merge and split, and that stay as they were regrouped."""

import json

import numpy as np
import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from accounts.undo import ChangedSinceError
from jobs.run import run_job
from jobs.services import enqueue
from qa.exceptions import GapClosedError, GapNotFoundError, InvalidGapError
from qa.gaps import finding as gap_finding
from qa.gaps import regrouping
from qa.gaps.regrouping import merge, merge_undoably, split, undo_merging
from qa.gaps.services import assign, dismiss
from qa.models import Answer, Gap, GapQuestion
from tests.accounts.test_undo import offered, take_back
from tests.accounts.test_undo import said as said_in
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

WIRE = ("What does a wire transfer cost?", "How much is a wire transfer?")
CAT = "How old does a cat get?"
CHESS = "Who won the chess game?"


@pytest.fixture
def expert():
    return make_staff(Role.SME)


def find(*questions: str) -> None:
    asker = make_user()
    for question in questions:
        make_answer(asker, question=question, decided_at=timezone.now())
    job = enqueue(gap_finding.KIND, {})
    run_job(job.pk, {gap_finding.KIND: gap_finding.find_gaps})


def gap_of(question: str) -> Gap:
    return Gap.objects.get(members__answer__question=question)


def asked_in(gap: Gap) -> set[str]:
    return set(gap.members.values_list("answer__question", flat=True))


def test_merged_gaps_are_one_that_later_runs_keep(expert):
    find(*WIRE, CAT)
    wires, cat = gap_of(WIRE[0]), gap_of(CAT)
    assert asked_in(wires) == set(WIRE)

    kept = merge([cat.pk, wires.pk], by=expert)
    find("At what age does a cat die?")

    assert (kept, kept.questions, kept.askers) == (wires, 3, 1)
    assert asked_in(kept) >= {*WIRE, CAT}
    assert not Gap.objects.filter(pk=cat.pk).exists()
    together = 2 * np.array(wires.vector) + np.array(cat.vector)
    together /= np.linalg.norm(together)
    assert np.allclose(kept.vector, together, atol=1e-5)


def test_questions_that_are_split_off_stay_so_and_later_ones_join_the_nearer(expert):
    find(*WIRE, CAT)
    mixed = merge([gap_of(WIRE[0]).pk, gap_of(CAT).pk], by=expert)
    chosen = mixed.members.get(answer__question=CAT)

    made = split(mixed.pk, by=expert, question_ids=[chosen.pk])
    find(CAT, WIRE[0])

    mixed.refresh_from_db()
    made.refresh_from_db()
    assert (made.question, made.state, made.questions) == (CAT, "open", 2)
    assert (asked_in(made), asked_in(mixed)) == ({CAT}, set(WIRE))
    assert (mixed.questions, mixed.question in WIRE) == (3, True)
    assert np.isclose(np.linalg.norm(mixed.vector), 1, atol=1e-5)
    assert Gap.objects.count() == 2


def test_a_gap_whose_own_question_is_moved_gets_another(expert):
    find(*WIRE)
    gap = gap_of(WIRE[0])
    own = gap.members.get(answer__question=gap.question)
    (other,) = {*WIRE} - {gap.question}

    made = split(gap.pk, by=expert, question_ids=[own.pk])

    assert made.question == own.answer.question
    gap.refresh_from_db()
    assert (gap.question, gap.questions) == (other, 1)


def test_only_open_gaps_of_one_knowledge_base_that_one_sees_are_regrouped(expert):
    find(*WIRE, CAT, CHESS)
    wires, cat, chess = gap_of(WIRE[0]), gap_of(CAT), gap_of(CHESS)
    member = wires.members.first()
    assert member is not None
    dismiss(cat.pk, by=expert, reason="Small talk.")
    Gap.objects.filter(pk=chess.pk).update(knowledge_base=make_knowledge_base("loans"))
    vault = make_audience("vault", groups=["vault"])
    hidden = Gap.objects.create(
        knowledge_base=wires.knowledge_base, question="The limit?", vector=wires.vector,
        entry=make_entry("900.", audience=vault), state=Gap.State.DRAFTED,
        drafted_at=timezone.now(), first_seen=timezone.now(), last_seen=timezone.now(),
    )  # fmt: skip

    for others, error, said in (
        ([], InvalidGapError, "gaps to merge, not 1"),
        ([cat], GapClosedError, "is dismissed; reopen it first"),
        ([chess], InvalidGapError, "several knowledge bases"),
        ([hidden], GapNotFoundError, "no gap"),
    ):
        with pytest.raises(error, match=said):
            merge([wires.pk, *(each.pk for each in others)], by=expert)
    with pytest.raises(GapNotFoundError):
        split(wires.pk, by=make_user(Role.AGENT), question_ids=[member.pk])
    with pytest.raises(GapClosedError):
        split(cat.pk, by=expert, question_ids=[member.pk])
    assert Gap.objects.count() == 4


def test_what_cannot_be_split_off_is_said(expert):
    find(*WIRE, CAT)
    wires, cat = gap_of(WIRE[0]), gap_of(CAT)
    theirs = list(wires.members.values_list("pk", flat=True))

    for chosen, said in (
        ([], "No question is chosen"),
        (theirs, "leave at least one of them"),
        (list(cat.members.values_list("pk", flat=True)), "choose again"),
    ):
        with pytest.raises(InvalidGapError, match=said):
            split(wires.pk, by=expert, question_ids=chosen)


def test_the_list_names_what_is_merged_and_merges_it_once_confirmed(client, expert):
    find(*WIRE, CAT)
    wires, cat = gap_of(WIRE[0]), gap_of(CAT)
    client.force_login(expert)
    address = reverse("admin:qa_gap_changelist") + "?state__exact=open"
    given = {"action": "merge_chosen", "_selected_action": [cat.pk, wires.pk]}

    named = client.post(address, given).content.decode()
    alone = {**given, "_selected_action": [cat.pk]}
    refused = client.post(address, alone, follow=True).content.decode()
    assert Gap.objects.count() == 2
    done = client.post(address, {**given, "confirm": "1"}, follow=True)

    assert f"<strong>{wires.question}</strong> (2 questions)" in named
    assert f"<li>{CAT} (1 question)</li>" in named
    assert "Choose 2 to 50 gaps to merge, not 1." in refused
    assert "has 3 questions." in done.content.decode()
    assert Gap.objects.get() == wires
    assert CAT in LogEntry.objects.get().change_message


def test_a_gaps_page_moves_the_questions_that_are_ticked(client, expert):
    find(*WIRE)
    gap = gap_of(WIRE[0])
    member = gap.members.get(answer__question=WIRE[1])
    client.force_login(expert)
    address = reverse("admin:qa_gap_change", args=[gap.pk])

    nothing = client.post(address, {"how": "split"}).content.decode()
    client.post(address, {"how": "split", "moved": [member.pk]})

    assert "No question is chosen; choose those to move." in nothing
    assert gap_of(WIRE[1]) != gap
    assert asked_in(gap) == {WIRE[0]}


def test_agents_merge_nothing(client):
    find(*WIRE, CAT)
    client.force_login(make_staff(Role.AGENT))
    chosen = list(Gap.objects.values_list("pk", flat=True))
    given = {"action": "merge_chosen", "_selected_action": chosen, "confirm": "1"}

    got = client.post(reverse("admin:qa_gap_changelist") + "?state__exact=open", given)

    assert got.status_code == 403
    assert Gap.objects.count() == 2


def test_erased_questions_do_not_say_where_a_gap_lies(expert):
    find(*WIRE, CAT)
    mixed = merge([gap_of(WIRE[0]).pk, gap_of(CAT).pk], by=expert)
    cat = mixed.members.get(answer__question=CAT)
    gone = mixed.members.get(answer__question=WIRE[0])
    Answer.objects.filter(pk=gone.answer_id).update(
        question="", erased_at=timezone.now()
    )

    split(mixed.pk, by=expert, question_ids=[cat.pk])

    mixed.refresh_from_db()
    assert mixed.question == WIRE[1]


@pytest.fixture
def merged(expert):
    """Merge two gaps, one of them somebody's; return what was there, and what takes it back."""
    find(*WIRE, CAT)
    wires, cat = gap_of(WIRE[0]), gap_of(CAT)
    assign(cat.pk, by=expert, owner=expert)
    before = everything()
    kept, noted = merge_undoably([cat.pk, wires.pk], by=expert)
    assert (kept, Gap.objects.count()) == (wires, 1)
    return before, json.loads(json.dumps(noted))


def everything() -> list[object]:
    rows = [Gap.objects.order_by("pk"), GapQuestion.objects.order_by("pk")]
    values = [[list(row.items()) for row in each.values()] for each in rows]
    return [[[(k, str(v)) for k, v in row] for row in each] for each in values]


def test_merged_gaps_are_split_again_exactly_as_they_were(expert, merged):
    before, noted = merged

    undo_merging(noted, expert)

    assert everything() == before
    with pytest.raises(ChangedSinceError, match="split again already"):
        undo_merging(noted, expert)


def test_what_was_asked_since_stays_in_the_gap_that_stayed(expert, merged):
    _, noted = merged
    (asked,) = GapQuestion.objects.filter(answer__question=CAT)
    find(WIRE[1])

    undo_merging(noted, expert)

    assert sorted(gap.questions for gap in Gap.objects.all()) == [1, 3]
    asked.refresh_from_db()
    assert asked_in(asked.gap) == {CAT}
    wires = gap_of(WIRE[0])
    assert wires.members.count() == 3
    assert np.isclose(np.linalg.norm(wires.vector), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("dismissed", "is dismissed; reopen it first. Nothing is undone"),
        ("assigned", "assigned to nobody since"),
        ("split", "moved to another gap since"),
        ("merged", "There is no gap"),
    ],
)
def test_gaps_that_were_dealt_with_since_stay_merged(expert, merged, change, said):
    _, noted = merged
    kept = Gap.objects.get()
    if change == "dismissed":
        dismiss(kept.pk, by=expert, reason="Small talk.")
    elif change == "assigned":
        assign(kept.pk, by=expert, owner=None)
    elif change == "split":
        moved = kept.members.get(answer__question=CAT)
        split(kept.pk, by=expert, question_ids=[moved.pk])
    else:
        find(
            "Who won the chess game?",
            "Who won the last game of chess?",
            "Who has won the chess game?",
            "Who was the winner of the chess game?",
        )
        merge(Gap.objects.values_list("pk", flat=True), by=expert)
    now = everything()

    with pytest.raises(ChangedSinceError, match=said):
        undo_merging(noted, expert)

    assert everything() == now


def test_words_that_were_erased_since_do_not_come_back(expert, merged):
    _, noted = merged
    erased = Answer.objects.filter(question=CAT)
    erased.update(question="[erased]", erased_at=timezone.now())

    undo_merging(noted, expert)

    assert set(Gap.objects.values_list("question", flat=True)) == {
        WIRE[0],
        "[erased]",
    }


def test_the_list_merges_gaps_and_offers_to_undo_it(client, expert):
    find(*WIRE, CAT)
    before = everything()
    client.force_login(expert)
    chosen = list(Gap.objects.values_list("pk", flat=True))
    given = {"action": "merge_chosen", "_selected_action": chosen, "confirm": "1"}
    address = reverse("admin:qa_gap_changelist") + "?state__exact=open"

    done = client.post(address, given, follow=True)
    assert Gap.objects.count() == 1
    undone = take_back(client, offered(done))

    assert everything() == before
    assert said_in(undone)[0].startswith("Undone: 2 gaps merged")


def test_very_many_questions_are_merged_for_good(expert, monkeypatch):
    find(*WIRE, CAT)
    monkeypatch.setattr(regrouping, "_MAX_NOTED", 0)

    kept, noted = merge_undoably(Gap.objects.values_list("pk", flat=True), by=expert)

    assert (kept.questions, noted) == (3, None)
