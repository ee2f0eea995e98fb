"""Seeds for enrichment, handed from one page of the admin to the form of another."""

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

_KEPT = "enrichment_seeds"


def to_seeds(
    request: HttpRequest, seeds: Iterable[str], *, per_seed: int
) -> HttpResponse:
    """Open the form of seeds with these filled in.

    Args:
        per_seed: Questions to be made from each; 0 answers the seeds themselves.
    """
    lines = (" ".join(seed.split()) for seed in seeds)
    request.session[_KEPT] = {"seeds": "\n".join(lines), "per_seed": per_seed}
    return redirect("admin:kb_proposal_propose_form")


def take_seeds(request: HttpRequest) -> dict[str, object] | None:
    """Return what was handed over, once."""
    kept: dict[str, object] | None = request.session.pop(_KEPT, None)
    return kept
