"""The questions of the comparison: their selection, parts and entries.

References:
    Vu et al., "FreshLLMs" (Findings of ACL 2024): FreshQA. Lin et al., "TruthfulQA"
    (ACL 2022), where an answer is right if it is nearer to a true than to a false one,
    here by ROUGE-L. The other sets are cited in the suites of their names.
"""

import csv
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

from qa.evaluation.cases import Case, in_seeded_order, read_lines, sample
from qa.evaluation.metrics.text import contains_gold, normalised, rouge_l
from qa.evaluation.suites.options import digest_of, find_file, misread
from qa.evaluation.suites.question_sets import read_open_domain, read_selfaware
from qa.exceptions import EvaluationDataError

_FRESHQA: Final = "freshqa"
_TRUTHFULQA: Final = "truthfulqa"
_MAX_ANSWERS: Final = 10  # answer columns of FreshQA
# Salts of the draws, which depend only on ids and the seed.
_WITH_ENTRY, _TESTED = 1, 2


class Part(StrEnum):
    """The use of a question.

    Fitting and histories see only `TEACHING`, choosing thresholds only `CALIBRATION`.
    """

    TEACHING = "teaching"
    CALIBRATION = "calibration"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class TimedQuestion:
    """A question of one set.

    Attributes:
        case: The case; its id starts with the set's name.
        wrong: Answers that the set marks as wrong; if there are any, an answer is right
            if it is nearer to a reference than to them.
        has_entry: Whether the knowledge base holds an entry that answers it.
    """

    data_set: str
    case: Case
    part: Part
    wrong: tuple[str, ...] = ()
    has_entry: bool = False

    def is_right(self, answer: str) -> bool:
        """Return whether an answer is right; to an unanswerable question none is."""
        references = self.case.references
        if self.case.is_answerable is False:
            return False
        if self.wrong:
            return rouge_l(answer, references) > rouge_l(answer, self.wrong)
        return contains_gold(answer, references) == 1.0


