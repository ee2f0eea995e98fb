"""Two-hop questions, answered in each way by the product's pipeline and recorded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final

from kb.documents.models import KnowledgeBase
from probes.language_model import WhiteBoxModel
from qa.answers.sources import (
    KnowledgeRetriever,
    active_probes,
    configured_verifier,
    evidence_scope,
)
from qa.evaluation.knowledge import evaluation_user
from qa.inference.closed_book_form import ClosedBookForm, SelfKnowledgeByDraft
from qa.inference.monitored_writer import SteeredWriter
from qa.inference.white_box import load_white_box
from qa.pipeline import Sources, answer
from qa.pipeline.closed_book import ClosedBookModels
from qa.pipeline.language_model import LanguageModel
from qa.pipeline.monitored import MAX_SEGMENTS
from qa.pipeline.policy import Policy, RetrievalTiming, Scope
from qa.pipeline.self_knowledge import KNOWN_PROBABILITY
from qa.pipeline.values import Outcome, Retriever
from qa.policies.services import has_verifier
from studies.cbdr.timing.asking import Record, Row, costed
from studies.study import OnProgress

from .questions import TwoHop
from .retrievers import GivenRetriever, WatchedRetriever, among, given

NEVER: Final = "never"
NEVER_BY_WRITER: Final = "never, CtrlA's writer"
ONCE: Final = "once"
ONCE_BY_WRITER: Final = "once, CtrlA's writer"
GATED: Final = "once, behind the gates"
GIVEN: Final = "both given"
GIVEN_TO_WRITER: Final = "both given, CtrlA's writer"
CTRLA: Final = "CtrlA"

# A two-hop question takes two entries.
TOP_K: Final = 2
# Never refuses: the comparison is of when and what is retrieved, not of the gates.
OPEN: Final = Policy(
    top_k=TOP_K,
    hard_refusal=False,
    verbatim_distance=0.0,
    verification=False,
    soft_refusal=False,
    support_check=False,
    sources_must_agree=False,
)
_ALONE: Final = replace(
    OPEN,
    scope=Scope.ADAPTIVE,
    retrieval_timing=RetrievalTiming.LOG_PROBABILITY,
    own_knowledge_first=True,
    min_known=0.0,
)
# The lowest and highest `min_token_confidence` that a policy may set: at the first no
# word is in doubt, at the second every word is.
_TRUST, _DOUBT = -1000.0, 1000.0


@dataclass(frozen=True, slots=True)
class Models:
    """The models that answer: from evidence, closed-book, and monitored."""

    language_model: LanguageModel
    form: ClosedBookForm
    writer: SteeredWriter

    @property
    def distinct(self) -> Sequence[WhiteBoxModel]:
        """The white-box models whose cost is measured, each once."""
        own = load_white_box(self.language_model)
        found = [self.form.model, self.writer.model, *([own] if own else [])]
        return list({id(model): model for model in found}.values())


class Asker:
    """Answers the questions that a record lacks; returns its rows by question id.

    A row holds the `answer` (as written, shown or not), which of the two entries were
    `found` by any search and which were `read` for the answer, the number of `searches`
    and of `segments`, and the `cost`. Except where CtrlA's writer answers without the
    pipeline, it also holds whether the answer is `shown`, the number of `rounds` of
    searching and rewriting, and what decided: `known`, or `weakest` and whether a
    refusal instead of a doubtful word caused the search (`unasked`).
    """

    def __init__(
        self,
        models: Models,
        knowledge_base: KnowledgeBase,
        record: Record,
        on_progress: OnProgress,
    ) -> None:
        self._models, self._record, self._tell = models, record, on_progress
        self._verifier = configured_verifier if has_verifier(knowledge_base) else None
        self._scope = evidence_scope(evaluation_user(), knowledge_base, OPEN)
        self._closed_book = ClosedBookModels(
            lambda: SelfKnowledgeByDraft(models.form), lambda: models.writer
        )

    def never(self, questions: Sequence[TwoHop]) -> Mapping[str, Row]:
        return self._asked(
            NEVER, questions, lambda one: self._piped(one, _ALONE, GivenRetriever())
        )

    def once(self, questions: Sequence[TwoHop]) -> Mapping[str, Row]:
        return self._asked(
            ONCE,
            questions,
            lambda one: self._piped(one, OPEN, KnowledgeRetriever(self._scope)),
        )

    def gated(self, questions: Sequence[TwoHop], policy: Policy) -> Mapping[str, Row]:
        """Answer under the knowledge base's own policy, with all its gates."""
        return self._asked(
            GATED,
            questions,
            lambda one: self._piped(one, policy, KnowledgeRetriever(self._scope)),
            f"{policy.name} {policy.version}",
        )

    def both_given(self, questions: Sequence[TwoHop]) -> Mapping[str, Row]:
        return self._asked(
            GIVEN, questions, lambda one: self._piped(one, OPEN, given(one))
        )

    def never_by_writer(self, questions: Sequence[TwoHop]) -> Mapping[str, Row]:
        return self._written(NEVER_BY_WRITER, questions, lambda _one: GivenRetriever())

    def once_by_writer(self, questions: Sequence[TwoHop]) -> Mapping[str, Row]:
        return self._written(
            ONCE_BY_WRITER, questions, lambda _one: KnowledgeRetriever(self._scope)
        )

    def given_to_writer(self, questions: Sequence[TwoHop]) -> Mapping[str, Row]:
        return self._written(GIVEN_TO_WRITER, questions, given)

    def loop(
        self, questions: Sequence[TwoHop], *, threshold: float | None
    ) -> Mapping[str, Row]:
        """Answer with CtrlA's loop, which searches where a word is below the threshold.

        Args:
            threshold: Least confidence of a new word; None puts every one in doubt.
        """
        least = _DOUBT if threshold is None else max(threshold, _TRUST)
        policy = replace(
            _ALONE,
            retrieval_timing=RetrievalTiming.MONITORED,
            min_token_confidence=least,
        )
        by = (
            f"{self._models.writer.fingerprint} {policy.steering:g} {least:.6g} {TOP_K}"
        )
        return self._asked(
            CTRLA,
            questions,
            lambda one: self._piped(one, policy, KnowledgeRetriever(self._scope)),
            by,
        )

    def _asked(
        self,
        kind: str,
        questions: Sequence[TwoHop],
        ask: Callable[[TwoHop], Row],
        by: str = "",
    ) -> Mapping[str, Row]:
        asked = {one.id: one for one in questions}
        return self._record.filled(kind, by, asked, partial(map, ask), self._tell)

    def _piped(self, one: TwoHop, policy: Policy, inner: Retriever) -> Row:
        models, retriever = self._models, WatchedRetriever(inner)
        sources = Sources(
            retriever,
            language_model=lambda: models.language_model,
            probes=active_probes,
            closed_book=self._closed_book,
            verifier=self._verifier if policy.verification else None,
        )

        def run() -> Outcome:
            *_, outcome = answer(one.question, sources, policy=policy)
            if not isinstance(outcome, Outcome):
                raise TypeError(f"{type(outcome).__name__} is not an outcome")
            return outcome

        outcome, cost = costed(models.distinct, run)
        segments = outcome.boundary.segments if outcome.boundary else ()
        own = " ".join(segment.text for segment in segments)
        signals = {signal.name: signal.value for signal in outcome.signals}
        first = segments[0] if segments else None
        return {
            "answer": own or outcome.answer,
            "shown": outcome.answered,
            "found": among(one, retriever.found.values()),
            "read": among(
                one,
                [piece for segment in segments for piece in segment.evidence]
                or outcome.evidence,
            ),
            "searches": len(retriever.looked),
            "rounds": sum(segment.rounds for segment in segments),
            "segments": len(segments),
            "known": signals.get(KNOWN_PROBABILITY),
            "weakest": first.weakest if first else None,
            "unasked": bool(first and first.queries and not first.triggers),
            "cost": asdict(cost),
        }

    def _written(
        self,
        kind: str,
        questions: Sequence[TwoHop],
        retriever_for: Callable[[TwoHop], Retriever],
    ) -> Mapping[str, Row]:
        """Have CtrlA's writer answer from one search by sentences, unmonitored."""

        def ask(one: TwoHop) -> Row:
            retriever = WatchedRetriever(retriever_for(one))
            kept, cost = costed(
                self._models.distinct, lambda: self._sentences(one, retriever)
            )
            found = among(one, retriever.found.values())
            return {
                "answer": " ".join(kept),
                "found": found,
                "read": found,
                "searches": 0 if kind == NEVER_BY_WRITER else 1,
                "segments": len(kept),
                "cost": asdict(cost),
            }

        by = f"{self._models.writer.fingerprint} {OPEN.steering:g} {MAX_SEGMENTS}"
        return self._asked(kind, questions, ask, by)

    def _sentences(self, one: TwoHop, retriever: Retriever) -> list[str]:
        notes = retriever.look(one.question, top_k=TOP_K, deep=False).evidence
        kept: list[str] = []
        is_last = False
        while len(kept) < MAX_SEGMENTS and not is_last:
            draft = self._models.writer.write(
                one.question, notes, kept, steering=OPEN.steering
            )
            if draft.text in {"", *kept}:
                break
            kept.append(draft.text)
            is_last = draft.is_last
        return kept
