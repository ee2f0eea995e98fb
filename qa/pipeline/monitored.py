"""Monitored answering: sentence by sentence, with retrieval when a word is in doubt.

A sentence is kept if every word that says something new is confident or occurs in the
evidence. Otherwise evidence is retrieved for the question and this sentence, which is
then written and monitored again, in a limited number of rounds. A sentence that stays
in doubt, or that declines, is never shown: the answer as a whole is refused.

References:
    Liu et al., "CtrlA: adaptive retrieval-augmented generation via inherent control"
    (2024), algorithms 1 to 3. Unlike in its release, a rewritten sentence is monitored
    again, nothing is shown if no segment survived, and the loop ends with the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Protocol

from kb.types import Evidence

from .gates import Reason
from .hard_gate import covers
from .monitored_words import (
    Word,
    augmented_query,
    bounded,
    new_words,
    unconfident,
    word_keys,
)
from .policy import Policy
from .refusal_detector import is_refusal
from .retrieve import retrieve
from .values import Question, Retriever, Segment

MAX_SEGMENTS: Final = 6
# Rounds of retrieving and rewriting for one segment.
MAX_ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Draft:
    """The next segment of an answer, as written.

    Attributes:
        text: A sentence; "" if the answer was already complete.
        tokens: The model's tokens; joined they give the text.
        confidences: One for each token, in the unit of the monitor.
        is_last: Whether the model ended its answer with it.
    """

    text: str
    tokens: tuple[str, ...]
    confidences: tuple[float, ...]
    is_last: bool


class SegmentWriter(Protocol):
    """A model that is steered and monitored while it writes."""

    @property
    def fingerprint(self) -> str:
        """Identifier that differs between models, their directions and their forms."""

    def write(
        self,
        question: str,
        notes: Sequence[Evidence],
        kept: Sequence[str],
        *,
        steering: float,
    ) -> Draft:
        """Write the segment that follows `kept`, from the notes if there are any.

        Raises:
            LanguageModelUnavailableError: The model is down.
        """

    def validation_query(self, question: str, segment: str) -> str:
        """Write a search query that would show whether the segment is true."""

    def rewritten_query(self, question: str, query: str) -> str:
        """Write a better query for the question than one that found nothing useful."""


@dataclass(frozen=True, slots=True)
class Monitored:
    """The result of monitored answering; if `refused`, none of it is shown."""

    segments: tuple[Segment, ...]
    refused: Reason | None
    is_complete: bool
    fingerprint: str

    @property
    def answer(self) -> str:
        """The text that may be shown; "" if it was refused."""
        return "" if self.refused else " ".join(s.text for s in self.segments)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence that segments were written from, each entry once, in order."""
        found = {p.entry_id: p for s in self.segments for p in s.evidence}
        return tuple(found.values())

    @property
    def is_sourced(self) -> bool:
        return bool(self.segments) and all(s.is_sourced for s in self.segments)

    @property
    def weakest(self) -> float | None:
        """The least confidence of a new word in any segment's first draft."""
        values = [s.weakest for s in self.segments if s.weakest is not None]
        return min(values, default=None)

    @property
    def signals(self) -> tuple[tuple[str, float | None], ...]:
        """The measurements by name, the deciding one first."""
        return (
            ("least_token_confidence", self.weakest),
            ("monitored_segments", float(len(self.segments))),
            ("monitored_rounds", float(sum(s.rounds for s in self.segments))),
            ("monitored_sourced", float(sum(s.is_sourced for s in self.segments))),
        )


def answer_monitored(
    question: Question, *, writer: SegmentWriter, retriever: Retriever, policy: Policy
) -> Monitored:
    """Write an answer segment by segment until it is complete or refused."""
    segments: list[Segment] = []
    doubt, is_complete = None, False
    while len(segments) < MAX_SEGMENTS and not (is_complete or doubt):
        kept = [segment.text for segment in segments]
        settling = _Settling(question.text, kept, writer, retriever, policy)
        segment, is_complete = settling.settle()
        if segment is None:
            break
        segments.append(segment)
        doubt = segment.doubt
    return Monitored(tuple(segments), doubt, is_complete, writer.fingerprint)