@dataclass(frozen=True, slots=True)
class Selection:
    """All questions, and a digest of their files (64 hex digits)."""

    questions: tuple[TimedQuestion, ...]
    data: str

    def of(self, *parts: Part, first: int | None = None) -> list[TimedQuestion]:
        """Return the questions of these parts.

        Args:
            first: Only this many of each set and part; all if None.
        """
        counts: Counter[tuple[str, Part]] = Counter()
        found = []
        for one in self.questions:
            counts[one.data_set, one.part] += 1
            is_early = first is None or counts[one.data_set, one.part] <= first
            if one.part in parts and is_early:
                found.append(one)
        return found


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of questions.

    Attributes:
        asked: Questions of each set, half of them to choose thresholds.
        teaching: Other questions of each set of `TEACHING` that deciders learn from.
        helped: Share in [0, 1] of the answerable questions that an entry answers.
        seed: Seed of every draw.
    """

    asked: int
    teaching: int
    helped: float = 0.5
    seed: int = 0


Read = tuple[Path, list[TimedQuestion]]


def _open_domain(name: str, data: Path) -> Read:
    file, cases = read_open_domain(name, data, is_answerable=True)
    return file, [TimedQuestion(name, case, Part.TEST) for case in cases]


def _selfaware(data: Path) -> Read:
    file, cases = read_selfaware(data)
    return file, [TimedQuestion("selfaware", case, Part.TEST) for case in cases]


def _freshqa(data: Path) -> Read:
    file = find_file(_FRESHQA, data, "freshqa/*.jsonl")

    def read(row: Mapping[str, Any]) -> TimedQuestion:
        answers = [row.get(f"answer_{number}") for number in range(_MAX_ANSWERS)]
        case = Case(
            id=str(row["id"]),
            question=row["question"],
            is_answerable=True,
            references=tuple(str(answer) for answer in answers if answer),
            group="",
        )
        return TimedQuestion(_FRESHQA, case, Part.TEST)

    return file, [asked for _, asked in read_lines(file, read)]


def _truthfulqa(data: Path) -> Read:
    file = find_file(_TRUTHFULQA, data, "truthfulqa/TruthfulQA.csv")
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    try:
        return file, [_truthful(number, row) for number, row in enumerate(rows)]
    except (KeyError, AttributeError) as error:
        raise misread(file, "TruthfulQA's table") from error


def _truthful(number: int, row: Mapping[str, str]) -> TimedQuestion:
    case = Case(
        id=str(number),
        question=row["Question"],
        is_answerable=True,
        references=_parts(f"{row['Best Answer']};{row['Correct Answers']}"),
    )
    return TimedQuestion(_TRUTHFULQA, case, Part.TEST, _parts(row["Incorrect Answers"]))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(p.strip() for p in text.split(";") if p.strip()))


_READERS: Final[Mapping[str, Callable[[Path], Read]]] = {
    **{
        name: partial(_open_domain, name)
        for name in ("nq-open", "triviaqa", "popqa", "webquestions")
    },
    _FRESHQA: _freshqa,
    "selfaware": _selfaware,
    _TRUTHFULQA: _truthfulqa,
}
SETS: Final = tuple(_READERS)
# Not SelfAware, whose sources reveal the label; nor FreshQA and TruthfulQA, which are
# small, and test whether what was learnt elsewhere holds for them too.
TEACHING: Final = ("nq-open", "triviaqa", "popqa", "webquestions")


def select(data: Path, sets: Sequence[str], sizes: Sizes) -> Selection:
    """Draw the questions of the sets, depending only on ids and the seed.

    Raises:
        EvaluationDataError: A file is missing or malformed, or a set is unknown.
    """
    if unknown := [name for name in sets if name not in _READERS]:
        raise EvaluationDataError(
            f"There is no set {unknown[0]!r}; choose from: {', '.join(SETS)}."
        )
    files, pools = [], {}
    for name in sets:
        file, read = _READERS[name](data)
        files.append(file)
        pools[name] = _named(name, read)
    asked = {name: _drawn(pool, sizes.asked, sizes) for name, pool in pools.items()}
    texts = {normalised(one.case.question) for rows in asked.values() for one in rows}
    questions = [one for name in sets for one in _halved(asked[name], sizes)]
    for name in (name for name in sets if name in TEACHING):
        others = [o for o in pools[name] if normalised(o.case.question) not in texts]
        drawn = _drawn(others, sizes.teaching, sizes) if sizes.teaching else []
        questions += [replace(one, part=Part.TEACHING) for one in drawn]
    return Selection(tuple(_helped(questions, sizes)), digest_of(*files))


def _named(name: str, rows: Iterable[TimedQuestion]) -> list[TimedQuestion]:
    """Return the questions that can be judged, with the set's name in their ids."""
    named = []
    for one in rows:
        # Punctuation alone normalises to nothing: every answer, or none, contains it.
        references = tuple(r for r in one.case.references if normalised(r))
        if references or one.case.is_answerable is False:
            case = replace(one.case, id=f"{name}:{one.case.id}", references=references)
            named.append(replace(one, case=case))
    return named


def _drawn(
    pool: Sequence[TimedQuestion], count: int, sizes: Sizes
) -> list[TimedQuestion]:
    by_id = {one.case.id: one for one in pool}
    drawn = sample([one.case for one in pool], count, seed=sizes.seed)
    return [by_id[case.id] for case in drawn]


def _halved(rows: Sequence[TimedQuestion], sizes: Sizes) -> list[TimedQuestion]:
    tested = _first_share(rows, 0.5, seed=_salted(sizes.seed, _TESTED))
    return [
        replace(one, part=Part.TEST if one.case.id in tested else Part.CALIBRATION)
        for one in rows
    ]


def _helped(rows: Sequence[TimedQuestion], sizes: Sizes) -> list[TimedQuestion]:
    """Mark a share of each set's and part's answerable questions as having an entry."""
    groups: dict[tuple[str, Part], list[TimedQuestion]] = {}
    for one in rows:
        if one.case.is_answerable:
            groups.setdefault((one.data_set, one.part), []).append(one)
    helped = {
        case_id
        for group in groups.values()
        for case_id in _first_share(
            group, sizes.helped, seed=_salted(sizes.seed, _WITH_ENTRY)
        )
    }
    return [replace(one, has_entry=one.case.id in helped) for one in rows]


def _first_share(rows: Sequence[TimedQuestion], share: float, *, seed: int) -> set[str]:
    ordered = in_seeded_order((one.case for one in rows), seed)
    return {case.id for case in ordered[: round(share * len(rows))]}


def _salted(seed: int, salt: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{salt}".encode()).digest()[:6])
