"""The registry: kept once, one in force for each kind and model, every change noted."""

from dataclasses import replace

import pytest
from django.db import IntegrityError, transaction

from probes.abstention.files import probe_from
from probes.abstention.probe import Kind
from probes.cards import ProbeFiles, ProbeKind
from probes.exceptions import ProbeFileError, ProbeNotFoundError, ProbeStateError
from probes.joint import joint_from
from probes.models import Probe, ProbeChange
from probes.services import promote, register, register_shipped, retire, roll_back
from tests.factories import make_user

from .probe_files import MODEL, activation_files, joint_probe_files, reranker_files

pytestmark = pytest.mark.django_db
OTHER = "b" * 64


@pytest.fixture
def user():
    return make_user()


def registered(seed=0, kind=ProbeKind.ABSTENTION, language_model=MODEL):
    return register(activation_files(kind, seed=seed, language_model=language_model))


def states(*probes):
    rows = dict(Probe.objects.values_list("pk", "state"))
    return [rows[probe.pk] for probe in probes]


@pytest.mark.parametrize("network", Kind)
def test_a_probe_is_kept_whole_and_once(user, network):
    files = activation_files(network=network, metrics={"auroc": 0.7})

    probe = register(files, by=user, note="first try")
    again = register(files)

    assert again.pk == probe.pk
    kept = Probe.objects.get()
    assert kept.files.card == files.card
    assert kept.files.weights == files.weights
    assert kept.fingerprint == files.fingerprint == kept.files.fingerprint
    assert (kept.kind, kept.layer, kept.part) == ("abstention", 1, "block")
    assert (kept.state, kept.created_by, kept.note) == ("candidate", user, "first try")
    assert kept.metrics == {"auroc": 0.7}
    assert kept.sizes == {"answers": 160, "groups": 8, "width": 32}
    assert probe_from(kept.files, language_model=MODEL).width == 32
    change = ProbeChange.objects.get()
    assert (change.before, change.after, change.by) == ("", "candidate", user)


def test_a_joint_probe_is_kept_without_a_layer():
    register(joint_probe_files())

    kept = Probe.objects.get()

    assert (kept.kind, kept.layer, kept.part) == ("joint", None, "")
    assert 0 < joint_from(kept.files, language_model=MODEL).confidence({}) < 1


def test_what_can_not_be_loaded_is_not_kept():
    files = activation_files()
    for damaged in (
        replace(files, weights=files.weights[:-1]),
        replace(files, card=b"{}"),
        ProbeFiles("x", files.card.replace(b'"linear"', b'"lstm"'), files.weights),
    ):
        with pytest.raises(ProbeFileError):
            register(damaged)
    assert not Probe.objects.exists()


def test_promoting_retires_the_one_in_force_and_can_be_undone(user):
    first, second = registered(0), registered(1)

    promote(first.pk, "active", by=user)
    promote(second.pk, "active", by=user)
    assert states(first, second) == ["retired", "active"]
    promote(first.pk, "active", by=user)

    assert states(first, second) == ["active", "retired"]
    last = ProbeChange.objects.filter(probe=first)[0]
    assert (last.before, last.after, last.replaced, last.by) == (
        "retired", "active", second, user,
    )  # fmt: skip
    assert ProbeChange.objects.filter(probe=second).count() == 3


def test_each_kind_and_model_has_its_own_probe_in_force(user):
    probes = [
        registered(0),
        registered(1, kind=ProbeKind.EARLY),
        registered(2, language_model=OTHER),
        register(joint_probe_files()),
    ]

    for probe in probes:
        promote(probe.pk, "active", by=user)

    assert states(*probes) == ["active"] * 4
    assert Probe.objects.active_for(MODEL).count() == 3


def test_any_number_run_in_shadow_beside_the_one_in_force(user):
    probes = [registered(seed) for seed in range(3)]

    promote(probes[0].pk, "active", by=user)
    for probe in probes[1:]:
        promote(probe.pk, "shadow", by=user)

    assert states(*probes) == ["active", "shadow", "shadow"]
    assert Probe.objects.serving().count() == 3


