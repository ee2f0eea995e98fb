"""The suite "scifact": how well search ranks relevant documents; no model is asked.

nDCG: Järvelin and Kekäläinen, ACM TOIS 20 (2002); with linear gains, as in trec_eval
and BEIR.
"""

import csv
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Unpack

from kb.entries.models import Entry
from kb.search import embed_question, search
from kb.types import Scope
from qa.answers.sources import evidence_scope
from qa.evaluation.cases import Case, as_text, read_lines, sample
from qa.evaluation.judging import Judged, Suite
from qa.evaluation.knowledge import Fact, Source, ensure_knowledge, evaluation_user
from qa.evaluation.question_suite import CaseSuite
from qa.exceptions import EvaluationDataError
from qa.policies.models import Policy
from qa.policies.services import active_policy

from .options import (
    PROTOCOLS,
    SuiteOptions,
    digest_of,
    find_file,
    misread,
    refuse_others,
)


def recall_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    _check(ranked, relevant, k)
    return len(set(ranked[:k]) & set(relevant)) / len(set(relevant))


def ndcg_at(ranked: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Return the discounted gain of the first k relative to the best, in [0, 1]."""
    _check(ranked, [name for name, gain in gains.items() if gain > 0], k)
    got = _discounted([gains.get(name, 0.0) for name in ranked[:k]])
    return got / _discounted(sorted(gains.values(), reverse=True)[:k])


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 / the rank of the first relevant id, or 0 if none is ranked."""
    _check(ranked, relevant, 1)
    wanted = set(relevant)
    places = (place for place, name in enumerate(ranked, 1) if name in wanted)
    return 1 / next(places, math.inf)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def _check(ranked: Sequence[str], relevant: Collection[str], k: int) -> None:
    if not relevant or k < 1:
        raise ValueError(
            f"a measure needs a relevant id and k >= 1, not {len(relevant)} and {k}"
        )
    if len(set(ranked)) != len(ranked):
        raise ValueError("an id is ranked twice")


NAME = "scifact"
_DEPTH = 100  # number of ranks measured
_RECALLS = (1, 5, 10, 100)
_HIT = 10


@dataclass(kw_only=True, eq=False)
class RetrievalSuite(CaseSuite):
    """Queries and their relevant documents: gains by case id, documents by entry."""

    gains: Mapping[str, Mapping[str, float]]
    documents: Mapping[int, str]
    policy: Policy | None = field(default=None, init=False)

    def judge(self, case_id: str) -> Judged:
        began = time.perf_counter()
        case = self.cases_by_id[case_id]
        found = search(
            embed_question(case.question),
            case.question,
            scope=self._scope,
            top_k=_DEPTH,
        )
        ranked = [self.documents[hit.entry_id] for hit in found.hits]
        gains = self.gains[case_id]
        relevant = gains.keys()
        nearest = min((hit.distance for hit in found.hits), default=None)
        return Judged(
            id=case_id,
            group="",
            signals={"nearest_distance": nearest},
            is_answerable=None,
            is_correct=recall_at(ranked, relevant, _HIT) > 0 if ranked else None,
            is_answered=bool(ranked),
            measures={
                **{f"recall_at_{k}": recall_at(ranked, relevant, k) for k in _RECALLS},
                "ndcg_at_10": ndcg_at(ranked, gains, 10),
                "reciprocal_rank": reciprocal_rank(ranked, relevant),
            },
            milliseconds=(time.perf_counter() - began) * 1000,
        )

    @cached_property
    def _scope(self) -> Scope:
        policy = active_policy(self.knowledge_base).as_value()
        return evidence_scope(evaluation_user(), self.knowledge_base, policy)


def open_scifact(**options: Unpack[SuiteOptions]) -> Suite:
    refuse_others(NAME, options, frozenset())
    data = options.get("data")
    corpus = find_file(NAME, data, "scifact/corpus.jsonl")
    queries = find_file(NAME, corpus.parent, "queries.jsonl")
    judgements = find_file(NAME, corpus.parent, "qrels/test.tsv")
    sources = [source for _, source in read_lines(corpus, _source)]
    gains = _gains(judgements)
    cases = [case for _, case in read_lines(queries, _case) if case.id in gains]
    known = {source.key for source in sources}
    missing = [key for wanted in gains.values() for key in wanted if key not in known]
    if missing or len(cases) != len(gains):
        what = f"document {missing[0]}" if missing else "a query"
        raise EvaluationDataError(
            f"{judgements.name} names {what} that does not exist."
        )
    digest = digest_of(corpus)
    knowledge_base = ensure_knowledge(
        f"eval-scifact-{digest[:8]}",
        "Evaluation: SciFact",
        sources,
        loading=options.get("loading"),
    )
    entries = Entry.objects.filter(knowledge_base=knowledge_base)
    seed, limit = options.get("seed", 0), options.get("limit")
    return RetrievalSuite(
        name=NAME,
        protocol=PROTOCOLS["scifact"].format(depth=_DEPTH, hit=_HIT),
        knowledge_base=knowledge_base,
        cases=sample(cases, limit, seed=seed),
        gains=gains,
        documents=dict(entries.values_list("pk", "document__source")),
        about={
            "data": digest_of(corpus, queries, judgements),
            "limit": limit,
            "seed": seed,
        },
    )


def _source(row: Mapping[str, object]) -> Source:
    title = " ".join(str(row.get("title") or "").split())
    text = f"{title}\n{as_text(row['text'])}".strip()
    key = as_text(row["_id"], "_id")
    return Source(key=key, title=title[:300] or key, facts=[Fact(text)])


def _case(row: Mapping[str, object]) -> Case:
    return Case(
        id=as_text(row["_id"], "_id"), question=as_text(row["text"]), is_answerable=None
    )


def _gains(file: Path) -> dict[str, dict[str, float]]:
    gains: dict[str, dict[str, float]] = {}
    with file.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            try:
                gain = float(row["score"])
                query, document = row["query-id"], row["corpus-id"]
            except (KeyError, TypeError, ValueError) as error:
                raise misread(file, "BEIR's judgements") from error
            if gain > 0:
                gains.setdefault(query, {})[document] = gain
    return gains
