"""The suite "clinc-oos": what is asked for, among intents and outside of them all.

References:
    Larson et al., "An Evaluation Dataset for Intent Classification and Out-of-Scope
    Prediction" (EMNLP 2019).
"""

from collections.abc import Iterator, Sequence
from typing import Unpack

from qa.evaluation.cases import Case
from qa.evaluation.judging import Suite, by_label
from qa.evaluation.knowledge import Fact, Source, ensure_knowledge

from .options import (
    SuiteOptions,
    digest_of,
    find_file,
    misread,
    read_json,
    refuse_others,
    sampled_suite,
)

NAME = "clinc-oos"
_FILES = ("clinc150/data_full.json",)
_NO_INTENT = "no intent"
Pairs = Sequence[tuple[str, str]]

PROTOCOL = (
    "The knowledge base holds the training utterances of the in-scope intents as verified "
    "questions, each with its intent's name as the answer; {dropped} of them that are "
    "test utterances word for word are left out. The test utterances and those outside "
    "of all intents are asked; an answer is right if it is the intent's name, and every "
    "answer to an utterance outside of them is false. Known to leak: training and test "
    "utterances were written by people for the same prompts and resemble each other."
)


def open_clinc(**options: Unpack[SuiteOptions]) -> Suite:
    """Return the suite over CLINC150 with its out-of-scope utterances."""
    refuse_others(NAME, options, frozenset())
    file = find_file(NAME, options.get("data"), *_FILES)
    content = read_json(file)
    try:
        training: Pairs = [(text, intent) for text, intent in content["train"]]
        cases = [*_cases("test", content["test"]), *_cases("oos", content["oos_test"])]
    except (KeyError, TypeError, ValueError) as error:
        raise misread(file, "CLINC150") from error
    asked = {_plain(case.question) for case in cases}
    kept = [(text, intent) for text, intent in training if _plain(text) not in asked]
    digest = digest_of(file)
    knowledge_base = ensure_knowledge(
        f"eval-clinc-{digest[:8]}",
        "Evaluation: CLINC150",
        list(_sources(kept)),
        loading=options.get("loading"),
    )
    protocol = PROTOCOL.format(dropped=len(training) - len(kept))
    return sampled_suite(
        NAME, protocol, knowledge_base, cases, by_label, options, data=digest
    )


def _cases(split: str, pairs: Pairs) -> Iterator[Case]:
    is_answerable = split == "test"
    for number, (text, intent) in enumerate(pairs, start=1):
        yield Case(
            id=f"{split}-{number}",
            question=text,
            is_answerable=is_answerable,
            references=(intent,) if is_answerable else (),
            # An utterance outside of all intents is like no other.
            group=intent if is_answerable else f"{_NO_INTENT} {number}",
        )


def _sources(pairs: Pairs) -> Iterator[Source]:
    intents: dict[str, list[Fact]] = {}
    for text, intent in pairs:
        intents.setdefault(intent, []).append(Fact(intent, question=text))
    for intent, facts in intents.items():
        yield Source(key=intent, title=intent.replace("_", " "), facts=facts)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
