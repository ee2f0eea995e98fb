"""Ask a knowledge base its own questions, once with their entry and once without it.

Search and verifier work as for a real question, but with access to every audience.
Labelled questions are asked with the access of those who asked them. The results are
numbers only, never texts.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from django.utils import timezone

from kb.audiences.models import Audience
from kb.conflicts.finding import duplicates_among
from kb.documents.models import KnowledgeBase
from kb.embedding.services import embed_question
from kb.entries.models import Entry
from kb.search import search
from kb.text.terms import terms
from kb.types import Evidence, Scope
from qa.answers.sources import evidence_scope
from qa.pipeline.entry_gate import answering, weigh
from qa.pipeline.policy import Policy, default
from qa.pipeline.values import clean_question
from qa.pipeline.weighing import Verifier

from .choosing import Kind, Measured
from .drawing import Label, OwnQuestion

OnProgress = Callable[[int, int], None]
# Extra hits, so that leaving entries out still leaves as many as a search finds.
_SPARE: Final = 12
# The least shares of an answer's words and numbers, beyond those of its question, that
# another entry must contain to count as the same answer. Handbook paragraphs that
# restate an FAQ had 0.28 to 0.83, others 0.00 to 0.06.
_COVERED, _COVERED_NUMBERS = 0.2, 0.5


def measure(
    questions: Sequence[OwnQuestion],
    *,
    knowledge_base: KnowledgeBase,
    policy: Policy,
    verifier: Verifier,
    on_progress: OnProgress = lambda _done, _total: None,
) -> tuple[tuple[Measured, ...], int]:
    """Return the measurements, and how many foreign trades the knowledge base covers.

    If most questions of a trade find an entry near enough to answer from, that trade is
    not foreign to this knowledge base and is left out.
    """
    asking = _Asking(knowledge_base, policy, verifier)
    found: list[Measured] = []
    asked, near = Counter[str](), Counter[str]()
    for done, question in enumerate(questions, start=1):
        if question.label:
            found += asking.labelled(question, question.label)
        elif question.entry:
            found += asking.own(question, question.entry)
        else:
            measured, is_near = asking.foreign(question)
            found.append(measured)
            asked[question.group] += 1
            near[question.group] += is_near
        on_progress(done, len(questions))
    own = {trade for trade, count in asked.items() if 2 * near[trade] > count}
    kept = (m for m in found if m.kind is not Kind.FOREIGN or m.group not in own)
    return tuple(kept), len(own)


class _Asking:
    def __init__(
        self, knowledge_base: KnowledgeBase, policy: Policy, verifier: Verifier
    ) -> None:
        # As with the verifier's gate enforced, even if it is in shadow now.
        self._policy = replace(policy, verification=True)
        self._verifier = verifier
        self._knowledge_base = knowledge_base
        self._language = knowledge_base.language
        self._scope = Scope(
            knowledge_base_id=knowledge_base.pk,
            audience_ids=tuple(Audience.objects.values_list("pk", flat=True)),
            unverified_floor=policy.unverified_floor,
            enriched_floor=policy.min_enriched,
            at=timezone.now(),
        )

    def own(self, question: OwnQuestion, entry: Entry) -> Iterator[Measured]:
        """Yield two measurements: with all entries, and without the question's own."""
        found = self._search(question.text, self._scope)
        ids = [piece.entry_id for piece in found]
        right = {entry.pk} | duplicates_among(entry, ids)
        right |= {
            piece.entry_id
            for piece in found
            if covers_answer(entry, question.text, f"{piece.question} {piece.text}")
            or (question.is_query and names_all(question.text, _whole(piece)))
        }
        chance, shown = self._shown(question.text, found)
        is_right = any(piece.entry_id in right for piece in shown)
        made_of = str(entry.pk)
        yield Measured(Kind.OWN, question.group, chance, is_right, entry=made_of)
        rest = [piece for piece in found if piece.entry_id not in right]
        chance, _ = self._shown(question.text, rest)
        yield Measured(Kind.LEFT_OUT, question.group, chance, False, entry=made_of)

    def foreign(self, question: OwnQuestion) -> tuple[Measured, bool]:
        """Return the measurement and whether an entry is near enough to answer from."""
        found = self._search(question.text, self._scope)
        chance, _ = self._shown(question.text, found)
        is_near = any(piece.distance < default("alpha") for piece in found)
        return Measured(Kind.FOREIGN, question.group, chance, False), is_near

    def labelled(self, question: OwnQuestion, label: Label) -> Iterator[Measured]:
        """Yield the measurement of a labelled question, asked with its asker's access.

        Confirmed and denied wordings of this very question are ignored: they are
        decided word for word rather than by a threshold, and new questions have none.
        Yield nothing if the entry that would be shown is not a right one and changed
        after the question was judged, since it is unknown whether it answers.
        """
        scope = self._scope
        if label.asker:
            scope = evidence_scope(label.asker, self._knowledge_base, self._policy)
        found = [
            replace(
                each,
                wordings=tuple(w for w in each.wordings if w != question.text),
                denied=tuple(d for d in each.denied if d != question.text),
            )
            for each in self._search(question.text, scope)
        ]
        chance, shown = self._shown(question.text, found)
        ids = [piece.entry_id for piece in found]
        right = {entry.pk for entry in label.right}
        right = right.union(*(duplicates_among(entry, ids) for entry in label.right))
        is_right = any(piece.entry_id in right for piece in shown)
        if not is_right:
            wrong = [piece.entry_id for piece in shown]
            rows = Entry.objects.filter(pk__in=wrong, updated_at__gt=label.at)
            if rows.exists():
                return
        yield Measured(
            label.kind,
            question.group,
            chance,
            is_right,
            weight=label.weight,
            is_answerable=bool(label.right),
            is_doubtful=label.is_doubtful and not is_right,
        )

    def _search(self, text: str, scope: Scope) -> tuple[Evidence, ...]:
        wide = self._policy.retrieved + _SPARE
        return search(embed_question(text), text, scope=scope, top_k=wide).hits

    def _shown(
        self, text: str, found: Sequence[Evidence]
    ) -> tuple[float, tuple[Evidence, ...]]:
        """Return the probability that the shown entries answer, and these entries.

        They are the verified ones among the first hits that are weighed; the
        probability is in [0, 1], and 0 if there are none.
        """
        first, limit = list(found), self._policy.retrieved
        if len(first) > limit:  # as in search, always keep the nearest one
            nearest = min(first, key=lambda piece: piece.ratio)
            first = first[:limit]
            if nearest not in first:
                first[-1] = nearest
        question = clean_question(text, self._language)
        weighed = weigh(question, first, self._verifier, self._policy)
        return answering(question, weighed, self._policy)


