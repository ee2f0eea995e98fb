"""Settings for all deployments; differences come from environment variables.

The table of variables is in `docs/reference/settings.md`; a test keeps the two in step.
Thresholds of the answer pipeline are not settings: they are fields of a versioned
policy, stored with every answer.
"""

import base64
import math
import os
import sys
from datetime import timedelta
from logging import getLevelNamesMapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from kombu import Exchange, Queue

from nescio import environment
from nescio.admin_site import UNFOLD  # noqa: F401  # a setting
from nescio.embedded.places import Places, local_secret_key
from nescio.middleware import STRICT, logging_to_stderr
from workers.queues import (
    INTERACTIVE,
    JOB_KINDS,  # noqa: F401  # a setting
    JOB_QUEUES,  # noqa: F401  # a setting
    QUEUES,
    broker_options,
)

BASE_DIR = Path(__file__).resolve().parent.parent
env = environment.Environment()


def _require_one_of(name: str, value: str, *allowed: str) -> None:
    if value not in allowed:
        *others, last = allowed
        raise ImproperlyConfigured(
            f"{name} is {value!r}; it may be {', '.join(others)} or {last}."
        )


VAR_DIR = Path(env.str("NESCIO_VAR_DIR", default=str(BASE_DIR / "var"))).resolve()
PLACES = Places(VAR_DIR)

# Each has an interpreter of its own, and all share the memory of the models. Forking
# them is only safe on Linux.
_CORES = os.cpu_count() or 1
WEB_PROCESSES: int = env.int(
    "NESCIO_WEB_PROCESSES", default=min(4, _CORES) if sys.platform == "linux" else 1
)
if WEB_PROCESSES < 1 or (WEB_PROCESSES > 1 and sys.platform != "linux"):
    raise ImproperlyConfigured(
        f"NESCIO_WEB_PROCESSES is {WEB_PROCESSES}; it may be 1 or more, and only 1 where "
        "the system is not Linux."
    )


def _of_one_process(whole: int) -> int:
    """Return one process's share of a limit for the whole web server."""
    return math.ceil(whole / WEB_PROCESSES)


# --- Components ----------------------------------------------------------------------
DATABASE_URL = env.str("DATABASE_URL", default=PLACES.database_url)
DATABASE_REPLICA_URL = env.str("DATABASE_REPLICA_URL", default="")
DATABASE_IS_EMBEDDED = PLACES.database_url == DATABASE_URL
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="filesystem://")

# --- Security ------------------------------------------------------------------------
DEBUG = env.bool("NESCIO_DEBUG", default=False)
SECRET_KEY = env.str("NESCIO_SECRET_KEY", default="")
if not SECRET_KEY:
    if not DATABASE_IS_EMBEDDED:
        raise ImproperlyConfigured(
            "NESCIO_SECRET_KEY is not set. A system with its own database needs one; "
            "make it with: python -c 'import secrets; print(secrets.token_urlsafe(64))'"
        )
    try:
        SECRET_KEY = local_secret_key(PLACES.secret_key_file)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{VAR_DIR} cannot be used ({error.strerror}). Start as the user who owns "
            "it, or choose another directory with NESCIO_VAR_DIR."
        ) from error
ALLOWED_HOSTS = env.list(
    "NESCIO_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"]
)
CSRF_TRUSTED_ORIGINS = env.list("NESCIO_TRUSTED_ORIGINS", default=[])
HTTPS = env.bool("NESCIO_HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz", r"^metrics$"]  # read internally, without TLS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {"DIRECTIVES": STRICT}

