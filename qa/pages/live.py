"""A question being decided, as server-sent events of ready-made HTML."""

import logging
import re
from collections.abc import Iterator

from django.http import HttpRequest
from django.template.loader import render_to_string

from accounts.exceptions import NescioError
from qa.models import Answer
from qa.pipeline.activations import Confidence
from qa.pipeline.evidence import Retrieval
from qa.pipeline.gates import Decision
from qa.pipeline.outcome import Boundary, Outcome, StageValue, stage_of
from qa.services import asking

from . import wording
from .parts import answer_part

logger = logging.getLogger(__name__)

# The stage that comes after each; nothing names what is being waited for but this.
_NEXT = {
    "question": "retrieve",
    "boundary": "retrieve",
    "retrieve": "verbatim",
    "verbatim": "hard_refusal",
    "hard_refusal": "generate",
    "generate": "support",
    "support": "soft_refusal",
    "soft_refusal": "abstention",
}
_LINE_END = re.compile(r"\r\n|\r|\n")


def events(request: HttpRequest, answer: Answer, *, again: bool) -> Iterator[str]:
    """Yield `stage` for each stage, then `result` with the whole answer, then `end`.

    Nothing that a model wrote is in a stage: a later gate may reject it.
    """
    undecided = [Answer.Outcome.PENDING, *([Answer.Outcome.FAILED] if again else [])]
    if answer.outcome in undecided:
        try:
            for value in asking.decide(answer):
                # The decision on a confidence comes with it.
                if not isinstance(value, Confidence | Outcome):
                    yield _event("stage", _stage(value))
        except NescioError as error:
            logger.warning("Question %s could not be decided: %s", answer.pk, error)
        except Exception:
            # The last boundary: the browser would ask again for ever if it only saw
            # the connection break.
            logger.exception("Question %s could not be decided", answer.pk)
            yield _event("result", render_to_string("qa/_broken.html", request=request))
            yield _event("end", "")
            return
    context = answer_part(request, answer.pk)
    yield _event("result", render_to_string("qa/_result.html", context, request))
    yield _event("end", "")


def follow(answer: Answer) -> None:
    """Decide a kept question without telling of its stages; a failure is kept with it."""
    try:
        for _value in asking.decide(answer):
            pass
    except NescioError as error:
        logger.warning("Question %s could not be decided: %s", answer.pk, error)


def _stage(value: StageValue) -> str:
    stage = stage_of(value)
    refused = isinstance(value, Decision) and value.refused
    ends = isinstance(value, Boundary) and (value.is_answered or value.segments)
    following = "outcome" if refused or ends else _NEXT.get(stage, "outcome")
    return render_to_string(
        "qa/_stage.html",
        {
            "name": wording.STAGES.get(stage, (stage, stage))[1],
            "detail": _detail(value),
            "refused": refused,
            "next": wording.STAGES[following][0],
        },
    )


def _detail(value: StageValue) -> str:
    match value:
        case Boundary(is_answered=True):
            return "answered"
        case Boundary(segments=segments):
            return "in doubt" if segments else "evidence is looked for"
        case Retrieval(evidence=()):
            return "nothing found"
        case Retrieval(evidence=evidence):
            nearest = min(piece.distance for piece in evidence)
            pieces = "1 entry" if len(evidence) == 1 else f"{len(evidence)} entries"
            return f"{pieces}, the nearest at distance {nearest:.2f}"
        case Decision(reason=reason):
            return "passed" if reason is None else "refused"
        case _:
            return ""


def _event(name: str, html: str) -> str:
    """Return one event; the only line ends in it are its own."""
    lines = "".join(f"data: {line}\n" for line in _LINE_END.split(html))
    return f"event: {name}\n{lines}\n"