class _Settling:
    def __init__(
        self,
        question: str,
        kept: Sequence[str],
        writer: SegmentWriter,
        retriever: Retriever,
        policy: Policy,
    ) -> None:
        self._question, self._kept = question, kept
        self._writer, self._retriever, self._policy = writer, retriever, policy
        self._known = word_keys([question, *kept])
        self._evidence: tuple[Evidence, ...] = ()
        self._triggers: dict[str, None] = {}
        self._queries: dict[str, None] = {}

    def settle(self) -> tuple[Segment | None, bool]:
        """Return the next segment, and whether the answer is complete with it.

        The segment is None if the answer was already complete: the model wrote nothing
        more, or repeated a sentence.
        """
        draft = self._write()
        if self._ends(draft):
            return None, True
        new = self._new(draft)
        values = [word.confidence for word in new if word.confidence is not None]
        rounds = 0
        while (doubt := self._doubt(draft)) and rounds < MAX_ROUNDS:
            queries = self._next_queries(draft)
            if not queries:  # all have been tried
                break
            rounds += 1
            if self._look(queries):
                draft = self._write()
        if self._ends(draft):
            return None, True
        evidence = self._evidence_keys()
        said = self._new(draft)
        segment = Segment(
            text=draft.text,
            tokens=draft.tokens,
            confidences=draft.confidences,
            weakest=min(values, default=None),
            triggers=tuple(self._triggers),
            queries=tuple(self._queries),
            evidence=self._evidence,
            rounds=rounds,
            is_sourced=bool(said) and all(word.key in evidence for word in said),
            doubt=doubt,
        )
        return segment, draft.is_last

    def _write(self) -> Draft:
        return self._writer.write(
            self._question, self._evidence, self._kept, steering=self._policy.steering
        )

    def _ends(self, draft: Draft) -> bool:
        """Return whether the answer was already complete; an empty one never is."""
        return bool(self._kept) and draft.text in {"", *self._kept}

    def _new(self, draft: Draft) -> list[Word]:
        return new_words(draft.text, draft.tokens, draft.confidences, known=self._known)

    def _in_doubt(self, draft: Draft) -> list[Word]:
        """Return the new words that are neither confident nor in the evidence."""
        sourced = self._evidence_keys()
        new = [word for word in self._new(draft) if word.key not in sourced]
        return unconfident(new, self._policy.min_token_confidence)

    def _doubt(self, draft: Draft) -> Reason | None:
        """Return why a draft may not be shown as it is, or None.

        An answer that only repeats the question gives nothing to judge it by, so it
        needs evidence.
        """
        if not draft.text or is_refusal(draft.text):
            return Reason.MODEL_DECLINED
        says_nothing = not (self._new(draft) or self._kept or self._evidence)
        is_doubted = says_nothing or self._in_doubt(draft)
        return Reason.LOW_CONFIDENCE if is_doubted else None

    def _evidence_keys(self) -> set[str]:
        return word_keys(f"{p.question} {p.text}" for p in self._evidence)

    def _next_queries(self, draft: Draft) -> list[str]:
        """Return the next queries to search for, without those already tried."""
        doubted = [] if is_refusal(draft.text) else self._in_doubt(draft)
        self._triggers |= dict.fromkeys(word.text for word in doubted)
        question, writer = self._question, self._writer
        if self._queries:
            last = next(reversed(self._queries))
            queries = [writer.rewritten_query(question, last), question]
        elif doubted:
            queries = [
                augmented_query(question, draft.text, doubted),
                writer.validation_query(question, draft.text),
            ]
        else:
            queries = [question]
        found = dict.fromkeys(map(bounded, queries))
        return [query for query in found if query and query not in self._queries]

    def _look(self, queries: Sequence[str]) -> bool:
        """Retrieve evidence and return whether it differs from before.

        The best piece of each query comes first, then the second best; earlier evidence
        stays if there is room.
        """
        self._queries |= dict.fromkeys(queries)
        before = self._evidence
        ranks = zip_longest(*(self._found(query) for query in queries))
        ranked = [*(piece for rank in ranks for piece in rank if piece), *before]
        found: dict[int, Evidence] = {}
        for piece in ranked:
            found.setdefault(piece.entry_id, piece)
        self._evidence = tuple(found.values())[: self._policy.top_k]
        return [p.entry_id for p in self._evidence] != [p.entry_id for p in before]

    def _found(self, query: str) -> Sequence[Evidence]:
        """Return the pieces found for a query that hard refusal would pass."""
        found = retrieve(
            Question(query), retriever=self._retriever, policy=self._policy
        )
        if not self._policy.hard_refusal:
            return found.evidence
        return [p for p in found.evidence if covers(p, self._policy)]
