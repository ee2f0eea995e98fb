"""Stages 5 to 7: generate from the evidence, verify citations, and soft refusal."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace

from kb.text.terms import Terms, is_month, terms
from kb.text.words import sentences
from kb.types import Evidence

from .entry_gate import passage_of
from .gates import Decision, Gate, Reason, judge
from .history import VerdictDebiaser
from .language_model import Citation, Generation, LanguageModel, Probes, Prompt
from .policy import Policy
from .refusal_detector import is_refusal
from .staleness import current_calibration
from .values import Calibration, Question, Retrieval, Support
from .weighing import Verifier, as_read

_QUOTE_MARKS = re.compile(
    "[\"'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a`\u00b4]"
)
_DASHES = re.compile("[\u2010-\u2015\u2212]")
_LEADING_WORD = re.compile(
    r"^\W*(yes|no|ja|nein)\b[\s,.:;!\u2013\u2014-]*", re.IGNORECASE
)


def verify_support(
    question: Question,
    retrieval: Retrieval,
    generation: Generation,
    *,
    verifier: Callable[[], Verifier] | None = None,
) -> Support:
    """Keep the citations that hold, and list the facts that no cited entry supports."""
    citations, dropped = _citations(retrieval.evidence, generation)
    cited_ids = {citation.entry_id for citation in citations}
    cited = [piece for piece in retrieval.evidence if piece.entry_id in cited_ids]
    return Support(
        citations=citations,
        dropped=dropped,
        unsupported=unsupported_facts(question.text, generation.answer, cited),
        answer_overlap=_overlap(generation.answer, cited),
        question_overlap=_overlap(question.text, cited),
        sentence_support=_sentence_support(generation.answer, cited, verifier),
    )


def stands_in(quote: str, text: str) -> bool:
    """Return whether `quote` is in `text`, ignoring spaces, case, quotes and dashes.

    Punctuation at its ends is taken as the quoter's own; other words are a paraphrase
    and do not count.
    """
    wanted = _plain(quote).strip(" .,;:!?\u2026")
    # A number that continues ("12" in "120" or "12.5") is a different number.
    whole = rf"(?<!\S){re.escape(wanted)}(?!\w|[.,]\d)"
    return bool(wanted) and re.search(whole, _plain(text)) is not None


def _citations(
    evidence: Sequence[Evidence], generation: Generation
) -> tuple[tuple[Citation, ...], int]:
    quotes: dict[int, list[str]] = {}
    for number, quote in generation.quotes:
        quotes.setdefault(number, []).append(quote)
    numbers = dict.fromkeys((*generation.cited, *quotes))
    citations: list[Citation] = []
    for number in numbers:
        if not 1 <= number <= len(evidence):
            continue
        piece = evidence[number - 1]
        quote = _quote(piece, quotes.get(number, []), generation.answer)
        if quote:
            citations.append(Citation(piece.entry_id, piece.revision_id, quote))
    return tuple(citations), len(numbers) - len(citations)


def _quote(piece: Evidence, claimed: Sequence[str], answer: str) -> str:
    """Return a claimed quote found in the piece; without a claim, the best sentence.

    Empty if quotes were claimed and none of them is in the piece.
    """
    if claimed:
        said = (piece.text, piece.question)
        found = (q for q in claimed if any(stands_in(q, text) for text in said))
        return next(found, "").strip()
    return best_sentence(piece, answer)


def best_sentence(piece: Evidence, answer: str) -> str:
    """Return the sentence of a piece that shares most content words with an answer."""
    wanted = set(terms(answer).words)
    best = max(
        sentences(piece.text),
        key=lambda sentence: len(wanted & set(terms(sentence).words)),
        default=piece.text,
    )
    return best.strip()


def unsupported_facts(
    question: str, answer: str, cited: Sequence[Evidence]
) -> tuple[str, ...]:
    """Return what an answer states and no cited piece does (`Support.unsupported`)."""
    if not answer or not cited:
        return ()
    said = terms(" \n".join(f"{piece.question} {piece.text}" for piece in cited))
    claimed = terms(answer)
    numbers = claimed.numbers - said.numbers
    named = {*claimed.units, *filter(is_month, claimed.words)}
    facts = [*sorted(numbers), *sorted(named - set(said.words))]
    clauses = [terms(sentence) for piece in cited for sentence in sentences(piece.text)]
    turned = [
        f"negation: {sentence}"
        for sentence in sentences(answer)
        if _is_turned(sentence, question, clauses)
    ]
    return (*facts, *turned)


def _sentence_support(
    answer: str, cited: Sequence[Evidence], verifier: Callable[[], Verifier] | None
) -> float | None:
    """Return `Support.sentence_support`: that of the least supported sentence.

    A sentence that is in an entry word for word needs no verifier; a bare "yes" or "no"
    says nothing that could be looked up.
    """
    if not cited:
        return None
    texts = [f"{piece.question}\n{piece.text}" for piece in cited]
    passages = [as_read(passage_of(piece)) for piece in cited]
    worst = None
    for sentence in sentences(answer):
        lead = _LEADING_WORD.match(sentence)
        claim = sentence[lead.end() :] if lead else sentence
        if lead and not terms(claim).words:
            continue
        if any(stands_in(claim, text) for text in texts):
            best = 1.0
        elif verifier is None:
            continue
        else:
            best = max(verifier().score(claim, passages))
        worst = best if worst is None else min(worst, best)
    return worst


def _is_turned(sentence: str, question: str, clauses: Sequence[Terms]) -> bool:
    """Return whether a sentence affirms what the evidence denies, or vice versa.

    It is compared with the evidence's sentences that share most of its content words. A
    bare "yes" or "no" is read as a statement in the question's words.
    """
    lead = _LEADING_WORD.match(sentence)
    rest = sentence[lead.end() :] if lead else sentence
    claim = terms(rest)
    is_negated, words = claim.is_negated, set(claim.words)
    if lead and not words:
        is_negated = lead[1].lower() in {"no", "nein"}
        asked = terms(question)
        is_negated = is_negated != asked.is_negated
        words = set(asked.words)
    shared = [len(words & set(clause.words)) for clause in clauses]
    most = max(shared, default=0)
    if most == 0:
        return False
    nearest = [c for c, count in zip(clauses, shared, strict=True) if count == most]
    return all(clause.is_negated != is_negated for clause in nearest)


def _overlap(text: str, cited: Sequence[Evidence]) -> float | None:
    words = set(terms(text).words)
    if not words:
        return None
    said = {
        word
        for piece in cited
        for word in (*terms(piece.text).words, *terms(piece.question).words)
    }
    return len(words & said) / len(words)


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    text = _DASHES.sub("-", _QUOTE_MARKS.sub("", text))
    return " ".join(text.casefold().split())


def judge_generation(
    retrieval: Retrieval,
    generation: Generation,
    support: Support,
    *,
    policy: Policy,
    language_model: str,
) -> Decision:
    """Pass, or refuse with the first reason that holds.

    With `policy.soft_refusal` off the model's own verdict is recorded but not enforced,
    and with `policy.support_check` off so are unsupported statements. An answer that is
    unreadable or empty is refused all the same.
    """
    calibration = current_calibration(policy, retrieval, language_model)
    is_stale = calibration is Calibration.STALE and policy.refuse_when_stale
    debiased = generation.debiased
    values = {
        "readable": float(not generation.malformed),
        "answer_characters": float(len(generation.answer.strip())),
        "verdict": float(generation.can_answer),
        "verdict_probability": generation.deciding_verdict,
        **({} if debiased is None else {
            "debiased_verdict": debiased.probability,
            "uncorrected_verdict": debiased.uncorrected,
            "own_verdict": generation.verdict_probability,
        }),
        "not_a_refusal_in_prose": float(not is_refusal(generation.answer)),
        "citations_verified": float(len(support.citations)),
        "citations_dropped": float(support.dropped),
        "unsupported_facts": float(len(support.unsupported)),
        "sentence_support": support.sentence_support,
        "answer_in_evidence": support.answer_overlap,
        "question_in_evidence": support.question_overlap,
        "log_probability": generation.log_probability,
    }  # fmt: skip
    first = Reason.POLICY_STALE if is_stale else None
    return judge(Gate.SOFT_REFUSAL, values, policy, first=first)


def generate(
    question: Question,
    retrieval: Retrieval,
    *,
    language_model: LanguageModel,
    probes: Probes,
    policy: Policy,
) -> Generation:
    """Let the model answer from the question and its evidence alone.

    The activations that the probes need are kept on the way. If the policy enforces an
    early confidence, the answer may end before it begins.
    """
    capture = probes.capture(least_early=policy.least_early)
    return language_model.generate(build_prompt(question, retrieval), capture)


def build_prompt(question: Question, retrieval: Retrieval) -> Prompt:
    return Prompt(question.text, retrieval.evidence, question.language)


def debias(
    question: Question,
    retrieval: Retrieval,
    generation: Generation,
    *,
    debiaser: VerdictDebiaser,
    language_model: str,
) -> Generation:
    """Return the generation with the corrected verdict for soft refusal to use."""
    prompt = build_prompt(question, retrieval)
    verdict = debiaser.debias(prompt, generation, language_model=language_model)
    return replace(generation, debiased=verdict)
