"""The parts of the headline report: their studies, arguments and amounts of work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

DATA: Final = "{data}"
RUN: Final = "{run}"


class Work(StrEnum):
    """Kinds of work that parts do per item; `studies.headline.cost` times them."""

    ANSWER = "closed-book answer"
    LOOK = "look at a prompt"
    JUDGE = "verdict after examples"
    GROUNDED = "answer from evidence"
    CHOICE = "choice between options"
    SEGMENT = "monitored sentence"


class Needs(StrEnum):
    """What a part needs before its study runs; made if missing."""

    NOTHING = ""
    RUN = "a run of SQuAD 2.0 in shadow"
    DIRECTIONS = "directions"


@dataclass(frozen=True, slots=True)
class Part:
    """One study with one set of arguments.

    Attributes:
        arguments: The study's arguments by the share of the questions, in (0, 1].
            `DATA` and `RUN` are filled in at the start, so results do not depend on
            them.
        work: The number of items of each kind of work, by that share.
        files: Patterns of the files read, relative to the data directory.
    """

    name: str
    study: str
    method: str
    arguments: Callable[[float], Sequence[str]]
    work: Callable[[float], Mapping[Work, int]]
    files: Sequence[str]
    needs: Needs = Needs.NOTHING


# Every fit and interval needs at least this many questions.
_MIN: Final = 20
_SQUAD: Final = "squad/*.json"
_TRIVIA: Final = "triviaqa/*.jsonl"
_TRIVIA_FILE: Final = "triviaqa/triviaqa_test.jsonl"
_OTHERS: Final = ("commonsenseqa/*.jsonl", "medqa/*.jsonl")
_ABSTRACTS: Final = "scifact/corpus.jsonl"
_TRUTHFUL: Final = "truthfulqa/*"
_OPEN: Final = (
    _TRIVIA, "nq_open/*.jsonl", "webquestions/*.json", "popqa/*.jsonl",
    "freshqa/*.jsonl", "selfaware/*.json",
)  # fmt: skip
_TIMED: Final = (*_OPEN, _TRUTHFUL, _SQUAD, "doc2dial/*.jsonl", "true_false/*.csv")
_CHOICES: Final = 817  # the number of TruthfulQA's questions
_TWO_HOP: Final = 409  # the number of questions made from the data
_TRUE: Final = tuple(
    f"true_false/{name}_true_false.csv"
    for name in ("capitals", "cities", "companies", "elements", "inventions")
)


def _of(full: int, share: float, *, least: int = _MIN) -> int:
    return max(min(least, full), round(full * share))


def _limit(full: int, share: float) -> list[str]:
    return [] if share >= 1 else ["--limit", str(_of(full, share))]


def drafted(share: float) -> int:
    """Return the number of answers for abstention; a probe needs at least 400."""
    return _of(2_500, share, least=500)


def _words(*parts: object) -> list[str]:
    """Return --data and these arguments, with strings split at spaces."""
    words = [word for part in parts for word in str(part).split()]
    return ["--data", DATA, *words]


def _timing(first: int, *deciders: str) -> Callable[[float], Sequence[str]]:
    def arguments(share: float) -> list[str]:
        return _words(
            "--questions",
            _of(100, share, least=40),
            "--teaching",
            _of(250, share, least=150),
            "--first",
            _of(first, share, least=10),
            "--deciders",
            *deciders,
        )

    return arguments


def _timing_work(first: int, *, monitored: bool) -> Callable[[float], dict[Work, int]]:
    def work(share: float) -> dict[Work, int]:
        asked = 14 * _of(first, share, least=10)
        taught = 4 * _of(250, share, least=150)
        found = {Work.ANSWER: 2 * asked + taught + taught // 8}
        if monitored:
            return {**found, Work.SEGMENT: asked}
        return {**found, Work.LOOK: asked + taught, Work.JUDGE: asked}

    return work


PARTS: Final[Sequence[Part]] = (
    Part(
        "l2r",
        "l2r",
        "Learn to Refuse: Tables 3 and 4, gold knowledge",
        lambda share: _words("--tables 1,3,4") + _limit(_CHOICES, share),
        lambda share: {Work.CHOICE: 20 * _of(_CHOICES, share)},
        [_TRUTHFUL],
    ),
    Part(
        "l2r_enriched",
        "l2r",
        "Learn to Refuse: Tables 1 and 3, knowledge that the model wrote",
        lambda share: _words("--knowledge enriched") + _limit(_CHOICES, share),
        lambda share: {
            Work.CHOICE: 8 * _of(_CHOICES, share),
            Work.ANSWER: 5 * _of(_CHOICES, share),
        },
        [_TRUTHFUL],
    ),
    Part(
        "l2r_others",
        "l2r",
        "Learn to Refuse: Table 2, CommonsenseQA and MedQA",
        lambda share: _words("--tables 2 --figures= --limit", _of(300, share)),
        lambda share: {Work.CHOICE: 2 * _of(300, share)},
        _OTHERS,
    ),
    Part(
        "l2r_others_enriched",
        "l2r",
        "Learn to Refuse: Table 2, knowledge that the model wrote",
        lambda share: _words(
            "--knowledge enriched --tables 2 --limit", _of(100, share)
        ),
        lambda share: {
            Work.CHOICE: 4 * _of(100, share),
            Work.ANSWER: 10 * _of(100, share),
        },
        _OTHERS,
    ),
    Part(
        "l2r_corpus",
        "l2r",
        "Learn to Refuse: Table 2, MedQA with abstracts of papers",
        lambda share: _words(
            f"--tables 2 --figures= --corpus {DATA}/{_ABSTRACTS} --limit",
            _of(100, share),
        ),
        lambda share: {Work.CHOICE: 3 * _of(100, share)},
        [*_OTHERS, _ABSTRACTS],
    ),
    Part(
        "abstention",
        "abstention",
        "Response abstinence: Tables 1, 2 and 4",
        lambda share: [
            "--runs",
            RUN,
            *([] if share >= 1 else ["--without", "learning"]),
        ],
        lambda share: {Work.GROUNDED: drafted(share), Work.LOOK: 5 * drafted(share)},
        [_SQUAD],
        Needs.RUN,
    ),
    Part(
        "cbdr_reranker",
        "cbdr_reranker",
        "CBDR: Tables 1 to 3, reranker (P@k) and gate",
        lambda share: _words(
            f"--others {DATA}/{_TRIVIA_FILE} --notes 6 --group 4 --epochs 2 "
            "--learning-rate 1e-4 --questions",
            _of(640, share, least=480),
        ),
        lambda share: {
            Work.ANSWER: 4 * _of(640, share, least=480),
            Work.LOOK: 6 * _of(640, share, least=480),
        },
        [_SQUAD, _TRIVIA],
    ),
    Part(
        "cbdr_timing",
        "cbdr_timing",
        "CBDR and DH-ICL: retrieval rate and accuracy",
        _timing(50, "log-probability", "CBDR", "DH-ICL"),
        _timing_work(50, monitored=False),
        _TIMED,
    ),
    Part(
        "ctrla_timing",
        "cbdr_timing",
        "CtrlA: its monitor as a decider",
        _timing(20, "log-probability", "CtrlA"),
        _timing_work(20, monitored=True),
        _TIMED,
        Needs.DIRECTIONS,
    ),
    Part(
        "ctrla_steering",
        "ctrla_steering",
        "CtrlA: Figure 2, honesty steering",
        lambda share: (
            _words("--strengths -1 -0.3 0.3 1 3 6 12") + _limit(_CHOICES, share)
        ),
        lambda share: {Work.CHOICE: 8 * _of(_CHOICES, share)},
        [_TRUTHFUL],
        Needs.DIRECTIONS,
    ),
    Part(
        "ctrla_self_knowledge",
        "ctrla_self_knowledge",
        "CtrlA: Table 6, answerable against unanswerable questions",
        lambda share: _words("--steering 0.3 --questions", _of(50, share)),
        lambda share: {Work.SEGMENT: 4 * _of(50, share)},
        ["selfaware/*.json"],
        Needs.DIRECTIONS,
    ),
    Part(
        "ctrla_two_hop",
        "ctrla_two_hop",
        "CtrlA: Table 3, the whole loop on two-hop questions",
        lambda share: _words() + _limit(_TWO_HOP, share),
        lambda share: {
            Work.ANSWER: _of(_TWO_HOP, share),
            Work.GROUNDED: 3 * _of(_TWO_HOP, share),
            # Three answers after one search, and two loops with sentences and queries.
            Work.SEGMENT: 9 * _of(_TWO_HOP, share),
        },
        ["popqa/popqa_longtail.jsonl", *_TRUE],
        Needs.DIRECTIONS,
    ),
    Part(
        "dh_icl",
        "dh_icl",
        "DH-ICL: Tables 3 to 6, with and without the correction",
        lambda share: _words(
            "--balanced --labels true/false A/B yes/no --questions",
            _of(130, share),
            "--history",
            _of(250, share, least=50),
        ),
        lambda share: {
            Work.ANSWER: 6 * _of(130, share) + 4 * _of(250, share, least=50),
            # Three pairs of labels, judged three ways; balancing keeps a quarter.
            Work.JUDGE: 9 * 6 * _of(130, share) // 4,
        },
        _OPEN,
    ),
    Part(
        "dh_icl_evidence",
        "dh_icl",
        "DH-ICL: whether evidence answers, with and without the correction",
        lambda share: _words(
            "--evidence --labels true/false --questions",
            _of(60, share),
            "--history",
            _of(120, share, least=40),
        ),
        lambda share: {
            Work.GROUNDED: _of(60, share),
            Work.JUDGE: 2 * _of(60, share),
        },
        [_SQUAD],
    ),
)
BY_NAME: Final = {part.name: part for part in PARTS}


def data_files(part: Part, data: Path) -> list[Path]:
    """Return the data files that a part reads, sorted by path."""
    return sorted({file for pattern in part.files for file in data.glob(pattern)})
