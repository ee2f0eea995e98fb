"""What a new system still needs of who runs it: a list on the admin's first page."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.urls import reverse

from kb.demonstration import SLUG
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.answers.models import Answer
from qa.calibration.models import SelfCalibrationSettings

_WANTED = (
    "auth.add_user",
    "kb.add_knowledgebase",
    "kb.add_import",
    "qa.add_policy",
    "qa.view_answer",
)


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    help: str
    link: str
    is_done: bool


def first_steps(user: User) -> tuple[Step, ...]:
    """Return the steps (five queries); none for who can't take all, or once all are done."""
    if not user.has_perms(_WANTED):
        return ()
    # Accounts that have signed in: the demonstration and evaluations have some that never do.
    others = User.objects.filter(last_login__isnull=False).exclude(pk=user.pk)
    own = Entry.objects.exclude(knowledge_base__slug=SLUG)
    steps = (
        Step(
            "Make a knowledge base",
            "Its name and language. The demonstration's may stay for trying things.",
            reverse("admin:kb_knowledgebase_add"),
            KnowledgeBase.objects.exclude(slug=SLUG).exists(),
        ),
        Step(
            "Import your knowledge",
            "A table or a document; a look at what it would change comes first.",
            reverse("admin:kb_import_bring"),
            own.exists(),
        ),
        Step(
            "Say how many shown answers may be wrong",
            "Open your knowledge base there and choose; the thresholds follow from its own "
            "questions.",
            reverse("admin:qa_policy_calibration"),
            SelfCalibrationSettings.objects.exists(),
        ),
        Step(
            "Invite people",
            "An account for each, with a role and the groups that open audiences.",
            reverse("admin:auth_user_add"),
            others.exists(),
        ),
        Step(
            "Ask a question",
            "And give it a thumb: that is what it learns from.",
            reverse("ask"),
            Answer.objects.live().asked_by(user).exists(),
        ),
    )
    return () if all(step.is_done for step in steps) else steps
