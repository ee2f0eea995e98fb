"""Each kind of training in the browser: started, watched, compared, activated, rolled back."""

import json
import re

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from probes.cards import ProbeKind
from probes.models import Probe
from qa.training.directions import MIN_QUESTIONS
from tests.browser.conftest import choose_by_typing, make_signed_up
from tests.factories import make_entry, make_knowledge_base
from tests.probes import tiny_models
from workers.registry import HANDLERS

LIST = "/admin/probes/probe/"
STATEMENTS = (
    "The counter opens at nine in the morning.", "A lost card costs seven euros.",
    "Parcels wait ten days at the counter.", "The reading room closes on Sundays.",
    "Refunds arrive within fourteen days.", "The lift reaches every floor but the cellar.",
    "Bicycles travel free after eight at night.", "Keys are handed out by the porter.",
    "Invoices are sent on the first of the month.", "A locker takes a coin of two euros.",
    "The canteen serves soup until three.", "Visitors park behind the old mill.",
)  # fmt: skip


@pytest.fixture
def tiny(settings, tmp_path, transactional_db):
    """A tiny model, an administrator and a knowledge base with true statements."""
    settings.LANGUAGE_MODEL = str(
        tiny_models.save(tmp_path / "tiny", made=tiny_models.saying_y_after("z", 2_048))
    )
    settings.LANGUAGE_ADAPTER, settings.VERIFIER = "none", "bundled"
    make_signed_up(Role.ADMIN, "boss")
    for text in STATEMENTS:
        make_entry(text)
    return tmp_path


@pytest.fixture
def questions(tiny):
    """Questions that the tiny model answers rightly only where zzzz is said."""
    rows = []
    for number in range(112):
        is_known = number % 4 == 0
        notes = [f"n{number}{letter} aaaa" for letter in "abcd"]
        # Beyond the first three, so that no order is worse than the one found.
        notes.append(f"the fee {number} zzzz")
        rows.append(
            {
                "question": f"q{number} {'zzzz' if is_known else 'aaaa'}",
                "answers": ["y", f"fee {number}"],
                "notes": notes,
            }
        )
    file = tiny / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def train(desk, kind, *, seed, questions=None) -> Probe:
    """Start a training by the form, run its job as a worker does, and watch it end."""
    page = desk.open(LIST)
    page.get_by_role("link", name="Train for CBDR or CtrlA").press("Enter")
    kinds = page.get_by_label("Kind")
    expect(kinds).to_be_visible()
    choose_by_typing(kinds, kinds.locator(f"option[value={kind}]").inner_text().strip())
    if kind == ProbeKind.DIRECTIONS:
        base = make_knowledge_base()
        choose_by_typing(page.get_by_label("Knowledge base"), base.name)
    if questions:
        page.get_by_label("Questions").set_input_files(questions)
    page.get_by_label("Seed").fill(str(seed))
    page.get_by_role("button", name=re.compile("Train")).press("Enter")
    page.get_by_role("link", name="the job").press("Enter")
    expect(page.locator("body")).to_contain_text("probes.train")
    job = Job.objects.latest("created_at")
    run_job(job.pk, HANDLERS)
    job.refresh_from_db()
    assert job.state == "succeeded", job.error
    page.reload()
    expect(page.locator("body")).to_contain_text("succeeded")
    return Probe.objects.get(pk=job.result["probe"])


def act(desk, probe, name) -> None:
    page = desk.open(f"{LIST}{probe.pk}/change/")
    page.get_by_role("link", name=name, exact=True).press("Enter")
    page.get_by_role("button", name="Confirm").press("Enter")
    expect(page.locator("body")).to_contain_text("from the next answer on")


def states(*probes):
    return [Probe.objects.get(pk=probe.pk).state for probe in probes]


def test_every_kind_is_trained_compared_activated_and_rolled_back(desk, questions):
    desk.let_in("boss")
    for kind in (ProbeKind.BOUNDARY, ProbeKind.RERANKER, ProbeKind.DIRECTIONS):
        if kind == ProbeKind.DIRECTIONS:
            # It answers each of them, and needs no more of them than this.
            rows = questions.read_text().splitlines(keepends=True)
            questions.write_text("".join(rows[:MIN_QUESTIONS]))
        first = train(desk, kind, seed=0, questions=questions)
        assert (first.kind, first.state) == (kind, "candidate")
        act(desk, first, "Activate")
        if kind == ProbeKind.RERANKER:
            # It has no seed: other questions make another one.
            rows = questions.read_text().splitlines(keepends=True)
            questions.write_text("".join(rows[:-4]))
        second = train(desk, kind, seed=1, questions=questions)

        page = desk.open(f"{LIST}{second.pk}/change/")
        expect(page.locator("body")).to_contain_text(f"active: {first}")
        act(desk, second, "Activate")
        assert states(first, second) == ["retired", "active"]
        act(desk, second, "Roll back")
        assert states(first, second) == ["active", "retired"]

    boundary, reranker = (
        Probe.objects.get(kind=kind, state="active")
        for kind in (ProbeKind.BOUNDARY, ProbeKind.RERANKER)
    )
    assert boundary.metrics["with_notes"]["auroc"]["value"] > 0.9
    assert reranker.metrics["recall_after"] >= reranker.metrics["recall_before"]
    assert reranker.parsed_card.inputs == {"boundary": boundary.fingerprint}
