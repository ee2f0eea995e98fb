"""Probes in the admin: looked at by who may, trained and promoted by who steers."""

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from probes.cards import MAX_CARD_BYTES, ProbeFiles
from probes.models import Probe, ProbeChange
from probes.services import promote, register
from tests.probes.direction_files import direction_probe_files, made_directions
from tests.probes.probe_files import activation_files, joint_probe_files
from tests.qa.evaluated import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

LIST = "admin:probes_probe_changelist"
METRICS = {
    "measured": "out of 5 folds, split by group",
    "auroc": {"value": 0.741, "low": 0.7, "high": 0.78},
    "ece": {"value": 0.03, "low": None, "high": None},
    "baselines": {"log_probability": {"auroc": {"value": 0.663}}},
    "reliability": [
        {"probability": 0.2, "accuracy": 0.25, "count": 10},
        {"probability": 0.8, "accuracy": 0.75, "count": 10},
    ],
    "risk_coverage": [[0.1, 0.0], [0.5, 0.1], [1.0, 0.3]],
}


@pytest.fixture
def probe():
    return register(activation_files(metrics=METRICS), note="a first try")


def page_of(probe) -> str:
    return reverse("admin:probes_probe_change", args=[probe.pk])


def act(client, probe, name):
    return client.post(reverse(f"admin:probes_probe_{name}", args=[probe.pk]))


def test_a_probe_shows_what_it_is_and_what_it_is_worth(enter, probe):
    client = enter(Role.SME)

    listed = client.get(reverse(LIST)).content.decode()
    page = client.get(page_of(probe)).content.decode()

    assert "0.741 [0.700, 0.780]" in listed
    assert "candidate" in listed
    assert "tiny, block 1" in listed
    assert "log probability" in page
    assert "0.663" in page
    assert "a first try" in page
    assert "new → candidate" in page
    for name in ("reliability", "risk_coverage"):
        curve = reverse("admin:probes_probe_curve", args=[probe.pk, name])
        assert curve in page
        drawn = client.get(curve)
        assert drawn["Content-Type"] == "image/svg+xml"
        assert b"<svg" in drawn.content
    unknown = reverse("admin:probes_probe_curve", args=[probe.pk, "nothing"])
    assert client.get(unknown).status_code == 404


def test_directions_are_shown_and_put_in_force_and_have_no_shadow(enter):
    client = enter(Role.ADMIN)
    made = register(direction_probe_files(made_directions()))

    shown = client.get(page_of(made)).content.decode()
    listed = client.get(reverse(LIST)).content.decode()
    act(client, made, "shadow_this")
    told = client.get(page_of(made)).content.decode()
    act(client, made, "activate_this")

    assert "directions" in shown
    assert "directions probe" in listed
    assert "run in shadow" in told
    made.refresh_from_db()
    assert made.state == "active"
    assert not Probe.objects.serving().exists()


def test_a_joint_probe_shows_its_weights(enter):
    joint = register(joint_probe_files(signals=("verdict_probability",)))

    page = enter(Role.SME).get(page_of(joint)).content.decode()

    assert "verdict probability" in page


@pytest.mark.parametrize(
    "metrics",
    [
        {"reliability": "abc", "risk_coverage": 5},
        {"reliability": [1, 2], "risk_coverage": [[0.1, 2]]},
        {"reliability": [{"probability": "<b>"}], "risk_coverage": [["a", "b"]]},
        {"auroc": {"value": 0.5}, "baselines": {"<script>": 1}, "measured": "<script>"},
        {"auroc": [], "ece": {"value": "<script>"}},
        {"baselines": []},
    ],
    ids=str,
)
def test_a_card_with_odd_metrics_is_shown_without_them(enter, metrics):
    probe = register(activation_files(metrics=metrics))
    client = enter(Role.ADMIN)

    page = client.get(page_of(probe)).content.decode()

    assert ("&lt;script&gt;" in page) is ("measured" in metrics)
    curve = reverse("admin:probes_probe_curve", args=[probe.pk, "reliability"])
    assert client.get(curve).status_code == 404
    assert client.get(reverse(LIST)).status_code == 200


def test_a_damaged_probe_can_still_be_looked_at(enter):
    joint = register(joint_probe_files())
    Probe.objects.update(card="{}", weights=b"")

    page = enter(Role.ADMIN).get(page_of(joint)).content.decode()

    assert "fit it again" in page


def test_the_list_takes_as_many_queries_for_many_probes(
    enter, probe, django_assert_max_num_queries
):
    client = enter(Role.ADMIN)
    client.get(reverse(LIST))
    with django_assert_max_num_queries(20) as first:
        client.get(reverse(LIST))
    for seed in range(1, 4):
        register(activation_files(seed=seed))

    with django_assert_max_num_queries(len(first)):
        client.get(reverse(LIST))