# --- Django --------------------------------------------------------------------------
INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.forms",
    "rest_framework",
    "knox",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "accounts",
    "jobs",
    "kb",
    "probes",
    "qa",
    "integrations",
    "workers",
    "nescio",
]
MIDDLEWARE = [
    "nescio.middleware.RequestIdMiddleware",
    "integrations.metrics.counting.RequestMetricsMiddleware",
    "integrations.traces.spans.TraceMiddleware",
    "accounts.middleware.ApiHeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "nescio.middleware.HostMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.middleware.ReaderMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "nescio.middleware.ContentSecurityMiddleware",
    "nescio.middleware.RoomMiddleware",
    "nescio.middleware.ErrorPageMiddleware",
]
ROOT_URLCONF = "nescio.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["accounts.people", "qa.answers.layout"],
        },
    }
]
# Widget templates are also looked up in `templates/`.
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = "nescio.formats"
TIME_ZONE = env.time_zone("NESCIO_TIME_ZONE", default="UTC")
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
# File names have no content hash, so that pages work before `collectstatic` has run.
WHITENOISE_USE_FINDERS = True
_VALIDATION = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATION}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATION}.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": f"{_VALIDATION}.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "ask"
LOGOUT_REDIRECT_URL = "login"

# --- Sign-in -------------------------------------------------------------------------
# Whether people can sign in to pages, admin and REST with a password stored here.
LOCAL_SIGN_IN = env.bool("NESCIO_LOCAL_SIGN_IN", default=True)
PASSWORD_RESET_TIMEOUT = 3 * 86_400  # of links to choose a password, in seconds
# An OpenID Connect provider by its issuer, exactly as its discovery document names it.
# The library reads the names that begin with OIDC_RP; most others are ours.
OIDC_ISSUER = env.str("NESCIO_OIDC_ISSUER", default="")
OIDC_NAME = env.str("NESCIO_OIDC_NAME", default="your organisation")
OIDC_RP_CLIENT_ID = env.str("NESCIO_OIDC_CLIENT_ID", default="")
OIDC_RP_CLIENT_SECRET = env.str("NESCIO_OIDC_CLIENT_SECRET", default="")
_secret_file = env.str("NESCIO_OIDC_CLIENT_SECRET_FILE", default="")
OIDC_RP_SCOPES = env.str("NESCIO_OIDC_SCOPES", default="openid profile email")
OIDC_RP_SIGN_ALGO = env.str("NESCIO_OIDC_ALGORITHM", default="RS256")
OIDC_USERNAME_CLAIM = env.str(
    "NESCIO_OIDC_USERNAME_CLAIM", default="preferred_username"
)
OIDC_GROUPS_CLAIM = env.str("NESCIO_OIDC_GROUPS_CLAIM", default="groups")
OIDC_SESSION = timedelta(
    hours=env.at_least_one("NESCIO_OIDC_SESSION_HOURS", default=12)
)
OIDC_USE_PKCE = True
OIDC_TIMEOUT = 10  # seconds for each request to the provider
OIDC_AUTHENTICATION_CALLBACK_URL = "login-provider-callback"
AUTHENTICATION_BACKENDS = [
    "accounts.authentication.ThrottledModelBackend"
    if LOCAL_SIGN_IN
    else "accounts.authentication.AccountBackend"
]
_require_one_of(
    "NESCIO_OIDC_ALGORITHM",
    OIDC_RP_SIGN_ALGO,
    *("RS256", "RS384", "RS512", "ES256", "ES384", "ES512"),
)
if OIDC_ISSUER:
    AUTHENTICATION_BACKENDS.append("accounts.provider.protocol.ProviderBackend")
    if _secret_file:
        try:
            OIDC_RP_CLIENT_SECRET = Path(_secret_file).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(
                f"NESCIO_OIDC_CLIENT_SECRET_FILE is {_secret_file!r}, which cannot be "
                f"read: {error.strerror}."
            ) from error
    _issuer = urlsplit(OIDC_ISSUER)
    _is_local = _issuer.hostname in {"localhost", "127.0.0.1", "::1"}
    if _issuer.scheme != "https" and not (_issuer.scheme == "http" and _is_local):
        raise ImproperlyConfigured(
            f"NESCIO_OIDC_ISSUER is {OIDC_ISSUER!r}; it must begin with https://."
        )
    if not (OIDC_RP_CLIENT_ID and OIDC_RP_CLIENT_SECRET):
        raise ImproperlyConfigured(
            "NESCIO_OIDC_ISSUER needs NESCIO_OIDC_CLIENT_ID and "
            "NESCIO_OIDC_CLIENT_SECRET, or NESCIO_OIDC_CLIENT_SECRET_FILE. The provider "
            "issues both when Nescio is registered as a client."
        )
