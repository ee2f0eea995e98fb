"""What a real deployment is told before it goes wrong."""

import os
import re
import subprocess
import sys

import pytest
import yaml
from django.conf import settings

from workers.queues import QUEUES

COMPOSE = settings.BASE_DIR / "docker-compose.yml"
COMPOSED = settings.BASE_DIR / "deploy" / "compose"
PASSWORDS = ("POSTGRES_PASSWORD", "NESCIO_OWNER_PASSWORD", "NESCIO_WEB_PASSWORD")
# Of the compose file alone: what it starts itself, and how.
COMPOSE_ALONE = {
    *PASSWORDS,
    "COMPOSE_FILE",
    "NESCIO_PUBLISH",
    "NESCIO_MEMORY",
    "NESCIO_DATABASE_MEMORY",
    "NESCIO_BACKUPS",
    "NESCIO_BACKUP_HOURS",
    "NESCIO_BACKUP_KEEP_DAYS",
}
PRODUCTION = {
    "DATABASE_URL": "postgresql://nescio:password@database.example:5432/nescio",
    "CELERY_BROKER_URL": "redis://broker.example:6379/0",
    "NESCIO_SECRET_KEY": "k" * 25 + "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ",
    "NESCIO_ALLOWED_HOSTS": "ask.example.org",
    "NESCIO_TRUSTED_ORIGINS": "https://ask.example.org",
    "NESCIO_HTTPS": "true",
}


