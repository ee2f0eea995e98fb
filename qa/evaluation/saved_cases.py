"""The test cases saved with a knowledge base: writing, import, export, conversion.

Files have the format of the suite own: one JSON object per line.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction

from accounts.ids import digest, number_in
from accounts.people import group_names
from accounts.roles import Role, refuse_elsewhere
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.exceptions import EvaluationDataError
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.values import NO_TEXT, clean_text

from .cases import Case, as_row, question_id, read_cases
from .models import SavedCase

_LONGEST = 500
MAX_CASES = 500
"""Per knowledge base, since all are asked before every activation."""


def cases_of(knowledge_base: KnowledgeBase) -> list[tuple[SavedCase, Case]]:
    """Return all test cases, whoever reads them, as rows and cases (three queries)."""
    rows = SavedCase.objects.filter(knowledge_base=knowledge_base)
    return _as_cases(list(rows.prefetch_related("groups")))


def visible_cases(
    knowledge_base: KnowledgeBase, reader: User
) -> list[tuple[SavedCase, Case]]:
    rows = SavedCase.objects.visible_to(reader).filter(knowledge_base=knowledge_base)
    return _as_cases(list(rows.prefetch_related("groups")))


def digest_of_cases(cases: Iterable[Case]) -> str:
    rows = sorted((as_row(case) for case in cases), key=lambda row: str(row["id"]))
    return digest(json.dumps(rows, sort_keys=True))


def as_lines(cases: Iterable[Case]) -> str:
    """Return cases as JSON Lines, as read by `evaluate own` and `import_cases`."""
    return "".join(
        f"{json.dumps(as_row(each), ensure_ascii=False)}\n" for each in cases
    )


def save_case(
    question: str,
    *,
    knowledge_base: KnowledgeBase,
    expects_answer: bool,
    entries: Sequence[int],
    asker: User,
    by: User,
) -> SavedCase:
    """Save a test case for a question of `asker`, replacing an earlier one."""
    text = clean_text(question)
    groups = set(asker.groups.exclude(name__in=[*Role]))
    if asker.is_superuser:  # stand-in: members of groups that may see these entries
        found = Audience.objects.filter(entries__in=entries, everyone=False)
        groups |= set(Group.objects.filter(audiences__in=found))
    names = group_names(groups)
    case = Case(
        id=key_of(text, names),
        question=text,
        is_answerable=expects_answer,
        evidence=tuple(map(str, entries)) if expects_answer else (),
        asker=tuple(names),
    )
    (saved,) = write_cases([case], knowledge_base=knowledge_base, by=by)
    return saved


def key_of(question: str, groups: Sequence[str]) -> str:
    """Return the id of a question asked by members of these groups."""
    key = question_id(question)
    return f"{key}-{digest(*sorted(groups))[:8]}" if groups else key


def import_cases(file: Path, *, knowledge_base: KnowledgeBase, by: User) -> int:
    """Save all cases of a file, or none; those with a known id are updated."""
    cases = read_cases(file)
    return len(write_cases(cases, knowledge_base=knowledge_base, by=by))


@transaction.atomic
def write_cases(
    cases: Sequence[Case], *, knowledge_base: KnowledgeBase, by: User
) -> list[SavedCase]:
    """Save all cases or none; `check_cases` lists what is refused."""
    refuse_elsewhere(by, knowledge_base.pk, Role.SME)
    # Lock, so that concurrent writes can't exceed the limit.
    rows = KnowledgeBase.objects.select_for_update(no_key=True)
    rows.get(pk=knowledge_base.pk).check_in_use()
    there = check_cases(cases, knowledge_base=knowledge_base, by=by)
    groups = _known_groups(cases, by)
    entries = _known_entries(cases, knowledge_base, by)
    return [
        _write(
            there.get(case.id)
            or SavedCase(knowledge_base=knowledge_base, key=case.id, created_by=by),
            case,
            [entries[number] for number in case.evidence],
            [groups[name] for name in case.asker],
        )
        for case in cases
    ]


def check_cases(
    cases: Sequence[Case], *, knowledge_base: KnowledgeBase, by: User
) -> dict[str, SavedCase]:
    """Check that the cases can be saved; return the existing ones of the base by id.

    Raises:
        EvaluationDataError: A case is inconsistent or too long, has the id of a case
            hidden from `by`, or names an entry or a group that `by` may not use; or
            there are too many.
    """
    known = SavedCase.objects.filter(knowledge_base=knowledge_base)
    there = {case.key: case for case in known}
    editable = set(known.visible_to(by).values_list("key", flat=True))
    _known_groups(cases, by)
    _known_entries(cases, knowledge_base, by)
    if len(there.keys() | {case.id for case in cases}) > MAX_CASES:
        raise EvaluationDataError(
            f"A knowledge base holds at most {MAX_CASES} test cases, since all are "
            "asked before every activation. Delete some first."
        )
    for case in cases:
        _check(case)
        if case.id in there and case.id not in editable:
            raise EvaluationDataError(
                f"The id {case.id!r} is taken by a test case that you may not see; "
                "choose another."
            )
    return there


def _write(
    row: SavedCase, case: Case, entries: Sequence[Entry], groups: Sequence[Group]
) -> SavedCase:
    expect = SavedCase.Expect
    row.question = clean_text(case.question)
    row.expect = expect.ANSWERED if case.is_answerable else expect.REFUSED
    row.answer_contains = list(case.answer_contains)
    row.references = list(case.references)
    row.gate = case.gate.value if case.gate else ""
    row.reason = case.reason.value if case.reason else ""
    row.group = case.group
    row.save()
    row.entries.set(entries)
    row.groups.set(groups)
    return row


def _check(case: Case) -> None:
    limit = settings.QUESTION_MAX_CHARACTERS
    if not any(map(str.isalnum, case.question)):
        raise EvaluationDataError("Type a question first.")
    if len(case.question) > limit:
        raise EvaluationDataError(
            f"The question of {case.id!r} has {len(case.question):,} characters and may "
            f"have {limit:,}; shorten it."
        )
    if not case.is_answerable and (case.evidence or case.answer_contains):
        raise EvaluationDataError(
            f"{case.id!r} should be refused, so it can't expect evidence or a text; "
            "leave evidence and answer_contains out."
        )
    said = (*case.answer_contains, *case.references)
    for text in (case.question, *said):
        if found := NO_TEXT.search(text):
            raise EvaluationDataError(
                f"{case.id!r} contains U+{ord(found[0]):04X}, which is not text; remove it."
            )
    long = [text for text in said if len(text) > _LONGEST]
    if long:
        raise EvaluationDataError(
            f"{case.id!r}: {long[0][:40]!r}… has more than {_LONGEST} characters; "
            "shorten it."
        )


def _known_groups(cases: Iterable[Case], by: User) -> dict[str, Group]:
    """Return the groups of the askers, none of which may see more than `by`.

    A role is refused, since an account with that role would be created to ask.
    """
    wanted = {name for case in cases for name in case.asker}
    found = {group.name: group for group in Group.objects.filter(name__in=wanted)}
    hidden = Audience.objects.hidden_from(by)
    beyond = Group.objects.filter(name__in=wanted, audiences__in=hidden)
    refused = {*beyond.values_list("name", flat=True), *(role.value for role in Role)}
    if missing := sorted((wanted - found.keys()) | (wanted & refused)):
        raise EvaluationDataError(
            f'{missing[0]!r} is not a group you can use in "as": it must exist, not '
            "be a role, and its members must see no more than you do."
        )
    return found


def _known_entries(
    cases: Iterable[Case], knowledge_base: KnowledgeBase, by: User
) -> dict[str, Entry]:
    wanted = {name: number_in(name) for case in cases for name in case.evidence}
    numbers = [number for number in wanted.values() if number is not None]
    rows = Entry.objects.visible_to(by).filter(knowledge_base=knowledge_base)
    found = rows.only("pk").in_bulk(numbers)
    for name, number in wanted.items():
        if number not in found:
            raise EvaluationDataError(
                f"There is no entry {name[:40]!r} in {knowledge_base.slug} that you may "
                "see; evidence holds ids of entries."
            )
    return {
        name: found[number] for name, number in wanted.items() if number is not None
    }


def _as_cases(saved: Sequence[SavedCase]) -> list[tuple[SavedCase, Case]]:
    # Via the through table, so that the result does not depend on the reader.
    rows = SavedCase.entries.through.objects.filter(savedcase__in=saved)
    named: dict[int, list[int]] = defaultdict(list)
    for case, entry in rows.order_by("entry_id").values_list(
        "savedcase_id", "entry_id"
    ):
        named[case].append(entry)
    return [(each, _as_case(each, named[each.pk])) for each in saved]


def _as_case(saved: SavedCase, entries: Sequence[int]) -> Case:
    return Case(
        id=saved.key,
        question=saved.question,
        is_answerable=saved.expect == SavedCase.Expect.ANSWERED,
        gate=Gate(saved.gate) if saved.gate else None,
        reason=Reason(saved.reason) if saved.reason else None,
        evidence=tuple(map(str, entries)),
        answer_contains=tuple(saved.answer_contains),
        asker=tuple(group_names(saved.groups.all())),
        references=tuple(saved.references),
        group=saved.group,
    )