def names_all(query: str, text: str) -> bool:
    """Return whether a text contains all words and numbers of a key-word query.

    Such a query asks for no more than that: for "oona breslin insurance claims", both a
    person's row in a rota and the sentence that names them are right.
    """
    wanted, found = terms(query), terms(text)
    return {*wanted.words} <= {*found.words} and wanted.numbers <= found.numbers


def _whole(piece: Evidence) -> str:
    return f"{piece.document_title}\n{piece.section}\n{piece.question}\n{piece.text}"


def covers_answer(entry: Entry, question: str, other: str) -> bool:
    """Return whether a text contains much of an entry's answer, beyond the question.

    Most knowledge bases state a fact twice, in an FAQ and in a handbook. A near miss
    shares words with the question but not with the answer, or lacks the answer's
    numbers.
    """
    asked, answer, text = map(
        terms, (f"{entry.question} {question}", entry.text, other)
    )
    words = {*answer.words} - {*asked.words}
    numbers = answer.numbers - asked.numbers
    shared_words = words & {*text.words}
    shared_numbers = numbers & text.numbers
    share = (len(shared_words) + len(shared_numbers)) / max(
        len(words) + len(numbers), 1
    )
    return share >= _COVERED and len(shared_numbers) >= _COVERED_NUMBERS * len(numbers)