def test_the_database_itself_holds_one_in_force(user):
    first, second = registered(0), registered(1)
    promote(first.pk, "active", by=user)

    with pytest.raises(IntegrityError), transaction.atomic():
        Probe.objects.filter(pk=second.pk).update(state="active")


def test_a_retired_probe_is_kept_and_can_be_promoted_again(user):
    probe = registered()
    promote(probe.pk, "active", by=user)

    retire(probe.pk, by=user)
    assert states(probe) == ["retired"]
    promote(probe.pk, "shadow", by=user)

    assert states(probe) == ["shadow"]


def test_what_changes_nothing_is_refused(user):
    probe = registered()

    for state in ("candidate", "retired", "nonsense"):
        with pytest.raises(ProbeStateError):
            promote(probe.pk, state, by=user)
    promote(probe.pk, "shadow", by=user)
    with pytest.raises(ProbeStateError, match="already"):
        promote(probe.pk, "shadow", by=user)
    retire(probe.pk, by=user)
    with pytest.raises(ProbeStateError, match="already"):
        retire(probe.pk, by=user)
    with pytest.raises(ProbeNotFoundError):
        promote(0, "active", by=user)


def test_a_probe_that_was_damaged_in_the_database_is_not_put_in_force(user):
    in_force, probe = registered(0), registered(1)
    promote(in_force.pk, "active", by=user)
    Probe.objects.filter(pk=probe.pk).update(weights=b"nothing")

    with pytest.raises(ProbeFileError):
        promote(probe.pk, "active", by=user)

    assert states(in_force, probe) == ["active", "candidate"]


def test_a_reranker_that_lowers_recall_is_not_activated(user):
    worse = register(reranker_files(before=0.8, after=0.75))
    unmeasured = register(reranker_files(before=None, after=None))
    equal = register(reranker_files(before=0.8, after=0.8))

    for probe in (worse, unmeasured):
        with pytest.raises(ProbeStateError, match="recall among the first notes"):
            promote(probe.pk, "active", by=user)
    promote(equal.pk, "active", by=user)

    assert states(worse, unmeasured, equal) == ["candidate", "candidate", "active"]


def test_rolling_back_activates_what_was_replaced_or_nothing(user):
    first, second = registered(), registered(seed=1)
    promote(first.pk, "active", by=user)
    promote(second.pk, "active", by=user)

    assert roll_back(second.pk, by=user) == first
    assert states(first, second) == ["active", "retired"]
    roll_back(first.pk, by=user)
    assert states(first, second) == ["retired", "active"]
    with pytest.raises(ProbeStateError, match="only an active one"):
        roll_back(first.pk, by=user)

    alone = registered(kind=ProbeKind.EARLY)
    promote(alone.pk, "active", by=user)
    assert roll_back(alone.pk, by=user).state == "retired"


@pytest.fixture
def shipped(tmp_path):
    for name, files in {
        "abstention": activation_files(),
        "abstention-elsewhere": activation_files(language_model=OTHER),
        "joint": joint_probe_files(),
    }.items():
        files.write(tmp_path / name)
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    return tmp_path


def test_what_comes_along_is_registered_once_and_in_force(
    shipped, django_assert_num_queries
):
    made = register_shipped(shipped)

    assert states(*made) == ["active"] * 3
    with django_assert_num_queries(1):
        assert register_shipped(shipped) == []


def test_what_an_operator_decided_stands(shipped, user):
    mine = registered(1)
    promote(mine.pk, "active", by=user)

    probe, _, _ = register_shipped(shipped)
    assert states(mine, probe) == ["active", "candidate"]
    promote(probe.pk, "active", by=user)
    retire(probe.pk, by=user)
    register_shipped(shipped)

    assert states(mine, probe) == ["retired", "retired"]


def test_damaged_files_that_come_along_are_told(shipped):
    (shipped / "joint" / "weights.json").write_text("{}")
    with pytest.raises(ProbeFileError, match="joint"):
        register_shipped(shipped)


def test_there_may_be_none(tmp_path):
    assert register_shipped(tmp_path) == []
