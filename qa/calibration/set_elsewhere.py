"""What most people set that is no field of a policy, in words, with where it is changed."""

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.template.loader import render_to_string

from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from qa.calibration.self_calibration import settings_of
from qa.policies.models import RefusalWording

_NAMED = 5  # audiences; it counts the others


def set_elsewhere(base: KnowledgeBase, user: AbstractBaseUser | AnonymousUser) -> str:
    """Return the lines on a knowledge base as HTML, by four queries."""
    audiences = Audience.objects.listed_for(user)
    wordings = RefusalWording.objects.filter(knowledge_base=base)
    values = {
        "base": base,
        "target": settings_of(base).get_wrong_share_target_display(),
        "audiences": audiences[:_NAMED],
        "more": max(audiences.count() - _NAMED, 0),
        "wordings": wordings.count(),
    }
    return render_to_string("admin/qa/policy/_set_elsewhere.html", values)
