"""The job that answers in Slack, which expects a response within three seconds."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User

from accounts.exceptions import UnavailableError
from integrations.chat import slack
from integrations.chat.asking import (
    ChatAccountError,
    as_its_asker_sees_it,
    asker_of,
    chat_account,
    keep,
    person_by_mail,
)
from jobs.exceptions import RetryableJobError
from jobs.models import Job
from jobs.run import JobRun
from kb.exceptions import KnowledgeBaseArchivedError, KnowledgeBaseNotFoundError
from qa.answers.asking import decide_alone
from qa.answers.models import Answer
from qa.exceptions import AnswerPendingError, InvalidQuestionError

KIND = "chat.slack"


def answer_in_slack(run: JobRun) -> dict[str, object]:
    """Decide a question and post the answer, or post the text in `say`."""
    said = run.parameters.get("say")
    slack.post(run.parameters["place"], {"text": said} if said else _message(run))
    return {"posted": True}


def _message(run: JobRun) -> dict[str, Any]:
    try:
        answer, asker = _kept(run)
        decide_alone(answer)
        shown = as_its_asker_sees_it(answer, asker)
    except (
        InvalidQuestionError,
        KnowledgeBaseArchivedError,
        KnowledgeBaseNotFoundError,
    ) as error:
        _forget_words(run)
        return {"text": str(error)}
    except ChatAccountError:
        _forget_words(run)
        raise
    except AnswerPendingError as error:
        raise RetryableJobError(str(error)) from error
    except UnavailableError:
        return {"text": "I can't answer now; ask again in a moment."}
    return slack.answer_message(shown, user=run.parameters["user"])


def _kept(run: JobRun) -> tuple[Answer, User]:
    given = run.parameters
    found = Answer.objects.filter(pk=given["answer"]).first()
    asker = (
        asker_of(found) if found else _asker(given["user"], is_public=given["public"])
    )
    if asker is None:
        raise InvalidQuestionError("Your account is no longer active; ask an admin.")
    if found is not None:
        found.asker = asker
        return found, asker
    with run.step():
        answer = keep(
            given["text"],
            asker=asker,
            knowledge_base=settings.SLACK_KNOWLEDGE_BASE,
            answer_id=UUID(given["answer"]),
        )
        _forget_words(run)
    return answer, asker


def _forget_words(run: JobRun) -> None:
    """Remove the question's words from the job; its answer's copy can be erased."""
    jobs = Job.objects.filter(pk=run.job_id)
    jobs.update(parameters={**run.parameters, "text": ""})


def _asker(user: str, *, is_public: bool) -> User:
    """Return who asks: a channel's questions are asked as the chat's account."""
    account = chat_account(settings.SLACK_ACCOUNT)
    if is_public:
        return account
    return person_by_mail(slack.mail_of(user), account=account) or account
