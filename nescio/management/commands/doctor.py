"""manage.py doctor: check everything that a deployment needs, and print remedies."""

import logging
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from smtplib import SMTPException

from django.conf import settings
from django.core import checks
from django.core.mail import get_connection
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from accounts.acting import unrestricted
from accounts.exceptions import NescioError
from accounts.prepared import execute
from nescio.health import Finding, language_server, look

_MAX_CLOCK_SECONDS = 2.0
_REMEDIES = {
    "database": "Start it, or correct DATABASE_URL. Without one: manage.py up",
    "replica": "docs/how-to/run-and-deploy.md#a-read-replica",
    "broker": "Start it, or correct CELERY_BROKER_URL. Jobs wait until then.",
    "queue": "Start workers: celery -A nescio worker, and celery -A nescio beat.",
    "settings": "docs/how-to/run-and-deploy.md; manage.py check --deploy says more.",
    "migrations": "Run: manage.py migrate",
    "clock": "Set the time by NTP on both machines: leases and validity depend on it.",
    "sign-in": "docs/how-to/sign-in-with-your-identity-provider.md",
    "languages": "docs/how-to/use-another-language.md",
    "vectors": "Start workers; entries that are not embedded are not found.",
    "mail": "Correct NESCIO_MAIL_URL; reminders, invitations and alerts wait.",
    "slack": "docs/how-to/connect-slack.md",
    "teams": "docs/how-to/connect-teams.md",
}


class Command(BaseCommand):
    help = (
        "Check this deployment: settings, disk, database, vectors, broker, queue, clock "
        "and models. Says what to do about each problem; the exit status is 1 if "
        "questions could not be answered."
    )
    requires_system_checks = []  # the command runs them itself

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--no-models", action="store_true", help="Do not load any model."
        )

    def handle(self, *, no_models: bool, **_: object) -> None:
        logging.disable()  # problems are printed instead
        try:
            with unrestricted("doctor"):
                is_fit = self._report(_findings(with_models=not no_models))
        finally:
            logging.disable(logging.NOTSET)
        if not is_fit:
            raise SystemExit(1)

    def _report(self, findings: Iterable[Finding]) -> bool:
        """Print each finding with its remedy; return whether no vital check failed."""
        is_fit = True
        for name, group in groupby(findings, key=lambda each: each.name):
            wrong = False
            for finding in group:
                state = self.style.SUCCESS("ok   ")
                if not finding.ok and finding.is_vital:
                    state, is_fit = self.style.ERROR("FAIL "), False
                elif not finding.ok:
                    state = self.style.WARNING("warn ")
                self.stdout.write(f"{state}{name:<16}{finding.detail}")
                wrong = wrong or not finding.ok
            if wrong and name in _REMEDIES:
                self.stdout.write(f"{'':<21}{_REMEDIES[name]}")
        return is_fit


def _findings(*, with_models: bool) -> Iterator[Finding]:
    yield from _settings()
    try:
        execute("SELECT 1")
    except DatabaseError as error:
        yield Finding("database", False, str(error).strip().split("\n")[0])
        return
    known = look(with_models=False)
    yield from known
    if any(each.name == "migrations" and not each.ok for each in known):
        return
    yield _tried("clock", _clock)
    if settings.OIDC_ISSUER:
        # Sessions continue without the provider, and people may sign in by password.
        is_vital = not settings.LOCAL_SIGN_IN
        yield replace(_tried("sign-in", _identity_provider), is_vital=is_vital)
    if settings.MAIL_URL:
        yield replace(_tried("mail", _mail), is_vital=False)
    if settings.SLACK_SIGNING_SECRET:
        yield replace(_tried("slack", _slack), is_vital=False)
    if settings.TEAMS_SECRETS:
        yield replace(_tried("teams", _teams), is_vital=False)
    yield _tried("vectors", _vectors)
    yield _tried("vector index", _vector_index)
    yield replace(_tried("languages", _languages), is_vital=False)
    yield _tried("unverified", _unverified)
    if with_models:
        yield _tried("embedder", _embedder)
        yield _tried("verifier", _verifier)
        yield replace(_tried("language model", _language_model), is_vital=False)


def _tried(name: str, check: Callable[[], tuple[bool, str]]) -> Finding:
    try:
        ok, detail = check()
    except (NescioError, DatabaseError) as error:
        ok, detail = False, str(error).strip()
    return Finding(name, ok, detail)


def _settings() -> Iterator[Finding]:
    found = [
        each
        for each in checks.run_checks(include_deployment_checks=True)
        if not each.is_silenced()
    ]
    for each in found:
        text = each.msg.split(". ")[0].rstrip(".")
        yield Finding("settings", False, f"{text} ({each.id})", each.is_serious())
    if not found:
        yield Finding("settings", True, "as a deployment needs them")


