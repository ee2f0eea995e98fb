"""What a language model as judge adds to the judgement by the signals, on labelled pairs."""

from collections.abc import Sequence

from kb.conflicts import Judge, Judgement, Kind
from kb.conflicts.judgement import judge
from kb.conflicts.language_judge import is_unsure, with_opinion
from qa.evaluation.conflicts import HALVES, LabelledPair, qualities_of, told
from qa.evaluation.report.tables import TextTable


def judge_tables_of(
    pairs: Sequence[LabelledPair], language_judge: Judge
) -> tuple[TextTable, ...]:
    """Ask about the pairs on which the signals are unsure and count both ways.

    Raises:
        UnavailableError: The model can't be asked now.
    """
    rows, asked = [], []
    for half in HALVES:
        own = [pair for pair in pairs if pair.half == half]
        alone = [judge(p.first, p.second, distance=p.distance) for p in own]
        unsure = [at for at, each in enumerate(alone) if is_unsure(each)]
        opinions = language_judge.weigh([(own[a].first, own[a].second) for a in unsure])
        both: list[Judgement] = list(alone)
        for at, opinion in zip(unsure, opinions, strict=True):
            if opinion is not None:
                both[at] = with_opinion(alone[at], opinion)
        name = half.replace("_", " ")
        for how, judged in (("signals", alone), ("and the model", both)):
            kinds = [each.kind for each in judged]
            for kind, quality in qualities_of(own, kinds).items():
                rates = told(quality.precision), told(quality.recall)
                rows.append((name, kind.value, how, *rates))
        likeliest = [max(Kind, key=o.of) if o else None for o in opinions]
        right = sum(
            said is own[at].kind for at, said in zip(unsure, likeliest, strict=True)
        )
        most = max(sum(own[at].kind is kind for at in unsure) for kind in Kind)
        unread = sum(opinion is None for opinion in opinions)
        counts = (len(unsure), unread, right, most)
        asked.append((name, *map(str, counts)))
    return (
        TextTable(
            f"With {language_judge.name} as judge of the unsure pairs",
            ("half", "kind", "by", "precision", "recall"),
            tuple(rows),
            words=3,
        ),
        TextTable(
            "What the model said of them",
            ("half", "asked", "unreadable", "right", "of the commonest kind"),
            tuple(asked),
            words=1,
        ),
    )