elif not LOCAL_SIGN_IN:
    raise ImproperlyConfigured(
        "NESCIO_LOCAL_SIGN_IN is off and NESCIO_OIDC_ISSUER is empty: nobody could sign "
        "in. Set one of them."
    )

# --- Database ------------------------------------------------------------------------
_database = environment.database("DATABASE_URL", DATABASE_URL)
# Behind a pooler in transaction mode, each transaction may use another connection, so
# settings can't be made when a connection is opened.
_is_pooled = env.bool("NESCIO_DATABASE_POOLER", default=False)
# A role that is neither superuser nor owner of the tables, so that row-level security
# applies to it. It runs every statement except changes of the tables themselves. Empty
# if the role that connects is already such a role.
DATABASE_ROLE = env.str("NESCIO_DATABASE_ROLE", default="nescio_app")
_database.update(
    {
        "ENGINE": "accounts.postgresql",
        # In a URL, a Unix socket's directory is the percent-encoded host.
        "HOST": unquote(_database["HOST"]),
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": _is_pooled,
        "OPTIONS": {
            **_database.get("OPTIONS", {}),
            # After how many runs psycopg prepares a statement. Django's own statements
            # are never prepared, and search requests it explicitly; None forbids both.
            "prepare_threshold": (
                5 if env.bool("NESCIO_DATABASE_PREPARE", not _is_pooled) else None
            ),
        },
    }
)
if not _is_pooled:
    # The vector index must continue scanning when a filter discards its first results,
    # or else a selective audience causes false refusals; start-up checks this setting.
    _database["OPTIONS"]["options"] = (
        "-c hnsw.iterative_scan=relaxed_order -c hnsw.ef_search=100"
    )
if env.bool("NESCIO_DATABASE_POOL", default=not _is_pooled):
    _database["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": env.at_least_one("NESCIO_DATABASE_POOL_SIZE", default=32),
        "timeout": 10,
    }
    # `accounts.postgresql` checks each connection that it takes from the pool.
    _database["CONN_HEALTH_CHECKS"] = False
DATABASES = {"default": _database}
if DATABASE_REPLICA_URL:
    _replica = environment.database("DATABASE_REPLICA_URL", DATABASE_REPLICA_URL)
    DATABASES["replica"] = {
        **_database,
        **_replica,
        "ENGINE": _database["ENGINE"],
        "HOST": unquote(_replica["HOST"]),
        # No pool: so a replica's failure, and its return, is noticed at once.
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            **{k: v for k, v in _database["OPTIONS"].items() if k != "pool"},
            **_replica.get("OPTIONS", {}),
            "connect_timeout": 2,
        },
    }
    DATABASE_ROUTERS = ["accounts.replica.ReplicaRouter"]
# How long a read waits for the replica to catch up before it uses the primary.
DATABASE_REPLICA_WAIT = timedelta(
    milliseconds=env.int("NESCIO_DATABASE_REPLICA_WAIT_MS", default=100)
)

# --- Cache ---------------------------------------------------------------------------
# Throttles count in a file shared by the processes of one host, or in a Redis shared by
# several hosts. Other caches (of the admin's search) may be separate for each process.
CACHES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "counters": {
        "BACKEND": "accounts.counter_file.CounterFile",
        "LOCATION": str(PLACES.counters),
    },
}
if _cache_url := env.str("CACHE_URL", default=""):
    CACHES["default"] = CACHES["counters"] = environment.cache("CACHE_URL", _cache_url)
_cache_options = CACHES["default"].setdefault("OPTIONS", {})
if CACHES["default"]["BACKEND"].endswith("LocMemCache"):
    _cache_options["MAX_ENTRIES"] = 100_000
elif CACHES["default"]["BACKEND"].endswith("RedisCache"):
    # A cache that hangs must not block requests.
    _cache_options.update(socket_timeout=1, socket_connect_timeout=1)

