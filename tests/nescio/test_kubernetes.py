"""What deploy/kubernetes says agrees with the compose file, the settings and the product."""

import os
import re
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import psycopg
import pytest
import yaml
from django.conf import settings
from django.urls import resolve

from nescio.embedded.places import SYSTEM_USER, Places
from nescio.web_server import HEALTH_PATHS
from tests.waiting import wait_until
from tests.workers.processes import Process, environment_of

from .running import free_port
from .test_deployment import COMPOSE, COMPOSE_ALONE, COMPOSED
from .test_pooler import PGBOUNCER

ROOT = settings.BASE_DIR / "deploy" / "kubernetes"
BASE = ROOT / "base"
VERSIONS = ("1.30", kubernetes_validate.latest_version())


def _documents(file):
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


def _written():
    """Return {path: its documents}, without what only Kustomize reads: parts of them."""
    partial = {"kustomization.yaml", "pod.yaml", "waiting.yaml"}
    return {
        file: _documents(file)
        for file in sorted(ROOT.rglob("*.yaml"))
        if file.name not in partial
    }


def _names(file, *, commented=False):
    before = "#?" if commented else ""
    return set(re.findall(rf"^{before}([A-Z_]+)=", file.read_text(), re.MULTILINE))


def _values(file):
    lines = file.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and line[0] != "#")


def _read(name):
    return (settings.BASE_DIR / name).read_text()


def _found(pattern, text):
    """Return what the groups of a pattern hold; it has to be there."""
    found = re.search(pattern, text)
    assert found, f"{pattern} is not in: {text}"
    return found.groups()


def _mebibytes(text):
    number, unit = _found(r"^(\d+)(Mi|Gi|g)$", text)
    return int(number) * (1 if unit == "Mi" else 1024)


def pod_of(document):
    return document["spec"]["template"]["spec"]


def container_of(document):
    (found,) = pod_of(document)["containers"]
    return found


@pytest.fixture(scope="module")
def composed():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    return {name: each for name, each in services.items() if "build" in each}


