"""What a version asks for and is not there, said on its pages and over REST."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from probes.cards import ProbeKind
from probes.language_model import load_model
from probes.services import promote, register, register_shipped
from qa.inference.configured import load_language_model
from qa.inference.policy_models import closed_book_fingerprint
from qa.models import Policy
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.policies.lacking import lacking
from qa.policies.services import activate, ensure_default_policy, new_version
from tests.factories import make_knowledge_base
from tests.probes.direction_files import direction_probe_files, made_directions
from tests.probes.probe_files import MODEL, activation_files, joint_probe_files

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

_ASKED = {"min_answerability": 0.4, "abstention": True, "min_early_confidence": 0.5}
_WIDTH = 576  # of the bundled model


@pytest.fixture
def policy() -> Policy:
    return ensure_default_policy(make_knowledge_base())


def activated(files, **changes):
    return promote(register(files, **changes).pk, "active", by=None)


def adaptive(policy: Policy, timing: RetrievalTiming) -> Policy:
    return new_version(policy, by=None, scope=Scope.ADAPTIVE, retrieval_timing=timing)


def test_what_an_adaptive_policy_lacks_is_said(policy, settings):
    watched = adaptive(policy, RetrievalTiming.MONITORED)
    by_boundary = adaptive(policy, RetrievalTiming.BOUNDARY)

    assert lacking(by_boundary) == (
        "No boundary probe is active: evidence is retrieved every time. Fit one: "
        "manage.py train boundary_probe."
    )
    assert "train directions" in lacking(watched)
    assert lacking(adaptive(policy, RetrievalTiming.HISTORY)) == lacking(policy) == ""
    settings.LANGUAGE_SERVER_URL = "http://x"
    assert "knowledge_base" in lacking(watched)
    assert lacking(policy) == ""


def test_what_is_read_of_another_language_model_is_lacking(policy):
    watched = adaptive(policy, RetrievalTiming.MONITORED)
    by_boundary = adaptive(policy, RetrievalTiming.BOUNDARY)
    activated(activation_files(ProbeKind.BOUNDARY))
    activated(direction_probe_files(made_directions()))

    for version, remedy, fitted_for in (
        (watched, "train directions", "0" * 12),
        (by_boundary, "train boundary_probe", MODEL[:12]),
    ):
        said = lacking(version)
        assert "that fits the language model that runs" in said
        assert fitted_for in said
        assert remedy in said
        assert "NESCIO_MODEL_PRECISION" in said

    runs = closed_book_fingerprint()
    activated(activation_files(ProbeKind.BOUNDARY, language_model=runs))
    activated(direction_probe_files(made_directions(language_model=runs)))
    assert lacking(watched) == lacking(by_boundary) == ""


def test_a_probe_of_another_language_model_gives_no_confidence(policy):
    version = new_version(policy, by=None, **_ASKED)
    strict = new_version(policy, by=None, **_ASKED, answer_without_probe=False)
    probe = activated(activation_files(ProbeKind.EARLY))

    said = lacking(version)
    assert said.startswith("No early probe is active that fits the language model")
    assert "answers are shown without the confidence" in said
    assert f"Active are {probe} for tiny (aaaaaaaaaaaa)" in said
    assert "answers are refused" in lacking(strict)

    runs = load_model("bundled").fingerprint
    files = activation_files(ProbeKind.EARLY, language_model=runs, width=_WIDTH)
    activated(files)
    assert lacking(version) == lacking(strict) == ""


def test_a_probe_that_does_not_fit_what_it_reads_says_so(policy):
    runs = load_model("bundled").fingerprint
    activated(activation_files(ProbeKind.EARLY, language_model=runs, width=32))

    said = lacking(new_version(policy, by=None, **_ASKED))

    assert "reads 32 numbers per token and the model has 576" in said


def test_a_joint_probe_without_its_inputs_is_lacking(policy):
    runs = load_language_model().fingerprint
    inputs = {ProbeKind.EARLY: "e" * 64}
    activated(joint_probe_files(language_model=runs, inputs=inputs))
    changes = _ASKED | {"min_early_confidence": 0.0, "min_joint_confidence": 0.5}

    said = lacking(new_version(policy, by=None, **changes))

    assert "No joint probe" in said
    assert "eeeeeeee, which is not in use" in said


def test_the_shipped_probes_fit_in_the_precision_that_they_were_fitted_in(policy):
    import torch

    register_shipped()
    version = new_version(policy, by=None, **_ASKED, min_confidence=0.5)

    said = lacking(version)

    fits = load_model("bundled").dtype == torch.bfloat16
    assert (said == "") is fits
    assert fits or "No abstention or early probe" in said


def test_what_is_on_and_decides_nothing_is_said(policy, settings):
    settings.VERIFIER = "bundled"
    policy = new_version(policy, by=None, verification=True)

    def said(**changes: object) -> str:
        return lacking(new_version(policy, by=None, **changes))

    idle = said(min_answerability=0.4, abstention=True)
    assert "each of its minimum confidences is 0" in idle
    assert "No early probe is active: answers are shown" in said(**_ASKED)
    assert "are refused" in said(**_ASKED, answer_without_probe=False)
    idle = said(debias_verdict=True, abstention=True, min_early_confidence=0.5)
    assert "is the answer from a probability of 0.8" in idle
    assert said(debias_verdict=True, min_answerability=0.4) == ""
    assert said(debias_verdict=True, verification=False) == ""


def test_a_versions_pages_say_what_it_lacks(enter, policy):
    version = new_version(policy, by=None, **_ASKED)
    pages = [
        reverse(f"admin:qa_policy_{name}", args=[version.pk])
        for name in ("activate_this", "change")
    ]
    client = enter(Role.ADMIN)
    for page in pages:
        assert "No early probe is active" in client.get(page).content.decode(), page

    activate(version, by=None)
    shown = client.get(pages[1]).content.decode()
    assert shown.count("No early probe is active") == 1
    of_first = reverse("admin:qa_policy_change", args=[policy.pk])
    assert "No early probe" not in client.get(of_first).content.decode()