def _manage(*arguments, **variables):
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NESCIO_", "DATABASE_", "CELERY_"))
    }
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.system
def test_deployment_check_has_nothing_to_warn_of():
    done = _manage("check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)

    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.system
def test_database_of_its_own_without_a_secret_key_is_refused():
    variables = PRODUCTION | {"NESCIO_SECRET_KEY": ""}

    done = _manage("check", **variables)

    assert done.returncode != 0
    assert "NESCIO_SECRET_KEY is not set" in done.stderr


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load(COMPOSE.read_text())["services"]


def test_every_service_that_goes_on_tells_its_health(services):
    assert set(services) == {
        "database", "pgbouncer", "backup", "broker", "prepare", "web", "proxy", "worker",
        "worker-imports", "worker-training", "worker-evaluation", "scheduler",
    }  # fmt: skip
    without = {name for name, each in services.items() if "healthcheck" not in each}
    assert without == {"prepare"}
    assert all(
        each["healthcheck"]["test"]
        for each in services.values()
        if "healthcheck" in each
    )


@pytest.mark.parametrize(
    "file",
    [COMPOSE, COMPOSED / "gpu.yml", COMPOSED / "models.yml"],
    ids=lambda file: file.name,
)
def test_compose_files_are_what_the_compose_specification_allows(file, tmp_path):
    def validate(path):
        command = (sys.executable, "-m", "check_jsonschema")
        schema = ("--builtin-schema", "vendor.compose-spec")
        return subprocess.run(
            [*command, *schema, str(path)], capture_output=True, text=True, check=False
        )

    wrong = tmp_path / "wrong.yml"
    wrong.write_text(f"{file.read_text()}\nx-more: 1\nvolume: {{}}\n")

    assert validate(file).returncode == 0, validate(file).stdout
    assert "volume" in validate(wrong).stdout


def test_clients_reach_the_web_server_through_a_proxy_that_buffers_alone(services):
    assert [name for name, each in services.items() if "ports" in each] == ["proxy"]
    proxy = (COMPOSED / "proxy.conf").read_text()
    for line in ("proxy_request_buffering on;", "client_body_timeout", "limit_conn "):
        assert line in proxy
    # As the web server reads at the default: what is too large gets its own answer.
    assert f"client_max_body_size {2 * settings.IMPORT_MAX_MIB + 1}m;" in proxy
    trusted = services["web"]["environment"]["NESCIO_PROXIES"]
    assert trusted == "${NESCIO_PROXIES:-1}"


def test_each_queue_has_a_worker_of_its_own(services):
    queues = [
        each["command"][each["command"].index("--queues") + 1]
        for name, each in services.items()
        if name.startswith("worker")
    ]

    assert sorted(queues) == sorted(QUEUES)


def test_no_secret_stands_in_the_compose_file(services):
    environment = services["web"]["environment"]

    assert environment["NESCIO_SECRET_KEY"].startswith("${NESCIO_SECRET_KEY:?")
    for name in PASSWORDS:
        assert services["database"]["environment"][name].startswith(f"${{{name}:?")


def test_each_process_signs_in_as_the_least_that_it_needs(services):
    for name, each in services.items():
        if "build" not in each:
            continue
        environment = each["environment"]
        found = re.fullmatch(
            r"postgresql://(\w+):\$\{(\w+):\?.*\}@([\w:]+)/nescio",
            environment["DATABASE_URL"],
        )
        assert found, name
        user, needed, host = found.groups()
        # What .env holds for others does not get in.
        assert {environment[password] for password in PASSWORDS} == {""}
        if name == "web":
            assert (user, needed) == ("nescio_web", "NESCIO_WEB_PASSWORD")
            assert host == "pgbouncer:6432"
            assert environment["NESCIO_DATABASE_POOLER"] == "true"
            assert environment["NESCIO_DATABASE_ROLE"] == ""
        else:
            assert (user, needed) == ("nescio", "NESCIO_OWNER_PASSWORD")
            assert host == "database:5432"
    with_superuser = {
        name
        for name, each in services.items()
        if each.get("environment", {}).get("POSTGRES_PASSWORD")
    }
    assert with_superuser == {"database"}


def test_files_of_the_compose_file_are_there_and_none_is_changed(services):
    mounts = [
        volume.split(":")
        for each in services.values()
        for volume in each.get("volumes", ())
        if volume.startswith("./")
    ]

    assert len(mounts) == 5
    for source, _, mode in mounts:
        assert (settings.BASE_DIR / source).is_file(), source
        assert mode == "ro"


def test_a_gpu_changes_processes_of_nescio_alone(services):
    changed = yaml.safe_load((COMPOSED / "gpu.yml").read_text())["services"]
    component = yaml.safe_load(
        (settings.BASE_DIR / "deploy/kubernetes/gpu/kustomization.yaml").read_text()
    )
    (generated,) = component["configMapGenerator"]
    wanted = dict(each.split("=", 1) for each in generated["literals"])
    (image,) = component["images"]
    (target, *_) = [patch["target"]["name"] for patch in component["patches"]]

    assert set(changed) == {name for name, each in services.items() if "build" in each}
    assert {each["image"] for each in changed.values()} == {f"nescio:{image['newTag']}"}
    on_gpu = {name for name, each in changed.items() if "deploy" in each}
    assert on_gpu == set(target.split("|"))
    for name, each in changed.items():
        assert each["environment"].items() <= wanted.items(), name
        assert "NESCIO_MODEL_PRECISION" in each["environment"]
    assert changed["web"]["environment"] == wanted


def test_models_of_their_own_are_the_same_in_compose_and_kubernetes(services):
    changed = yaml.safe_load((COMPOSED / "models.yml").read_text())["services"]
    ours = changed.pop("models")
    directory = settings.BASE_DIR / "deploy/kubernetes/models"
    component = yaml.safe_load((directory / "kustomization.yaml").read_text())
    (generated,) = component["configMapGenerator"]
    deployment, service, *_ = yaml.safe_load_all(
        (directory / "models.yaml").read_text()
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (port,) = service["spec"]["ports"]

    loading = {"web", *(name for name in services if name.startswith("worker"))}
    assert changed.pop("prepare")["environment"] == {"NESCIO_MODEL_SERVICE_URL": ""}
    assert set(changed) == loading
    (address,) = {
        each["environment"]["NESCIO_MODEL_SERVICE_URL"] for each in changed.values()
    }
    assert generated["literals"] == [
        f"NESCIO_MODEL_SERVICE_URL={address}",
        "NESCIO_MODEL_PRECISION=bfloat16",
    ]
    assert address == f"http://models:{port['port']}"
    assert port["port"] == container["ports"][0]["containerPort"]
    assert ours["healthcheck"]["test"][-1] == str(port["port"])
    assert ours["command"] == container["command"]
    assert ours["image"] == container["image"]
    for held in ("read_only", "cap_drop", "security_opt", "pids_limit", "mem_limit"):
        assert ours[held] == services["web"][held], held


def test_every_container_is_held_to_what_it_needs(services):
    for name, each in services.items():
        assert each["read_only"] is True, name
        assert each["cap_drop"] == ["ALL"], name
        assert each["security_opt"] == ["no-new-privileges:true"], name
        assert each["mem_limit"], name
        assert each["pids_limit"] <= 512, name
        assert each["logging"]["options"]["max-size"], name
    with_rights = {name for name, each in services.items() if "cap_add" in each}
    assert with_rights == {"database", "broker"}  # both become users of their own


def test_no_secret_has_a_default(services):
    for name, each in services.items():
        for variable, value in each.get("environment", {}).items():
            if variable.endswith(("PASSWORD", "SECRET", "SECRET_KEY", "_URL")):
                assert "${" not in value or ":?" in value or value.endswith(":-}"), name


def test_all_processes_of_nescio_share_image_and_settings(services):
    ours = {name: each for name, each in services.items() if "build" in each}
    own = {"DATABASE_URL", "NESCIO_DATABASE_POOLER", "NESCIO_DATABASE_ROLE"}
    shared = [
        {key: value for key, value in each["environment"].items() if key not in own}
        for each in ours.values()
    ]

    assert len(ours) == 7
    assert len({each["image"] for each in ours.values()}) == 1
    assert all(each == shared[0] for each in shared)


def test_every_image_that_we_do_not_build_is_pinned_by_digest(services):
    bases = re.findall(
        r"^FROM (\S+)", (settings.BASE_DIR / "Dockerfile").read_text(), re.M
    )
    named = [each["image"] for each in services.values() if "build" not in each]

    assert len(bases) == 1
    assert len(named) == 5
    for image in (*bases, *named):
        assert re.fullmatch(r"[a-z/-]+:[0-9.a-z-]+@sha256:[0-9a-f]{64}", image), image


def test_one_file_passes_every_setting_to_every_process(services):
    example = (settings.BASE_DIR / ".env.example").read_text()
    table = (settings.BASE_DIR / "docs/reference/settings.md").read_text()
    for each in services.values():
        if "build" in each:
            assert each["env_file"] == [{"path": ".env", "required": False}]
    named = re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE)
    assert len(named) > 8
    assert [
        name for name in named if f"`{name}`" not in table and name not in COMPOSE_ALONE
    ] == []
    own = re.findall(r"\$\{([A-Z_]+)", COMPOSE.read_text())
    assert set(own) <= set(named)


def test_nothing_serves_before_the_tables_and_models_are_ready(services):
    for each in services.values():
        if "build" not in each or each is services["prepare"]:
            continue
        condition = each["depends_on"]["prepare"]["condition"]
        assert condition == "service_completed_successfully"


def test_image_has_every_app_of_the_project():
    copied = (settings.BASE_DIR / "Dockerfile").read_text()
    kept = (settings.BASE_DIR / ".dockerignore").read_text()
    ours = [
        app for app in settings.INSTALLED_APPS if (settings.BASE_DIR / app).is_dir()
    ]
    assert "integrations" in ours
    for app in ours:
        assert f"COPY {app} {app}\n" in copied
        assert f"!{app}\n" in kept
