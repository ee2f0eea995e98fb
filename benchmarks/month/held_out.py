"""Weekly results on held-out questions: coverage, false answers, false refusals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kb.models import KnowledgeBase
from qa.calibration.own_questions.choosing import LEAST
from qa.evaluation.cases import Case
from qa.evaluation.judging import Judged, by_expectation
from qa.evaluation.question_suite import AskedSuite
from qa.evaluation.report.svg_charts import (
    Description,
    house_style,
    panels,
    percent_axis,
    saved,
    styles,
)
from qa.models import Review
from qa.pipeline.gates import Gate
from qa.policies.models import Policy
from qa.policies.services import active_policy, new_version

from .questions import MonthQuestion


@dataclass(frozen=True, slots=True)
class Week:
    """The results on held-out questions after week `number`; shares in [0, 1].

    Attributes:
        coverage: Share of the answerable questions that are answered correctly.
        false_answers: Share of the shown answers that are wrong.
        false_refusals: Share of the answerable questions that are refused.
        at_equal: Coverage with at most as many wrong answers shown as in week 0, with a
            single threshold chosen in hindsight.
    """

    number: int
    labels: int
    policy: str
    coverage: float
    false_answers: float
    false_refusals: float
    wrong: int
    at_equal: float


def measured(
    number: int,
    knowledge_base: KnowledgeBase,
    held_out: Sequence[MonthQuestion],
    *,
    wrong_allowed: int | None,
) -> Week:
    policy = active_policy(knowledge_base)
    cases = [
        Case(
            id=str(place),
            question=one.text,
            is_answerable=bool(one.contains),
            answer_contains=one.contains,
            group=one.entry,
        )
        for place, one in enumerate(held_out)
    ]
    given = _asked(cases, knowledge_base, policy)
    due = max(1, sum(bool(one.contains) for one in held_out))
    shown = [judged for judged in given if judged.is_answered]
    bad = sum(judged.is_wrong_if_shown for judged in shown)
    refused = sum(bool(j.is_answerable) and not j.is_answered for j in given)
    allowed = bad if wrong_allowed is None else wrong_allowed
    lenient = _asked(cases, knowledge_base, _lenient(policy))
    return Week(
        number=number,
        labels=Review.objects.done().count(),
        policy=str(policy),
        coverage=(len(shown) - bad) / due,
        false_answers=bad / max(len(shown), 1),
        false_refusals=refused / due,
        wrong=bad,
        at_equal=right_among(lenient, allowed) / due,
    )


def _asked(
    cases: Sequence[Case], knowledge_base: KnowledgeBase, policy: Policy
) -> list[Judged]:
    suite = AskedSuite(
        name="weekly",
        protocol="",
        knowledge_base=knowledge_base,
        policy=policy,
        cases=cases,
        scoring=by_expectation,
        about={},
    )
    return [suite.judge(case_id) for case_id in suite.case_ids]


def _lenient(policy: Policy) -> Policy:
    """Return an inactive version of the policy that refuses as little as possible."""
    return new_version(
        policy,
        by=None,
        name="lenient",
        min_entry_answer=LEAST,
        min_answerability=0.0,
        hard_refusal=False,
        soft_refusal=False,
        support_check=False,
        abstention=False,
    )


def right_among(given: Iterable[Judged], allowed: int) -> int:
    """Return how many right answers a threshold can show with `allowed` wrong ones."""
    shown = [judged for judged in given if judged.is_answered]
    right = wrong = best = 0
    for judged in sorted(shown, key=_sureness, reverse=True):
        wrong += judged.is_wrong_if_shown
        right += not judged.is_wrong_if_shown
        if wrong <= allowed:
            best = right
    return best


def _sureness(judged: Judged) -> float:
    """Return the probability that the shown answer is right, by the gate that decided.

    A question in the words of an entry's own question, or of one that an expert
    confirmed, is answered by that entry regardless of the verifier.
    """
    if judged.gate == Gate.VERBATIM.value:
        return 1.0
    name = "entry_answers" if judged.gate == Gate.ENTRY.value else "answer_confidence"
    return judged.signals.get(name) or 0.0


def drawing(weeks: Mapping[str, Sequence[Week]], kind: str) -> bytes:
    """Plot the weeks, a panel for each kind of questions, as a file of type `kind`."""
    with house_style():
        figure, axes = panels(rows=len(weeks), height=3.6 * len(weeks))
        for each, (name, of_kind) in zip(axes, weeks.items(), strict=True):
            _draw(each, of_kind)
            each.set_title(name, loc="left")
        axes[0].legend(loc="best")
        axes[-1].set_xlabel("week")
        text = ". ".join(
            f"{name}: {'; '.join(map(_in_words, of_kind))}"
            for name, of_kind in weeks.items()
        )
        return saved(figure, kind, Description("Weeks of reviews", text))


def _draw(axes: Any, weeks: Sequence[Week]) -> None:
    across = [week.number for week in weeks]
    lines = (
        ("coverage", [week.coverage for week in weeks]),
        ("coverage at equal false answers", [week.at_equal for week in weeks]),
        ("false refusals", [week.false_refusals for week in weeks]),
        ("false answers", [week.false_answers for week in weeks]),
    )
    for (name, up), style in zip(lines, styles(), strict=False):
        axes.plot(across, up, label=name, **style)
    axes.set_xticks(across, [f"{w.number}\n{w.labels} labels" for w in weeks])
    axes.set_ylim(0, 1.02)
    percent_axis(axes.yaxis)


def _in_words(week: Week) -> str:
    return (
        f"week {week.number}, {week.labels} labels: coverage {week.coverage:.1%}, false "
        f"answers {week.false_answers:.1%}, false refusals {week.false_refusals:.1%}"
    )