def _clock() -> tuple[bool, str]:
    ((database,),) = execute("SELECT clock_timestamp()")
    seconds = abs((datetime.now(UTC) - database).total_seconds())
    return seconds <= _MAX_CLOCK_SECONDS, f"{seconds:.1f} s from the database's"


def _identity_provider() -> tuple[bool, str]:
    """Check that the discovery document is readable and lists our signing algorithm."""
    from accounts.models import ProviderGroup  # noqa: PLC0415
    from accounts.provider.protocol import discovery  # noqa: PLC0415

    said = discovery()
    wanted = settings.OIDC_RP_SIGN_ALGO
    if wanted not in (can := said.get("id_token_signing_alg_values_supported", [])):
        listed = ", ".join(can) or "none"
        return False, f"NESCIO_OIDC_ALGORITHM is {wanted}; it signs by: {listed}"
    if settings.OIDC_GROUPS_CLAIM and not ProviderGroup.objects.exists():
        return False, "no provider group opens anything yet: admin, Provider groups"
    return True, f"{said['issuer']}, {wanted}"


def _mail() -> tuple[bool, str]:
    """Connect and sign in to the mail server as configured, without sending a mail."""
    connection = get_connection()
    try:
        connection.open()
    except (OSError, SMTPException) as error:
        return False, f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}: {error}"
    connection.close()
    return True, f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT} takes mail"


def _slack() -> tuple[bool, str]:
    from integrations.chat.asking import chat_account  # noqa: PLC0415
    from integrations.chat.slack import workspace  # noqa: PLC0415

    account = chat_account(settings.SLACK_ACCOUNT)
    return True, f"workspace {workspace()}, channels ask as {account}"


def _teams() -> tuple[bool, str]:
    from integrations.chat.asking import chat_account  # noqa: PLC0415

    account = chat_account(settings.TEAMS_ACCOUNT)
    return True, f"{len(settings.TEAMS_SECRETS)} channels, which ask as {account}"


def _vectors() -> tuple[bool, str]:
    from kb.embedding.services import active_model  # noqa: PLC0415
    from kb.embedding.switch import count_pending  # noqa: PLC0415

    model = active_model()
    pending = count_pending(model)
    return not pending, f"{pending} entries wait to be embedded"


def _vector_index() -> tuple[bool, str]:
    from kb.embedding import vector_index  # noqa: PLC0415
    from kb.embedding.services import active_model  # noqa: PLC0415

    model = active_model()
    if vector_index.is_ready(model):
        return True, f"{vector_index.size_bytes(model) / 1024**2:.0f} MiB"
    if vector_index.pays(model):
        return (
            False,
            "missing: every vector is compared. A worker builds it each night.",
        )
    return True, f"not needed up to {vector_index.EXACT_LIMIT:,} vectors"


def _languages() -> tuple[bool, str]:
    from kb.documents.models import KnowledgeBase  # noqa: PLC0415
    from kb.embedding.services import reads  # noqa: PLC0415

    rows = KnowledgeBase.objects.order_by("slug").values_list("slug", "language")
    unread = [slug for slug, language in rows if not reads(language)]
    if not unread:
        return True, "every knowledge base has one that is read"
    return (
        False,
        f"the bundled models read English, not the language of {', '.join(unread)}",
    )


def _unverified() -> tuple[bool, str]:
    """List the knowledge bases whose policy lets unverified entries answer."""
    from qa.policies.models import Policy  # noqa: PLC0415

    rows = Policy.objects.filter(is_active=True, unverified_floor__lt=1)
    slugs = rows.order_by("knowledge_base__slug").values_list(
        "knowledge_base__slug", flat=True
    )
    if not slugs:
        return True, "answers nothing by default"
    return True, f"answers by unverified_floor in {', '.join(slugs)}"


def _embedder() -> tuple[bool, str]:
    from kb.embedding.embedder import get_embedder  # noqa: PLC0415
    from kb.embedding.services import active_model  # noqa: PLC0415

    embedder = get_embedder(active_model())
    embedder.encode_question("Ready?")
    return True, f"{embedder.name}, {embedder.dimensions} dimensions, as registered"


def _verifier() -> tuple[bool, str]:
    from qa.answers.sources import configured_verifier  # noqa: PLC0415

    if settings.VERIFIER == "none":
        return True, "none, by NESCIO_VERIFIER"
    verifier = configured_verifier()
    return True, f"{settings.VERIFIER}, {verifier.fingerprint[:12]}"


def _language_model() -> tuple[bool, str]:
    from qa.inference.configured import load_language_model  # noqa: PLC0415

    if settings.LANGUAGE_SERVER_URL:
        server = language_server()
        return server.ok, server.detail
    model = load_language_model()
    return True, model.fingerprint[:12]
