"""The demonstration questions: which to ask, and asking them over HTTP."""

import http.client
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.http.request import validate_host

from accounts.models import ApiToken
from accounts.services import create_token
from nescio.up import UpError
from nescio.up.address import Address
from qa.evaluation.cases import Case
from qa.evaluation.suites.demo import ensure_demonstration_users
from qa.pipeline.gates import Reason

_ASK_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Asked:
    """A demonstration question with what came back.

    Attributes:
        seconds: Round trip over HTTP.
    """

    expected: Case
    answer: Mapping[str, object]
    seconds: float

    @property
    def is_as_expected(self) -> bool:
        """Whether outcome, gate and reason are the expected ones, and the text holds what it should."""
        wanted, got = self.expected, self.answer
        if bool(got["answered"]) != wanted.is_answerable:
            return False
        if wanted.gate and got["gate"] != wanted.gate:
            return False
        # A policy may keep from the asker that there is something they may not see.
        is_hidden = wanted.reason == Reason.NOT_ENTITLED
        if wanted.reason and not is_hidden and got["reason"] != wanted.reason:
            return False
        text = str(got["text"]).lower()
        alternatives = wanted.answer_contains
        return not alternatives or any(part.lower() in text for part in alternatives)


def choose(cases: Sequence[Case], count: int) -> tuple[Case, ...]:
    """Return `count` questions that show every kind of outcome, in their own order.

    First one for each gate, then one for each other reason or asker, then again.
    """
    of_kind: Counter[tuple[object, ...]] = Counter()
    kinds_of_gate: Counter[tuple[object, ...]] = Counter()
    ranked = []
    for position, case in enumerate(cases):
        gate = (case.is_answerable, case.gate)
        kind = (*gate, case.reason, case.asker)
        of_kind[kind] += 1
        if of_kind[kind] == 1:
            kinds_of_gate[gate] += 1
        ranked.append((of_kind[kind], kinds_of_gate[gate], position))
    chosen = sorted(position for _, _, position in sorted(ranked)[:count])
    return tuple(cases[position] for position in chosen)


def ask(address: Address, token: str, case: Case) -> Asked:
    """Ask one question with one user's token.

    Raises:
        UpError: The server did not answer the question with 200.
    """
    connection = http.client.HTTPConnection(
        address.reachable_host, address.port, timeout=_ASK_SECONDS
    )
    began = time.perf_counter()
    try:
        connection.request(
            "POST",
            "/api/v1/ask",
            body=json.dumps({"question": case.question}),
            headers={
                **_own_headers(address),
                "Authorization": f"Token {token}",
                "Content-Type": "application/json",
                "Accept": "application/json",
            },
        )
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        msg = f"{address.url} did not answer {case.question!r}: {error}"
        raise UpError(msg) from error
    finally:
        connection.close()
    seconds = time.perf_counter() - began
    if response.status != http.client.OK:
        shown = body.decode(errors="replace")[:500]
        msg = f"{address.url} answered {case.question!r} with HTTP {response.status}: {shown}"
        raise UpError(msg)
    return Asked(case, json.loads(body), seconds)


def health(address: Address) -> tuple[bool, Mapping[str, object]]:
    """Return whether the server is ready, and what it says; an empty answer while it is not up."""
    connection = http.client.HTTPConnection(
        address.reachable_host, address.port, timeout=30
    )
    try:
        connection.request("GET", "/healthz", headers=_own_headers(address))
        response = connection.getresponse()
        return response.status == http.client.OK, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        return False, {}
    finally:
        connection.close()


def _own_headers(address: Address) -> Mapping[str, str]:
    """Return what lets a request from this machine in, as one of a proxy of ours."""
    host = address.reachable_host
    if not validate_host(host, settings.ALLOWED_HOSTS):
        host = settings.ALLOWED_HOSTS[0].lstrip(".")
    return {"Host": host, "X-Forwarded-Proto": "https"}


# Who asks the demonstration questions: three users with other audiences.


_TOKEN_LIFE = timedelta(hours=1)


@contextmanager
def demonstration_tokens() -> Iterator[Mapping[str, str]]:
    """Hand out a token for each asker, and revoke them at the end."""
    issued = {
        name: create_token(user=user, name="demonstration", expires_in=_TOKEN_LIFE)
        for name, user in ensure_demonstration_users().items()
    }
    try:
        yield {name: token.secret for name, token in issued.items()}
    finally:
        ApiToken.objects.filter(
            pk__in=[token.row.pk for token in issued.values()]
        ).delete()
