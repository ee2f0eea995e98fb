import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from django.core.management import call_command

from kb.models import Entry, KnowledgeBase
from kb.types import Evidence
from qa.evaluation.judging import Judged
from qa.exceptions import EvaluationDataError
from qa.models import EvaluationRun
from studies.l2r.command import Command
from studies.l2r.questions import Choice, ChoiceQuestion
from studies.l2r.suites import MULTIPLE_CHOICE, open_truthfulqa
from studies.l2r.tables import table_3
from studies.l2r.tallies import (
    L2R,
    MC1,
    NO_GATE,
    WITHOUT_STEPS,
    alpha_sweep,
    plain_tally,
    tally,
    ungated_tally,
)
from tests.studies.l2r.data_files import (
    write_commonsenseqa,
    write_medqa,
    write_truthfulqa,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@dataclass
class Chooser:
    """Knows every right option, and remembers what it was asked with."""

    verdict: float = 0.9
    asked: list[tuple[str, int]] = field(default_factory=list)
    fingerprint: str = "c" * 64

    def choose(self, question: ChoiceQuestion, evidence: Sequence[Evidence]) -> Choice:
        self.asked.append((question.question, len(evidence)))
        return Choice(
            scores=tuple(
                float(index in question.correct)
                for index in range(len(question.options))
            ),
            chosen=question.correct,
            cited=(1,) if evidence else (),
            reasoning="",
            can_answer=self.verdict >= 0.5,
            verdict_probability=self.verdict if evidence else None,
            readable=True,
            repaired=False,
            milliseconds=1.0,
        )


def test_with_all_gold_knowledge_every_question_is_answered(tmp_path):
    chooser = Chooser()
    suite = open_truthfulqa(
        several=False, model=lambda: chooser, data=write_truthfulqa(tmp_path)
    )

    rows = [suite.judge(case_id) for case_id in suite.case_ids]

    assert len(rows) == 4
    assert all(row.is_answered and row.is_correct for row in rows)
    assert all(row.measures["accuracy"] == 1.0 for row in rows)
    assert all(row.group == "Nature" for row in rows)
    assert all(0 < (row.signals["verified_ratio"] or 0) < 0.85 for row in rows)
    assert "leak" in suite.protocol


def test_a_hard_refusal_never_reaches_the_model(tmp_path):
    chooser = Chooser()
    suite = open_truthfulqa(
        several=False,
        ratio=0.25,
        model=lambda: chooser,
        data=write_truthfulqa(tmp_path),
    )

    rows = [suite.judge(case_id) for case_id in suite.case_ids]

    refused = [row for row in rows if row.gate == "hard_refusal"]
    assert len(refused) == 3
    assert len(chooser.asked) == 1
    assert all(row.is_correct is None for row in refused)


def test_in_shadow_every_signal_is_measured_and_the_gates_can_be_played_again(tmp_path):
    suite = open_truthfulqa(
        several=False,
        ratio=0.25,
        model=Chooser,
        data=write_truthfulqa(tmp_path),
        shadow=True,
    )

    rows = [suite.judge(case_id) for case_id in suite.case_ids]

    assert all(row.is_answered for row in rows)
    assert all(row.signals["verdict_probability"] == 0.9 for row in rows)
    assert tally(rows, L2R).answered == 1
    assert tally(rows, L2R).refusals_right == 0.0
    assert tally(rows, NO_GATE).answered == 4
    assert plain_tally(rows).accuracy == ungated_tally(rows).accuracy == 1.0
    refused = [4 - made.answered for _, made in alpha_sweep(rows, (0.1, 0.8, 2.0), soft=True)]  # fmt: skip
    assert refused == [4, 3, 0]


def test_a_low_verdict_is_a_soft_refusal(tmp_path):
    suite = open_truthfulqa(
        several=False,
        model=lambda: Chooser(verdict=0.1),
        data=write_truthfulqa(tmp_path),
    )

    row = suite.judge(suite.case_ids[0])

    assert (row.gate, row.reason) == ("soft_refusal", "model_declined")
    assert row.is_correct is True  # the draft, which nobody is shown


def test_without_knowledge_all_is_refused_and_the_model_is_asked_closed_book(tmp_path):
    chooser = Chooser()
    suite = open_truthfulqa(
        several=True, ratio=0.0, model=lambda: chooser, data=write_truthfulqa(tmp_path)
    )

    rows = [suite.judge(case_id) for case_id in suite.case_ids]

    assert not any(row.is_answered for row in rows)
    assert {row.reason for row in rows} == {"nothing_known"}
    assert [pieces for _, pieces in chooser.asked] == [0] * 4
    assert tally(rows, L2R).answered == 0
    assert plain_tally(rows).accuracy == 1.0


def test_a_limited_run_asks_the_same_of_the_same_knowledge(tmp_path):
    data = write_truthfulqa(tmp_path)
    whole = open_truthfulqa(several=False, ratio=0.5, model=Chooser, data=data)
    part = open_truthfulqa(several=False, ratio=0.5, model=Chooser, data=data, limit=2)

    assert part.case_ids == whole.case_ids[:2]
    assert part.knowledge_base == whole.knowledge_base
    ours, theirs = part.judge(part.case_ids[1]), whole.judge(part.case_ids[1])
    assert ours.signals == theirs.signals


def test_medqa_asks_its_corpus_and_needs_one(tmp_path, settings):
    data = write_medqa(tmp_path)
    corpus = tmp_path / "texts.jsonl"
    corpus.write_text(json.dumps({"text": "A sprained ankle needs rest."}) + "\n")

    suite = MULTIPLE_CHOICE["medqa-corpus"](data=data, knowledge=corpus)

    assert Entry.objects.filter(knowledge_base=suite.knowledge_base).count() == 1
    assert "release" in suite.protocol
    with pytest.raises(EvaluationDataError, match="--knowledge"):
        MULTIPLE_CHOICE["medqa-corpus"](data=data)


def test_commonsenseqa_without_knowledge_is_closed_book(tmp_path):
    suite = MULTIPLE_CHOICE["commonsenseqa"](data=write_commonsenseqa(tmp_path))

    row = suite.judge("c1")

    assert row.reason == "nothing_known"
    assert row.measures["plain_accuracy"] in (0.0, 1.0)


def test_the_model_writes_what_other_sets_are_asked_against(tmp_path):
    write_commonsenseqa(tmp_path)
    data, output = write_medqa(tmp_path), io.StringIO()
    file = next(data.glob("medqa/*.jsonl"))
    row = json.loads(file.read_text().splitlines()[0])
    long = "He walks with a stick and has pain.\n" * 40 + row["question"]
    file.write_text(json.dumps({**row, "question": long}) + "\n")

    call_command(
        Command(), data=data, knowledge="enriched", tables=(2,), limit=1,
        stdout=output, stderr=io.StringIO(),
    )  # fmt: skip

    for line in (
        "| commonsenseqa | without either, stated confidence | 1 of 1 |",
        "| medqa | without either, checked confidence | 1 of 1 |",
        "| 451 at 52.8 % |",
    ):
        assert line in output.getvalue()
    written = KnowledgeBase.objects.get(slug__contains="eval-medqa-by", slug__endswith="stated")  # fmt: skip
    assert Entry.objects.get(knowledge_base=written).text.startswith("He walks")


def test_the_tables_are_written_once_and_found_again(tmp_path):
    data, output = write_truthfulqa(tmp_path), io.StringIO()
    arguments = {"data": data, "output": tmp_path / "out", "stderr": io.StringIO()}

    call_command(Command(), stdout=output, **arguments)
    runs = set(EvaluationRun.objects.values_list("pk", flat=True))
    call_command(Command(), stdout=io.StringIO(), **arguments)

    assert len(runs) == 10
    assert set(EvaluationRun.objects.values_list("pk", flat=True)) == runs
    text = output.getvalue()
    assert "| truthfulqa-mc1 | 0 L2R | 0 of 4 |" in text
    assert "516 at 93.4 %" in text
    made = json.loads((tmp_path / "out" / "l2r.json").read_text())
    assert set(made["tables"]) == {"table-1", "table-3", "table-4", "figure-5", "figure-6"}  # fmt: skip
    assert (tmp_path / "out" / "figure-5-truthfulqa-mc1.svg").read_bytes()[:5] == b"<svg "  # fmt: skip


@pytest.mark.parametrize("asked", [True, False])
def test_the_ablation_without_steps_is_a_run_of_its_own(tmp_path, asked):
    suite = MULTIPLE_CHOICE["truthfulqa-mc1"](
        data=write_truthfulqa(tmp_path), shadow=True
    )
    rows = [suite.judge(case_id) for case_id in suite.case_ids]
    runs: dict[tuple[str, float | None], list[Judged]] = {(MC1, 1.0): rows}
    if asked:
        runs[f"{MC1} {WITHOUT_STEPS}", 1.0] = rows[:3]

    line = table_3(runs).lines[-1]

    assert line.label == WITHOUT_STEPS
    assert (line.ours.asked if line.ours else None) == (3 if asked else None)
    assert bool(line.remark) is not asked