# --- Background work -----------------------------------------------------------------
# The Job row is authoritative and the broker only notifies: a lost, duplicate or late
# message only changes when a job starts.
BROKER_IS_EMBEDDED = CELERY_BROKER_URL.startswith("filesystem:")
CELERY_BROKER_TRANSPORT_OPTIONS = broker_options(CELERY_BROKER_URL, PLACES.broker)
CELERY_BROKER_CONNECTION_TIMEOUT = 5
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker survives outages of its broker
CELERY_TASK_IGNORE_RESULT = True  # the Job row is the result
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_POOL = "workers.prefork:TaskPool"
CELERY_WORKER_LOST_WAIT = 1.0  # for a lost process's result; none is ever stored
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = INTERACTIVE
CELERY_TASK_QUEUES = [  # for a worker without --queues
    Queue(name, Exchange(name), routing_key=name) for name in QUEUES
]
# The file-based broker has no broadcast: `celery inspect` and the like need a real one.
CELERY_WORKER_ENABLE_REMOTE_CONTROL = not BROKER_IS_EMBEDDED
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = TIME_ZONE
# In memory: times of the last runs need not survive a restart.
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"
JOB_LEASE = timedelta(seconds=env.at_least_one("NESCIO_JOB_LEASE_SECONDS", default=30))
JOB_SWEEP_INTERVAL = timedelta(
    seconds=env.at_least_one("NESCIO_JOB_SWEEP_SECONDS", default=10)
)
JOB_KEEP = timedelta(days=env.int("NESCIO_JOB_KEEP_DAYS", default=30))
EXPORT_KEEP = timedelta(days=env.int("NESCIO_EXPORT_KEEP_DAYS", default=7))
# The slug of the audience for whose curators the language model proposes entries for
# gaps each night; empty for none.
ENRICH_GAPS_FOR = env.str("NESCIO_ENRICH_GAPS_FOR", default="")
RETRAIN_AFTER = env.int("NESCIO_RETRAIN_AFTER", default=50)

