"""Helpers for opening suites: options, policies, sampling and data set files."""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypedDict, Unpack

from django.contrib.auth.models import AbstractBaseUser

from accounts.ids import number_in
from kb.documents.models import KnowledgeBase
from qa.evaluation.cases import Case, sample
from qa.evaluation.judging import Parameter, Scoring, Suite
from qa.evaluation.knowledge import Loading
from qa.evaluation.question_suite import AskedSuite
from qa.exceptions import EvaluationDataError
from qa.policies.models import Policy
from qa.policies.services import CHANGEABLE, active_policy, new_version

PROTOCOLS: Final[Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("protocols.toml").read_text(encoding="utf-8")
)


def find_policy(text: str) -> Policy:
    """Return the version called "NAME:VERSION", or "KNOWLEDGE-BASE/NAME:VERSION"."""
    slug, _, rest = text.rpartition("/")
    name, _, version = rest.rpartition(":")
    number = number_in(version)
    if not name or number is None:
        raise EvaluationDataError(
            f"{text!r} does not name a policy; write NAME:VERSION, such as default:1."
        )
    rows = Policy.objects.filter(name=name, version=number)
    if slug:
        rows = rows.filter(knowledge_base__slug=slug)
    found = list(rows.select_related("knowledge_base")[:2])
    if not found:
        raise EvaluationDataError(f"There is no policy {text}.")
    if len(found) > 1:
        first = found[0].knowledge_base.slug
        raise EvaluationDataError(
            f"Several knowledge bases have a policy {text}; write for example "
            f"{first}/{text}."
        )
    return found[0]


# Gates that only measure in a shadow run, so that every ablation can be replayed.
_IN_SHADOW: Mapping[str, bool] = {
    "verification": False,
    "hard_refusal": False,
    "soft_refusal": False,
    "support_check": False,
    "abstention": False,
    "refuse_when_stale": False,
}
_SHADOW_NAME = "shadow"


class SuiteOptions(TypedDict, total=False):
    """The options for opening a suite; missing ones take the suite's default.

    `data` may be a file, its directory, or a directory of data sets; `knowledge` is a
    file of facts (suite own), `knowledge_base` the slug of an existing one. `articles`
    and `exclude_articles` select groups.
    """

    data: Path | None
    policy: Policy | None
    limit: int | None
    seed: int
    shadow: bool
    knowledge_base: str
    knowledge: Path | None
    articles: tuple[str, ...]
    exclude_articles: tuple[str, ...]
    loading: Loading | None
    by: AbstractBaseUser | None


class SuiteFactory(Protocol):
    def __call__(self, **options: Unpack[SuiteOptions]) -> Suite: ...


COMMON = frozenset({"data", "policy", "limit", "seed", "shadow", "loading", "by"})


def refuse_others(name: str, options: SuiteOptions, taken: frozenset[str]) -> None:
    """Refuse a non-empty option that the suite does not take.

    Raises:
        EvaluationDataError: There is such an option.
    """
    for option, value in options.items():
        if value and option not in taken | COMMON:
            flag = option.replace("_", "-")
            raise EvaluationDataError(
                f"The suite {name} does not take --{flag} {value!r}; leave it out."
            )


def about(data: str, options: SuiteOptions, **more: Parameter) -> dict[str, Parameter]:
    return {
        "data": data,
        **more,
        "limit": options.get("limit"),
        "seed": options.get("seed", 0),
        "shadow": bool(options.get("shadow")),
    }


def deciding_policy(knowledge_base: KnowledgeBase, options: SuiteOptions) -> Policy:
    policy = options.get("policy") or active_policy(knowledge_base)
    if not options.get("shadow"):
        return policy
    copied = {name: getattr(policy, name) for name in CHANGEABLE}
    wanted = {**copied, **_IN_SHADOW, "name": _SHADOW_NAME}
    found = Policy.objects.filter(knowledge_base=knowledge_base, **wanted).first()
    if found:
        return found
    base = active_policy(knowledge_base)
    return new_version(base, by=options.get("by"), **wanted)


def sampled_suite(
    name: str,
    protocol: str,
    knowledge_base: KnowledgeBase,
    cases: Sequence[Case],
    scoring: Scoring,
    options: SuiteOptions,
    **parameters: str,
) -> AskedSuite:
    """Return a suite of sampled cases; `parameters`, with `data`, identify the run."""
    seed, limit = options.get("seed", 0), options.get("limit")
    return AskedSuite(
        name=name,
        protocol=protocol,
        knowledge_base=knowledge_base,
        policy=deciding_policy(knowledge_base, options),
        cases=sample(cases, limit, seed=seed),
        scoring=scoring,
        about=about(parameters.pop("data"), options, **parameters),
    )


def find_file(suite: str, data: Path | None, *patterns: str) -> Path:
    """Return the data set's file; in a directory, the first match of the patterns."""
    if data is None:
        raise EvaluationDataError(
            f"The suite {suite} needs its data set: give --data PATH, the file "
            f"{Path(patterns[0]).name} or a directory with {patterns[0]}."
        )
    if data.is_file():
        return data
    for pattern in patterns:
        for below in (pattern, Path(pattern).name):
            found = sorted(data.glob(below))
            if found:
                return found[0]
    raise EvaluationDataError(
        f"{data} has no {patterns[0]}; give the file itself with --data."
    )


def read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise EvaluationDataError(f"{file.name} is not JSON: {error}.") from error


def misread(file: Path, what: str) -> EvaluationDataError:
    return EvaluationDataError(f"{file.name} is not laid out as {what}.")


def digest_of(*files: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
