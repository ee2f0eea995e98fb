"""Finding a policy version by the name that people give it."""

from qa.exceptions import EvaluationDataError
from qa.models import Policy


def find_policy(text: str) -> Policy:
    """Return the version called "NAME:VERSION", or "KNOWLEDGE-BASE/NAME:VERSION".

    Raises:
        EvaluationDataError: There is none, or several knowledge bases have one.
    """
    slug, _, rest = text.rpartition("/")
    name, _, version = rest.rpartition(":")
    if not name or not (version.isascii() and version.isdigit()):
        raise EvaluationDataError(
            f"{text!r} names no policy; write NAME:VERSION, such as default:1."
        )
    rows = Policy.objects.filter(name=name, version=int(version))
    if slug:
        rows = rows.filter(knowledge_base__slug=slug)
    found = list(rows.select_related("knowledge_base")[:2])
    if not found:
        raise EvaluationDataError(f"There is no policy {text}.")
    if len(found) > 1:
        first = found[0].knowledge_base.slug
        raise EvaluationDataError(
            f"Several knowledge bases have a policy {text}; write {first}/{text}, say."
        )
    return found[0]