# --- Models --------------------------------------------------------------------------
# "bundled", any sentence-transformers / Hugging Face name or path, or "server:" and the
# name of a model on a server with OpenAI's embeddings API.
EMBEDDING_MODEL = env.str("NESCIO_EMBEDDING_MODEL", default="bundled")
EMBEDDING_SERVER_URL = env.str("NESCIO_EMBEDDING_SERVER_URL", default="")
EMBEDDING_SERVER_KEY = env.str("NESCIO_EMBEDDING_SERVER_KEY", default="")
EMBEDDING_SERVER_TIMEOUT_SECONDS = env.float(
    "NESCIO_EMBEDDING_SERVER_TIMEOUT_SECONDS", default=10.0
)
# Prefixes that the embedding model expects before a question and before an entry's
# text.
EMBEDDING_QUESTION_PROMPT = env.str("NESCIO_EMBEDDING_QUESTION_PROMPT", default="")
EMBEDDING_ENTRY_PROMPT = env.str("NESCIO_EMBEDDING_ENTRY_PROMPT", default="")
# The base URL of `manage.py serve_models`; if set, it runs embedder and verifier.
MODEL_SERVICE_URL = env.str("NESCIO_MODEL_SERVICE_URL", default="").rstrip("/")
MODEL_SERVICE_KEY = env.str("NESCIO_MODEL_SERVICE_KEY", default="")
MODEL_SERVICE_TIMEOUT_SECONDS = env.float(
    "NESCIO_MODEL_SERVICE_TIMEOUT_SECONDS", default=10.0
)
# Requests that the service computes or keeps waiting; further ones get a 503.
MODEL_SERVICE_QUEUE = env.at_least_one("NESCIO_MODEL_SERVICE_QUEUE", default=64)
LANGUAGE_MODEL = env.str("NESCIO_LANGUAGE_MODEL", default="bundled")
# "bundled" for the adapter shipped for the bundled model, "none", or a directory
# written by `train adapter`.
LANGUAGE_ADAPTER = env.str("NESCIO_LANGUAGE_ADAPTER", default="bundled")
# How a local model answers: "copy" (the text of entries), "instructed" (JSON, by its
# chat template), or "auto".
LANGUAGE_FORM = env.str("NESCIO_LANGUAGE_FORM", default="auto")
_require_one_of("NESCIO_LANGUAGE_FORM", LANGUAGE_FORM, "auto", "copy", "instructed")
# The base URL of an OpenAI-compatible server; if set, it answers instead of a local
# model.
LANGUAGE_SERVER_URL = env.str("NESCIO_LANGUAGE_SERVER_URL", default="")
LANGUAGE_SERVER_KEY = env.str("NESCIO_LANGUAGE_SERVER_KEY", default="")
LANGUAGE_SERVER_TIMEOUT_SECONDS = env.float(
    "NESCIO_LANGUAGE_SERVER_TIMEOUT_SECONDS", default=60.0
)
LANGUAGE_SERVER_RETRIES = env.int("NESCIO_LANGUAGE_SERVER_RETRIES", default=2)
# The model that judges pairs of entries in the search for conflicts; "true" and "false"
# are values of earlier versions.
CONFLICT_JUDGE = env.str("NESCIO_CONFLICT_JUDGE", default="cross-encoder")
CONFLICT_JUDGE = {"true": "language-model", "false": "none"}.get(
    CONFLICT_JUDGE, CONFLICT_JUDGE
)
_require_one_of(
    "NESCIO_CONFLICT_JUDGE", CONFLICT_JUDGE, "cross-encoder", "language-model", "none"
)
# The local model that reads a language server's answers to get activations for a probe.
SURROGATE_MODEL = env.str("NESCIO_SURROGATE_MODEL", default="bundled")
# The labels with which the model answers whether it knows, after past questions.
HISTORY_LABELS = env.str("NESCIO_HISTORY_LABELS", default="true/false")
# "bundled", "none", or a directory written by `train verifier`.
VERIFIER = env.str("NESCIO_VERIFIER", default="bundled")
VERIFIER_ENCODER = env.str("NESCIO_VERIFIER_ENCODER", default="bundled")
VERIFIER_LANGUAGES = env.list("NESCIO_VERIFIER_LANGUAGES", default=["en"])
VERIFIER_FILE_MIB = env.int("NESCIO_VERIFIER_FILE_MIB", default=1024)
# A directory written by `train reranker`; empty for none.
RERANKER = env.str("NESCIO_RERANKER", default="")
MODEL_DEVICE = env.str("NESCIO_MODEL_DEVICE", default="auto")
# The precision of language models; auto is bfloat16 if the hardware supports it,
# otherwise float32.
MODEL_PRECISION = env.str("NESCIO_MODEL_PRECISION", default="auto")
_require_one_of(
    "NESCIO_MODEL_PRECISION", MODEL_PRECISION, "auto", "bfloat16", "float32"
)
# Cores divided by processes (those of the web server, and a worker): two torch threads
# on a busy two-core machine are 70 times slower than one.
TORCH_THREADS = env.at_least_one(
    "NESCIO_TORCH_THREADS", default=max(1, _CORES // (WEB_PROCESSES + 1))
)
# The libraries for fitting read these when they are loaded, which is later than this.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", str(TORCH_THREADS))
# The cache of a language model's states for recently read entries, in MiB; 64 MiB hold
# about 45 entries for the bundled model.
PASSAGE_CACHE_MIB = env.int("NESCIO_PASSAGE_CACHE_MIB", default=64)

# Questions that the language model answers or that wait for it; further ones get a 503
# at once. Questions that need no model never wait behind them.
LANGUAGE_QUEUE = _of_one_process(env.at_least_one("NESCIO_LANGUAGE_QUEUE", default=8))


def _token_prices(texts: list[str]) -> dict[str, tuple[float, float]]:
    """Return {model: (price of a million input tokens, of a million output tokens)}."""
    prices = {}
    for text in texts:
        name, _, price = text.rpartition("=")
        try:
            read, written = (float(each) for each in price.split("/"))
        except ValueError:
            read = written = math.nan
        if not (name and read >= 0 and written >= 0):
            raise ImproperlyConfigured(
                f"NESCIO_TOKEN_PRICES has {text!r}; write MODEL=READ/WRITTEN, the prices of "
                "a million tokens, such as gpt-4o-mini=0.15/0.60, and commas between several."
            )
        prices[name.strip()] = (read, written)
    return prices


# Token prices of language models; the dashboard shows costs only for models listed
# here.
TOKEN_PRICES = _token_prices(env.list("NESCIO_TOKEN_PRICES", default=[]))

# The directory with the data sets that the admin offers for evaluation; empty for the
# bundled ones.
EVALUATION_DATA = env.str("NESCIO_EVALUATION_DATA", default="")

# Load the models when the web server starts instead of with the first question.
WARM_UP = env.bool("NESCIO_WARM_UP", default=True)

# --- Reviews -------------------------------------------------------------------------
# Experts' time for reviews per week and knowledge base; 0 draws no samples
# automatically.
REVIEW_HOURS_A_WEEK = env.float("NESCIO_REVIEW_HOURS_A_WEEK", default=1.0)
REVIEW_MINUTES = env.float("NESCIO_REVIEW_MINUTES", default=4.0)
REVIEW_SECOND_SHARE = env.float("NESCIO_REVIEW_SECOND_SHARE", default=0.2)
REVIEW_LOCK = timedelta(minutes=env.int("NESCIO_REVIEW_LOCK_MINUTES", default=30))

# --- Mail ----------------------------------------------------------------------------
# Without a mail server, no reminders, invitations or alerts are mailed.
MAIL_URL = env.str("NESCIO_MAIL_URL", default="")
if MAIL_URL:
    # Django's defaults apply to what the URL leaves out.
    globals().update(environment.mail("NESCIO_MAIL_URL", MAIL_URL))
EMAIL_TIMEOUT = 10  # a job may go 30 s without progress
DEFAULT_FROM_EMAIL = env.str("NESCIO_MAIL_FROM", default="nescio@localhost")
# Whether webhooks may use http:// and internal addresses.
WEBHOOK_ALLOW_PRIVATE = env.bool("NESCIO_WEBHOOK_ALLOW_PRIVATE", default=False)
EVENT_KEEP = timedelta(days=env.int("NESCIO_EVENT_KEEP_DAYS", default=30))

# --- Chats ---------------------------------------------------------------------------
# Each is off while its secret is empty; channels see the audiences of its account.
SLACK_SIGNING_SECRET = env.str("NESCIO_SLACK_SIGNING_SECRET", default="")
SLACK_BOT_TOKEN = env.str("NESCIO_SLACK_BOT_TOKEN", default="")
SLACK_ACCOUNT = env.str("NESCIO_SLACK_ACCOUNT", default="")
SLACK_KNOWLEDGE_BASE = env.str("NESCIO_SLACK_KNOWLEDGE_BASE", default="")
SLACK_API_URL = "https://slack.com/api"
SLACK_RESPONSE_ORIGIN = "https://hooks.slack.com"
TEAMS_SECRETS = env.list("NESCIO_TEAMS_SECRETS", default=[])
TEAMS_ACCOUNT = env.str("NESCIO_TEAMS_ACCOUNT", default="")
TEAMS_KNOWLEDGE_BASE = env.str("NESCIO_TEAMS_KNOWLEDGE_BASE", default="")
if SLACK_SIGNING_SECRET and not (SLACK_BOT_TOKEN and SLACK_ACCOUNT):
    raise ImproperlyConfigured(
        "NESCIO_SLACK_SIGNING_SECRET needs NESCIO_SLACK_BOT_TOKEN, the app's token that "
        "begins with xoxb-, and NESCIO_SLACK_ACCOUNT, the name of an account with the role "
        "agent."
    )
if TEAMS_SECRETS:
    if not TEAMS_ACCOUNT:
        raise ImproperlyConfigured(
            "NESCIO_TEAMS_SECRETS needs NESCIO_TEAMS_ACCOUNT, the name of an account with "
            "the role agent."
        )
    try:
        for _secret in TEAMS_SECRETS:
            base64.b64decode(_secret, validate=True)
    except ValueError as error:
        raise ImproperlyConfigured(
            "NESCIO_TEAMS_SECRETS is not base64; copy the security token that Teams shows "
            "when the outgoing webhook is created, and put commas between several."
        ) from error

# --- Import --------------------------------------------------------------------------
IMPORT_MAX_MIB = env.at_least_one("NESCIO_IMPORT_MAX_MIB", default=50)
# The unpacked size limit: a DOCX is a compressed archive, a PDF has compressed streams.
IMPORT_MAX_UNPACKED_MIB = env.at_least_one(
    "NESCIO_IMPORT_MAX_UNPACKED_MIB", default=200
)
# Each file is read in a separate process, which is ended if it exceeds these limits.
IMPORT_MAX_MEMORY_MIB = env.at_least_one("NESCIO_IMPORT_MAX_MEMORY_MIB", default=1024)
IMPORT_MAX_SECONDS = env.at_least_one("NESCIO_IMPORT_MAX_SECONDS", default=600)
IMPORT_MAX_PARAGRAPHS = env.at_least_one(
    "NESCIO_IMPORT_MAX_PARAGRAPHS", default=100_000
)
# Web server and workers must both have access to it.
IMPORT_DIR = env.str("NESCIO_IMPORT_DIR", default=str(PLACES.imports))
# What curators may follow: folders below these local directories, and these hosts.
SOURCE_DIRECTORIES = env.list("NESCIO_SOURCE_DIRECTORIES", default=[])
SOURCE_HOSTS = env.list("NESCIO_SOURCE_HOSTS", default=[])
# Whether these hosts may use http:// and internal addresses.
SOURCE_ALLOW_PRIVATE = env.bool("NESCIO_SOURCE_ALLOW_PRIVATE", default=False)
# Credentials of sources; a source's row names one of these variables.
SOURCE_CREDENTIAL_PREFIX = "NESCIO_SOURCE_CREDENTIAL_"
SOURCE_SECRETS = {
    name: value
    for name, value in os.environ.items()
    if name.startswith(SOURCE_CREDENTIAL_PREFIX)
}
SOURCE_MAX_DOCUMENTS = env.at_least_one("NESCIO_SOURCE_MAX_DOCUMENTS", default=5_000)
SOURCE_MAX_MIB = env.at_least_one("NESCIO_SOURCE_MAX_MIB", default=1_000)
SOURCE_MAX_SECONDS = env.at_least_one("NESCIO_SOURCE_MAX_SECONDS", default=3_600)
FILE_UPLOAD_HANDLERS = [
    "nescio.rest.BoundedUploadHandler",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "imports": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": IMPORT_DIR,
            "base_url": None,
            "directory_permissions_mode": 0o700,
            "file_permissions_mode": 0o600,
        },
    },
}

