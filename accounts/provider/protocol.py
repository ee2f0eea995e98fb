"""OpenID Connect's code flow, with the checks that mozilla-django-oidc leaves out.

The library creates and compares state, nonce and PKCE verifier, and exchanges the code.
It does not read the discovery document, can't choose a key if the token names none, and
checks neither the issuer nor the audience of an ID token. PyJWT does the latter here,
together with signature and expiry.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

import jwt
import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings

from accounts.authentication import AccountBackend
from accounts.exceptions import UnavailableError
from accounts.loaded_once import LoadedOnce
from accounts.provider.linking import SignInRefusedError, sign_in_by_claims

_DISCOVERY: Final = "/.well-known/openid-configuration"
_KEEP_SECONDS: Final = 3600
_CLOCKS_DIFFER_SECONDS: Final = 30
_REQUIRED: Final = ("iss", "sub", "aud", "exp", "iat")
# The library's settings that come from the discovery document.
_DISCOVERED: Final = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}


class ProviderUnavailableError(UnavailableError):
    """The identity provider's discovery document can't be read or is not usable."""

    code = "identity_provider_unavailable"


def discovery() -> Mapping[str, Any]:
    """Return the provider's discovery document, cached for an hour.

    A failure is cached for a minute: requests that each waited for the provider would
    occupy all threads of the web server.

    Raises:
        ProviderUnavailableError: It can't be read, lacks a URL or names another issuer.
    """
    issuer = settings.OIDC_ISSUER
    found = _documents.get(
        issuer,
        lambda: _read_discovery(issuer),
        version=int(time.time()) // _KEEP_SECONDS,
        fallback=str,
    )
    if isinstance(found, str):
        raise ProviderUnavailableError(found)
    return found


# The discovery document by issuer, or the error message if there is none.
_documents: LoadedOnce[str, Mapping[str, Any] | str] = LoadedOnce()


def _read_discovery(issuer: str) -> Mapping[str, Any]:
    address = issuer.rstrip("/") + _DISCOVERY
    try:
        response = requests.get(address, timeout=settings.OIDC_TIMEOUT)
        response.raise_for_status()
        document: object = response.json()
    except requests.RequestException as error:
        raise ProviderUnavailableError(
            f"The identity provider can't be read at {address}: {error}. "
            "Try again in a minute, or correct NESCIO_OIDC_ISSUER."
        ) from error
    if not isinstance(document, dict):
        raise ProviderUnavailableError(
            f"{address} is not a discovery document but {document!r:.80}. Correct "
            "NESCIO_OIDC_ISSUER."
        )
    named = document.get("issuer")
    if named != issuer:
        raise ProviderUnavailableError(
            f"{address} names the issuer {named!r}, not {issuer!r}. NESCIO_OIDC_ISSUER "
            "must be exactly what it names."
        )
    needed = {*_DISCOVERED.values()} - {"userinfo_endpoint"}
    if missing := sorted(needed - document.keys()):
        raise ProviderUnavailableError(f"{address} has no {', '.join(missing)}.")
    return document


def setting(name: str, *default: Any) -> Any:
    """Return a setting of the library, from the discovery document or from Django."""
    if name in _DISCOVERED:
        return discovery().get(_DISCOVERED[name])
    if name == "OIDC_TOKEN_USE_BASIC_AUTH":  # basic is the default
        methods = discovery().get("token_endpoint_auth_methods_supported", [])
        return "client_secret_post" not in methods
    return import_from_settings(name, *default)


class ProviderBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # the library ships no types
    get_settings = staticmethod(setting)
    get_user = AccountBackend.get_user

    def __init__(self) -> None:
        """Send no request: Django creates a backend for every permission check."""

    def authenticate(
        self, request: HttpRequest | None, *, nonce: str, code_verifier: str
    ) -> User | None:
        """Authenticate with the callback's nonce and code verifier, which are required.

        The library's method takes any arguments, also a form's name and password, and
        would then redeem a code from the URL without state, nonce and verifier.
        """
        super().__init__()
        user: User | None = super().authenticate(
            request, nonce=nonce, code_verifier=code_verifier
        )
        return user

    def retrieve_matching_jwk(self, token: str) -> jwt.PyJWK:
        """Return the provider's key for a token; if it names none, the only one."""
        response = requests.get(
            self.OIDC_OP_JWKS_ENDPOINT, timeout=settings.OIDC_TIMEOUT
        )
        response.raise_for_status()
        algorithm = self.OIDC_RP_SIGN_ALGO
        kind = {"R": "RSA", "E": "EC"}[algorithm[0]]
        wanted = jwt.get_unverified_header(token).get("kid")
        fit = [
            key
            for key in response.json().get("keys", [])
            if key.get("kty") == kind
            and key.get("use", "sig") == "sig"
            and key.get("alg", algorithm) == algorithm
            and wanted in {None, key.get("kid")}
        ]
        if len(fit) != 1:
            raise jwt.InvalidKeyError(
                f"{len(fit)} keys of the provider fit the token's {wanted!r}"
            )
        return jwt.PyJWK(fit[0], algorithm)

    def get_payload_data(self, token: str, key: Any) -> dict[str, Any]:
        client = self.OIDC_RP_CLIENT_ID
        claims = jwt.decode(
            token,
            key,
            algorithms=[self.OIDC_RP_SIGN_ALGO],
            issuer=settings.OIDC_ISSUER,
            audience=client,
            leeway=_CLOCKS_DIFFER_SECONDS,
            options={"require": [*_REQUIRED]},
        )
        if isinstance(claims["aud"], list) and len(claims["aud"]) > 1:
            claims.setdefault("azp", None)  # with several audiences, azp is required
        if claims.get("azp", client) != client:
            raise jwt.InvalidAudienceError(f"Authorized party is {claims['azp']!r}")
        return claims

    def get_userinfo(
        self, access_token: str, id_token: str, payload: Mapping[str, Any]
    ) -> dict[str, Any]:
        if not self.OIDC_OP_USER_ENDPOINT:
            return {}
        said: dict[str, Any] = super().get_userinfo(access_token, id_token, payload)
        if said.get("sub") != payload["sub"]:
            raise SignInRefusedError(
                "The identity provider describes another person than the one who signed in."
            )
        return said

    def get_or_create_user(
        self, access_token: str, id_token: str, payload: Mapping[str, Any]
    ) -> User:
        more = self.get_userinfo(access_token, id_token, payload)
        return sign_in_by_claims({**more, **payload})
