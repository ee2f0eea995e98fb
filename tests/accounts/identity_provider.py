"""A real OpenID Connect provider as a process, which can lie where a test wants it to.

`python -m tests.accounts.identity_provider PORT` serves oidc-provider-mock. It holds to
PKCE, which that leaves out, and breaks the ID tokens of some
subjects: `FAULTS`, "unsigned" and "foreign-key".
"""

import base64
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import flask
import requests
from joserfc import jwt
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

from tests.waiting import wait_until

# What the token of such a subject says in place of the truth; None leaves it out.
FAULTS: dict[str, dict[str, object]] = {
    "wrong-audience": {"aud": "another-client"},
    "several-audiences": {"aud": ["nescio", "another-client"]},
    "wrong-issuer": {"iss": "http://evil.example"},
    "wrong-nonce": {"nonce": "another"},
    "no-nonce": {"nonce": None},
    "expired": {"exp": int(time.time()) - 3600},
    "other-person": {"sub": "somebody else"},
}


def encoded(part: dict[str, object]) -> str:
    raw = flask.json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forged(token: str, key) -> str:
    claims = jwt.decode(token, key).claims
    subject = claims["sub"]
    for name, value in FAULTS.get(subject, {}).items():
        claims[name] = value
    claims = {name: value for name, value in claims.items() if value is not None}
    if subject == "unsigned":
        return f"{encoded({'alg': 'none', 'kid': key.kid})}.{encoded(claims)}."
    if subject == "foreign-key":
        key = RSAKey.generate_key(parameters={"kid": key.kid})
    header = {"alg": "RS256", "kid": key.kid}
    if subject == "4711":  # a single key needs no name
        del header["kid"]
    return jwt.encode(header, claims, key)


def make_app():
    import oidc_provider_mock  # it warns of a library

    app = oidc_provider_mock.app(require_nonce=True)
    challenges: dict[str, str] = {}

    @app.before_request
    def check_verifier():
        if flask.request.path == "/oauth2/token":
            form = flask.request.form
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            made = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if challenges.pop(form["code"], None) != made:
                return {"error": "invalid_grant"}, 400
        return None

    @app.after_request
    def remember_and_forge(response):
        path, asked = flask.request.path, flask.request.args
        if path == "/oauth2/authorize" and response.status_code == 302:
            (code,) = parse_qs(urlsplit(response.location).query).get("code", [""])
            if asked.get("code_challenge_method") == "S256":
                challenges[code] = asked["code_challenge"]
        if path == "/oauth2/token" and response.status_code == 200:
            said = response.get_json()
            key = RSAKey.import_key(
                flask.g.oidc_provider_mock_storage.jwk.as_dict(is_private=True)
            )
            said["id_token"] = forged(said["id_token"], key)
            response.set_data(flask.json.dumps(said))
        return response

    return app


def _answers(issuer: str) -> bool:
    try:
        requests.get(issuer, timeout=5)
    except requests.RequestException:
        return False
    return True


@contextmanager
def running(port: int) -> Iterator[str]:
    """Run a provider; yield its issuer."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.accounts.identity_provider", str(port)],
        cwd=Path(__file__).parents[2],
        stderr=subprocess.DEVNULL,
    )
    issuer = f"http://localhost:{port}"
    try:
        wait_until(lambda: _answers(issuer))
        yield issuer
    finally:
        process.terminate()
        process.wait(60)


def use(settings, issuer: str) -> None:
    """Set what the environment would."""
    settings.OIDC_ISSUER = issuer
    settings.OIDC_NAME = "Example ID"
    settings.OIDC_RP_CLIENT_ID = "nescio"
    settings.OIDC_RP_CLIENT_SECRET = "secret"
    settings.AUTHENTICATION_BACKENDS = [
        *settings.AUTHENTICATION_BACKENDS,
        "accounts.provider.protocol.ProviderBackend",
    ]


if __name__ == "__main__":
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    make_server(
        "127.0.0.1", int(sys.argv[1]), make_app(), threaded=True
    ).serve_forever()
