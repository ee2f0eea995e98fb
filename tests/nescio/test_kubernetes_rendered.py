"""What Kustomize makes of deploy/kubernetes, with each of its components."""

import os
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml

from .test_kubernetes import ROOT, VERSIONS, container_of, pod_of

KUBECTL = shutil.which("kubectl") or ""

pytestmark = pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed")


def _render(directory):
    done = subprocess.run(
        [KUBECTL, "kustomize", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


@pytest.fixture(
    params=[(), ("gpu",), ("pgbouncer",), ("gpu", "pgbouncer"), ("models",)],
    ids="+".join,
)
def rendered(request, tmp_path):
    def relative(name):
        return os.path.relpath(ROOT / name, tmp_path.resolve())

    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump(
            {
                "resources": [relative("base")],
                "components": [relative(name) for name in request.param],
            }
        )
    )
    return request.param, _render(tmp_path)


@pytest.mark.slow
def test_what_is_applied_is_what_kubernetes_accepts(rendered):
    for each in rendered[1]:
        for version in VERSIONS:
            kubernetes_validate.validate(each, version, strict=True)


def test_the_example_is_base_with_both_components():
    found = {
        (each["kind"], each["metadata"]["name"]) for each in _render(ROOT / "example")
    }

    assert {("Deployment", "web"), ("Deployment", "pgbouncer")} <= found


def test_every_container_is_held_to_what_it_needs(rendered):
    pods = [
        pod_of(each) for each in rendered[1] if each["kind"] in {"Deployment", "Job"}
    ]

    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for each in (*pod["containers"], *pod.get("initContainers", ())):
            assert each["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert each["resources"]["limits"]["memory"]
            assert {"cpu", "memory"} <= set(each["resources"]["requests"])


def test_all_processes_of_nescio_share_image_and_settings(rendered):
    images, sources, waiting = set(), set(), set()
    for each in rendered[1]:
        name = each["metadata"]["name"]
        if each["kind"] not in {"Deployment", "Job"} or name == "pgbouncer":
            continue
        if pod_of(each).get("initContainers"):
            waiting.add(name)
        for one in (
            *pod_of(each)["containers"],
            *pod_of(each).get("initContainers", ()),
        ):
            images.add(one["image"])
            sources.add(str(one["envFrom"]))

    own = {"nescio:local-cuda" if "gpu" in rendered[0] else "nescio:local"}
    assert images == own | ({"nescio:local-cuda"} if "models" in rendered[0] else set())
    assert len(sources) == 1
    assert waiting == {
        "web", "worker", "worker-imports", "worker-training", "worker-evaluation", "scheduler",
    }  # fmt: skip


def test_services_budgets_and_policies_meet_pods(rendered):
    pods = [
        each["spec"]["template"]["metadata"]["labels"]
        for each in rendered[1]
        if each["kind"] in {"Deployment", "Job"}
    ]
    counted = 0
    for each in rendered[1]:
        spec = each.get("spec", {})
        selector = {
            "Service": lambda spec: spec["selector"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"].get("matchLabels", {}),
        }.get(each["kind"])
        if selector:
            counted += 1
            wanted = selector(spec).items()
            assert any(wanted <= labels.items() for labels in pods), each["metadata"]
    assert counted >= 5


def test_a_release_takes_no_web_server_away_before_another_serves(rendered):
    (web,) = [
        each["spec"]
        for each in rendered[1]
        if (each["kind"], each["metadata"]["name"]) == ("Deployment", "web")
    ]
    missing = web["strategy"]["rollingUpdate"]["maxUnavailable"]

    assert web["replicas"] - missing >= 1
    if "gpu" not in rendered[0]:
        assert missing == 0


def test_behind_pgbouncer_the_web_server_signs_in_as_another_role(rendered):
    by_name = {
        each["metadata"]["name"]: container_of(each)
        for each in rendered[1]
        if each["kind"] == "Deployment"
    }
    own = {each["name"]: each for each in by_name["web"].get("env", ())}
    assert all("env" not in each for name, each in by_name.items() if name != "web")
    if "pgbouncer" not in rendered[0]:
        assert own == {}
        return

    key = own["DATABASE_URL"]["valueFrom"]["secretKeyRef"]["key"]
    assert key == "WEB_DATABASE_URL"
    assert own["NESCIO_DATABASE_POOLER"]["value"] == "true"
    assert own["NESCIO_DATABASE_ROLE"]["value"] == ""


def test_gpus_are_given_where_local_models_run_for_long(rendered):
    given = {
        each["metadata"]["name"]
        for each in rendered[1]
        if each["kind"] == "Deployment"
        and "nvidia.com/gpu" in container_of(each)["resources"]["limits"]
    }
    wanted = {"web", "worker-training", "worker-evaluation"}

    by_component = {"gpu": wanted, "models": {"models"}}
    assert given == set().union(*(by_component.get(c, set()) for c in rendered[0]))