def test_an_admin_promotes_and_retires_after_being_asked(enter, probe):
    client = enter(Role.ADMIN)
    other = register(activation_files(seed=1))
    promote(other.pk, "active", by=None)
    asked = client.get(reverse("admin:probes_probe_activate_this", args=[probe.pk]))
    assert 'id="confirm-action"' in asked.content.decode()

    act(client, probe, "shadow_this")
    assert Probe.objects.get(pk=probe.pk).state == "shadow"
    again_from = reverse("admin:probes_probe_activate_this", args=[probe.pk])
    assert again_from in client.get(page_of(probe)).content.decode()
    act(client, probe, "activate_this")
    assert again_from not in client.get(page_of(probe)).content.decode()
    assert Probe.objects.get(pk=probe.pk).state == "active"
    assert Probe.objects.get(pk=other.pk).state == "retired"
    again = act(client, probe, "activate_this")
    act(client, probe, "retire_this")

    assert Probe.objects.get(pk=probe.pk).state == "retired"
    assert again.status_code == 302
    assert ProbeChange.objects.filter(probe=probe, by__isnull=False).count() == 3
    assert "in place of" in client.get(page_of(probe)).content.decode()


def test_a_probe_is_downloaded_and_uploaded_as_it_was(enter, probe):
    client = enter(Role.ADMIN)
    handed_out = client.get(reverse("admin:probes_probe_export", args=[probe.pk]))
    archive = zipfile.ZipFile(io.BytesIO(handed_out.content))
    files = {name: archive.read(name) for name in archive.namelist()}
    Probe.objects.all().delete()

    taken = upload(client, files["probe.json"], files["probe.safetensors"])

    assert taken.status_code == 302
    kept = Probe.objects.get()
    assert kept.fingerprint == probe.fingerprint
    assert (kept.state, kept.note) == ("candidate", "from elsewhere")
    assert kept.created_by is not None


def upload(client, card: bytes, weights: bytes):
    return client.post(
        reverse("admin:probes_probe_upload"),
        {
            "card": SimpleUploadedFile("probe.json", card),
            "weights": SimpleUploadedFile("probe.safetensors", weights),
            "note": "from elsewhere",
        },
    )


def test_what_is_no_probe_is_refused_on_the_page(enter):
    client, files = enter(Role.ADMIN), activation_files()
    pickled = b"\x80\x04cos\nsystem\n(S'false'\ntR."

    for card, weights, said in (
        (files.card, pickled, "not those that were saved"),
        (b"{}", files.weights, "fit it again"),
        (b"x" * (MAX_CARD_BYTES + 1), files.weights, "are allowed"),
        (_forged(files, pickled), pickled, "fit it again"),
    ):
        page = upload(client, card, weights)
        assert page.status_code == 200
        assert said in page.content.decode()
    assert not Probe.objects.exists()


def _forged(files: ProbeFiles, weights: bytes) -> bytes:
    """Return a card that vouches for these weights."""
    from probes.cards import card_bytes

    return card_bytes(files.parsed(), weights)


def test_an_admin_starts_a_training_once(enter):
    runs = [make_run(key=key) for key in ("a", "b")]
    client = enter(Role.ADMIN)
    chosen = {
        "kind": "abstention",
        "runs": [run.pk for run in runs],
        "part": "block",
        "layer": "14",
        "folds": "5",
        "seed": "0",
    }

    pages = [client.post(reverse("admin:probes_probe_train"), chosen) for _ in range(2)]

    assert [page.status_code for page in pages] == [302, 302]
    job = Job.objects.get()
    assert job.kind == "probes.train"
    assert job.parameters == {
        "kind": "abstention",
        "runs": sorted(run.pk for run in runs),
        "part": "block",
        "layer": 14,
        "folds": 5,
        "seed": 0,
    }
    assert json.dumps(job.parameters)


def test_without_a_run_nothing_is_trained(enter):
    page = enter(Role.ADMIN).post(
        reverse("admin:probes_probe_train"), {"kind": "abstention"}
    )

    assert "This field is required" in page.content.decode()
    assert not Job.objects.exists()


@pytest.mark.parametrize("role", [Role.SME, Role.CURATOR])
def test_who_does_not_steer_changes_nothing(enter, probe, role):
    client = enter(role)

    pages = [
        *(
            act(client, probe, name)
            for name in ("activate_this", "shadow_this", "retire_this")
        ),
        client.post(reverse("admin:probes_probe_train"), {"kind": "early"}),
        upload(client, b"{}", b""),
    ]

    assert {page.status_code for page in pages} == {403}
    assert Probe.objects.get().state == "candidate"
