"""The suite "selfaware": questions that nobody can answer among some that many can.

References:
    Yin et al., "Do Large Language Models Know What They Don't Know?" (Findings of ACL
    2023).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from qa.evaluation.cases import Case, sample
from qa.evaluation.judging import Suite, by_references
from qa.evaluation.knowledge import given_or_empty
from qa.evaluation.question_suite import AskedSuite

from .files import digest_of, find_file, misread, read_json
from .options import SuiteOptions, about, deciding_policy, refuse_others

NAME = "selfaware"
_FILES = ("selfaware/SelfAware.json",)

PROTOCOL = (
    "All questions are asked against the knowledge base {slug}; whether one is "
    "answerable is the data set's label and says nothing about this knowledge base, so "
    "that refusing an answerable one may be all that is right here. An answer is right "
    "if a reference stands in it. Known to leak: every unanswerable question was "
    "collected by the data set's authors and every answerable one comes from SQuAD, "
    "TriviaQA or HotpotQA, so that the style of a source tells the label; nothing may "
    "be trained on it."
)


def open_selfaware(**options: Unpack[SuiteOptions]) -> Suite:
    """Return the suite over SelfAware."""
    refuse_others(NAME, options, frozenset({"knowledge_base"}))
    file, cases = read_selfaware(options.get("data"))
    knowledge_base = given_or_empty(options.get("knowledge_base", ""))
    seed, limit = options.get("seed", 0), options.get("limit")
    return AskedSuite(
        name=NAME,
        protocol=PROTOCOL.format(slug=knowledge_base.slug),
        knowledge_base=knowledge_base,
        policy=deciding_policy(knowledge_base, options),
        cases=sample(cases, limit, seed=seed),
        scoring=by_references,
        about=about(digest_of(file), options),
    )


def read_selfaware(data: Path | None) -> tuple[Path, list[Case]]:
    """Return the file and its questions in the file's order."""
    file = find_file(NAME, data, *_FILES)
    try:
        return file, [_case(row) for row in read_json(file)["example"]]
    except (KeyError, TypeError) as error:
        raise misread(file, "SelfAware") from error


def _case(row: Mapping[str, Any]) -> Case:
    return Case(
        id=str(row["question_id"]),
        question=row["question"],
        is_answerable=bool(row["answerable"]),
        references=tuple(row["answer"] or ()),
    )