@pytest.fixture(scope="module")
def processes():
    return {
        each["metadata"]["name"]: each
        for each in _documents(BASE / "processes.yaml")
        if each["kind"] in {"Job", "Deployment"}
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_is_what_kubernetes_accepts(version):
    written = _written()

    assert sum(map(len, written.values())) > 15
    for documents in written.values():
        for each in documents:
            kubernetes_validate.validate(each, version, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_found(processes):
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(
            processes["web"] | {"spec": processes["web"]["spec"] | {"replica": 2}},
            VERSIONS[-1],
            strict=True,
        )


def test_processes_are_those_of_the_compose_file(composed, processes):
    assert set(processes) == set(composed)
    for name, each in processes.items():
        assert container_of(each)["command"] == composed[name]["command"], name


def test_image_is_that_of_the_compose_file(composed):
    (image,) = {each["image"] for each in composed.values()}

    for part in ("pod.yaml", "waiting.yaml"):
        pod = pod_of(_documents(BASE / part)[0])
        for each in (*pod.get("containers", ()), *pod.get("initContainers", ())):
            assert each["image"] == image


def test_workers_are_looked_at_as_in_the_compose_file(composed, processes):
    for name in composed:
        if not name.startswith("worker"):
            continue
        probe, check = container_of(processes[name])["livenessProbe"], composed[name]
        (_, command) = check["healthcheck"]["test"]
        assert probe["exec"]["command"] == ["sh", "-c", command.replace("$$", "$")]
        assert f"{probe['timeoutSeconds']}s" == check["healthcheck"]["timeout"]
        stop = pod_of(processes[name])["terminationGracePeriodSeconds"]
        assert f"{stop}s" == check["stop_grace_period"]


def test_settings_are_those_of_the_compose_file_and_of_the_example(composed):
    open_ones, secret = (
        _names(BASE / "settings.env"),
        _names(ROOT / "secrets.env.example", commented=True),
    )
    table = _read("docs/reference/settings.md")
    example = _names(settings.BASE_DIR / ".env.example", commented=True)

    wanted = (set(composed["worker"]["environment"]) | example) - COMPOSE_ALONE
    assert wanted - open_ones - secret == set()
    assert open_ones & secret == set()
    assert [name for name in open_ones | secret if f"`{name}`" not in table] == []


def test_a_setting_has_the_default_of_the_compose_file(composed):
    environment = composed["worker"]["environment"]
    own = {"NESCIO_ALLOWED_HOSTS", "NESCIO_TRUSTED_ORIGINS", "NESCIO_HTTPS"}

    for name, value in _values(BASE / "settings.env").items():
        if name in environment and name not in own:
            assert environment[name] == f"${{{name}:-{value}}}"


def test_secrets_come_by_reference_alone():
    for documents in _written().values():
        assert "Secret" not in {each["kind"] for each in documents}
    secret = re.compile(
        r"(_KEY|_SECRETS?|_TOKEN|PASSWORD|MAIL_URL)$|^[A-Z]+(_BROKER)?_URL$"
    )
    assert [name for name in _names(BASE / "settings.env") if secret.search(name)] == []
    assert "secrets.env" in _read(".gitignore").split()


def test_memory_is_what_the_compose_file_and_the_sizing_guide_say(composed, processes):
    (bound,) = {each["mem_limit"] for each in composed.values()}
    limit = _mebibytes(*_found(r"^\$\{NESCIO_MEMORY:-(\w+)\}$", bound))
    guide = _read("docs/how-to/size-a-deployment.md")
    node, process = _found(
        r"\*\*Memory of a web node\*\*: ([\d.]+) GiB, and ([\d.]+) GiB for each", guide
    )
    count = int(_values(BASE / "settings.env")["NESCIO_WEB_PROCESSES"])

    for name, each in processes.items():
        assert (
            _mebibytes(container_of(each)["resources"]["limits"]["memory"]) == limit
        ), name
    asked_for = container_of(processes["web"])["resources"]["requests"]
    needed = (float(node) + count * float(process)) * 1024
    assert needed <= _mebibytes(asked_for["memory"]) < needed + 64
    assert int(asked_for["cpu"]) == count


def test_cores_of_workers_are_those_of_the_sizing_guide(processes):
    guide = _read("docs/how-to/size-a-deployment.md")
    assert (
        "a core each for imports and interactive jobs; one for training and evaluation"
        in guide
    )
    asked_for = {
        name: container_of(each)["resources"]["requests"]["cpu"]
        for name, each in processes.items()
        if name.startswith("worker")
    }

    assert asked_for == {
        "worker": "1",
        "worker-imports": "1",
        "worker-training": "500m",
        "worker-evaluation": "500m",
    }


def test_probes_ask_what_the_product_answers(processes):
    web = container_of(processes["web"])
    hosts = _values(BASE / "settings.env")["NESCIO_ALLOWED_HOSTS"].split(",")
    paths = {
        kind: web[f"{kind}Probe"]["httpGet"]["path"]
        for kind in ("startup", "liveness", "readiness")
    }

    assert paths == {
        "startup": "/healthz/live",
        "liveness": "/healthz/live",
        "readiness": "/healthz",
    }
    assert set(paths.values()) == HEALTH_PATHS
    for kind, path in paths.items():
        probe = web[f"{kind}Probe"]["httpGet"]
        assert resolve(path).func.__module__ == "nescio.health"
        assert [each["value"] for each in probe["httpHeaders"]] == [hosts[-1]]
        assert probe["port"] == web["ports"][0]["name"]
    assert str(web["ports"][0]["containerPort"]) == web["command"][-1]


def test_pods_run_as_the_user_and_in_the_directories_of_the_image():
    dockerfile = _read("Dockerfile")
    pod = pod_of(_documents(BASE / "pod.yaml")[0])
    (var,) = _found(r"NESCIO_VAR_DIR=(\S+)", dockerfile)
    (user,) = _found(r"--uid (\d+)", dockerfile)

    assert pod["securityContext"]["runAsUser"] == int(user)
    assert {each["mountPath"] for each in pod["containers"][0]["volumeMounts"]} == {
        var,
        str(Places(Path(var)).metrics.parent),
        "/tmp",  # of a container
    }


def test_pgbouncer_is_that_of_the_compose_file(composed):
    here, there = (
        {**dict(re.findall(r"^(\w+) = (.*)$", file.read_text(), re.MULTILINE))}
        for file in (COMPOSED / "pgbouncer.ini", ROOT / "pgbouncer" / "pgbouncer.ini")
    )
    own = ("nescio", "auth_file")
    assert {k: v for k, v in here.items() if k not in own} == {
        k: v for k, v in there.items() if k not in own
    }
    image = yaml.safe_load(COMPOSE.read_text())["services"]["pgbouncer"]["image"]
    assert f"image: {image}\n" in (ROOT / "pgbouncer" / "pgbouncer.yaml").read_text()
    (patch,) = yaml.safe_load((ROOT / "pgbouncer" / "kustomization.yaml").read_text())[
        "patches"
    ]
    web, worker = (composed[name]["environment"] for name in ("web", "worker"))
    differs = {name for name in web if web[name] != worker.get(name)}
    assert {
        each["name"] for each in container_of(yaml.safe_load(patch["patch"]))["env"]
    } == differs


def test_pgbouncer_is_pinned_by_digest_and_has_its_own_user():
    (pod,) = [
        pod_of(each)
        for each in _documents(ROOT / "pgbouncer" / "pgbouncer.yaml")
        if each["kind"] == "Deployment"
    ]

    assert _found(r"(:v[\d.]+-p\d@sha256:[0-9a-f]{64})$", pod["containers"][0]["image"])
    assert pod["securityContext"]["runAsUser"] != 0


@pytest.mark.system
@pytest.mark.skipif(not PGBOUNCER, reason="pgbouncer is not installed")
def test_pgbouncer_starts_with_its_file(tmp_path):
    port, file = free_port(), tmp_path / "pgbouncer.ini"
    text = (ROOT / "pgbouncer" / "pgbouncer.ini").read_text()
    (tmp_path / "userlist.txt").write_text('"nescio_web" "password"\n')
    own = text.replace("6432", str(port)).replace(
        "/etc/pgbouncer/secret", str(tmp_path)
    )
    file.write_text(own.replace("listen_addr = *", "listen_addr = 127.0.0.1"))
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(path.stat().st_mode | 0o055)
    as_user = ("-u", SYSTEM_USER) if os.geteuid() == 0 else ()

    process = Process((PGBOUNCER, *as_user, str(file)), tmp_path / "log", {})
    try:
        wait_until(lambda: "refused" not in _why_nobody_gets_in(port))
        said = _why_nobody_gets_in(port)
    finally:
        process.end()

    assert "password" in said  # it knows the role


def _why_nobody_gets_in(port):
    with pytest.raises(psycopg.OperationalError) as error:
        psycopg.connect(f"postgresql://nescio_web@127.0.0.1:{port}/nescio")
    return str(error.value)


def _what_waits():
    (found,) = pod_of(_documents(BASE / "waiting.yaml")[0])["initContainers"]
    return found["command"]


def _wait(directory, **variables):
    here = str(Path(sys.executable).parent)
    return subprocess.run(
        _what_waits(),
        cwd=settings.BASE_DIR,
        env={"PATH": f"{here}:{os.environ['PATH']}", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.system
@pytest.mark.django_db(transaction=True)
def test_processes_wait_for_the_tables(tmp_path):
    environment = environment_of(tmp_path, "memory://")
    environment |= {
        "CACHE_URL": "locmemcache://",
        "DJANGO_SETTINGS_MODULE": "nescio.settings",
    }

    done = _wait(tmp_path, **environment)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "missing", ["NESCIO_SECRET_KEY", "DATABASE_URL", "CELERY_BROKER_URL", "CACHE_URL"]
)
def test_a_process_without_one_of_its_secrets_does_not_start(missing, tmp_path):
    given = _names(ROOT / "secrets.env.example") - {missing}

    done = _wait(tmp_path, **dict.fromkeys(given, "set"))

    assert len(given) == 3
    assert done.returncode != 0
    assert missing in done.stderr