# Below this, Nescio stops writing: PostgreSQL stops if it can't extend its log.
DISK_RESERVE_MIB = env.int("NESCIO_DISK_RESERVE_MIB", default=256)

# --- Processes -----------------------------------------------------------------------
HOST = env.str("NESCIO_HOST", default="127.0.0.1")
PORT = env.int("NESCIO_PORT", default=8000)
# More than the questions that may wait for a language model, so that a refusal, which
# needs none, always gets a thread; each event stream occupies one too.
WEB_THREADS = _of_one_process(env.at_least_one("NESCIO_WEB_THREADS", default=32))
WORKER_PROCESSES = env.at_least_one("NESCIO_WORKER_PROCESSES", default=1)
# The base URL of links in mails.
PUBLIC_URL = env.public_address("NESCIO_PUBLIC_URL", default=f"http://{HOST}:{PORT}")

# --- REST ----------------------------------------------------------------------------
QUESTION_MAX_CHARACTERS = env.at_least_one(
    "NESCIO_QUESTION_MAX_CHARACTERS", default=2_000
)
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.delegation.DelegatingTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["nescio.rest.BoundedJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "accounts.pagination.NewestFirstPagination",
    "PAGE_SIZE": 50,
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "nescio.schema.OperationSchema",
    "DEFAULT_THROTTLE_CLASSES": ["accounts.throttles.ScopedThrottle"],
    "DEFAULT_THROTTLE_RATES": {
        "user": env.rate("NESCIO_THROTTLE_USER", default="6000/minute"),
        "ask": env.rate("NESCIO_THROTTLE_ASK", default="600/minute"),
        "widget": env.rate("NESCIO_THROTTLE_WIDGET", default="600/minute"),
        "widget_address": env.rate(
            "NESCIO_THROTTLE_WIDGET_ADDRESS", default="60/minute"
        ),
        "login": env.rate("NESCIO_THROTTLE_LOGIN", default="20/minute"),
        "login_address": env.rate(
            "NESCIO_THROTTLE_LOGIN_ADDRESS", default="100/minute"
        ),
    },
    # The number of our own proxies in front: only their X-Forwarded-For is trusted.
    "NUM_PROXIES": env.int("NESCIO_PROXIES", default=0),
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "nescio.rest.KnownFormats",
    "DEFAULT_METADATA_CLASS": "nescio.rest.MethodsOnly",
    "EXCEPTION_HANDLER": "nescio.exception_handler.exception_handler",
}
KNOX_TOKEN_MODEL = "accounts.ApiToken"  # noqa: S105  # names a model
# The library's migrations would also create its own table, which is not used and would
# prevent truncating the table of users.
MIGRATION_MODULES = {"knox": None}
# The knowledge base for questions that name none: a slug, "" for the oldest one, or
# "none" to require a name if there are several.
DEFAULT_KNOWLEDGE_BASE = env.str("NESCIO_DEFAULT_KNOWLEDGE_BASE", default="")
TOKEN_DAYS = env.int("NESCIO_TOKEN_DAYS", default=90)  # 0: until revoked
REST_KNOX = {
    "TOKEN_MODEL": KNOX_TOKEN_MODEL,
    "TOKEN_TTL": timedelta(days=TOKEN_DAYS) if TOKEN_DAYS else None,
    "AUTH_HEADER_PREFIX": "Token",
    "TOKEN_PREFIX": "nsc_",
}
SPECTACULAR_SETTINGS = {
    # Collapsed by tag: with more than about 110 expanded operations, the page renders
    # only those in view, and the browser's search misses the others.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "docExpansion": "none"},
    "TITLE": "Nescio",
    "DESCRIPTION": "Answers from verified knowledge, with evidence, or a refusal that says why.",
    "VERSION": "1",
    # The server that the description was read from, and the public address.
    "SERVERS": [{"url": "/"}, {"url": PUBLIC_URL}],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1|/v1|/dify",
    "ENUM_NAME_OVERRIDES": {
        "EntryState": "kb.models.Entry.State",
        "JobState": "jobs.models.Job.State",
        "DeliveryState": "integrations.models.Delivery.State",
        "GapState": "qa.models.Gap.State",
        "ReviewState": "qa.models.Review.State",
        "EscalationState": "qa.models.Escalation.State",
        "ImportState": "kb.models.Import.State",
        "ImportFormat": "kb.imports.readers.formats.Format",
        "WritableEntryState": "kb.entries.serializers.WRITABLE_STATES",
        "ReasonsEnum": "qa.models.Vote.Reason",
        "FlagReason": "kb.models.Flag.Reason",
        "Thumb": [("up", "up"), ("down", "down")],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "nescio.schema.summarize",
        "nescio.schema.document_errors",
        "nescio.schema.link_rows",
    ],
}

# --- Metrics -------------------------------------------------------------------------
# The token with which Prometheus may read /metrics; without it, only admins may.
METRICS_TOKEN = env.str("NESCIO_METRICS_TOKEN", default="")
# Prometheus's client library stores the metrics of several processes here. It reads the
# variable itself; `nescio.forking` sets it if it is not set.
METRICS_DIR = env.str("PROMETHEUS_MULTIPROC_DIR", default=str(PLACES.metrics))

# The OTLP endpoint for traces over HTTP, such as http://localhost:4318/v1/traces.
TRACES_URL = env.str("NESCIO_TRACES_URL", default="")

# --- Logging -------------------------------------------------------------------------
LOG_FORMAT = env.str("NESCIO_LOG_FORMAT", default="line")
_require_one_of("NESCIO_LOG_FORMAT", LOG_FORMAT, "line", "json")
_log_level = env.str("NESCIO_LOG_LEVEL", default="INFO").upper()
_require_one_of("NESCIO_LOG_LEVEL", _log_level, *getLevelNamesMapping())
LOGGING = logging_to_stderr(_log_level, form=LOG_FORMAT)
