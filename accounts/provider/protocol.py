"""OpenID Connect's code flow: the library's, with what its backend leaves out.

mozilla-django-oidc makes and compares state, nonce and PKCE's verifier and exchanges the
code. It reads no discovery document, finds no key of a provider that names none, and checks
neither issuer nor audience of an ID token, which PyJWT does here together with signature
and expiry.
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
# The library's settings that the provider itself says.
_DISCOVERED: Final = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}


class ProviderUnavailableError(UnavailableError):
    """The identity provider does not say what sign-in needs."""

    code = "identity_provider_unavailable"


def discovery() -> Mapping[str, Any]:
    """Return the provider's discovery document, read at most once an hour.

    One that can't be read is asked for again after a minute: requests that each waited for
    it would hold all threads of the web server.

    Raises:
        ProviderUnavailableError: It can't be read, lacks an address or names another issuer.
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


# By issuer; in its place what is wrong with it.
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
            f"{address} is no discovery document but {document!r:.80}. Correct "
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
    """Return a setting of the library: what the provider says, else Django's."""
    if name in _DISCOVERED:
        return discovery().get(_DISCOVERED[name])
    if name == "OIDC_TOKEN_USE_BASIC_AUTH":  # what is left out is basic
        methods = discovery().get("token_endpoint_auth_methods_supported", [])
        return "client_secret_post" not in methods
    return import_from_settings(name, *default)


class ProviderBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # the library ships no types
    get_settings = staticmethod(setting)
    get_user = AccountBackend.get_user

    def __init__(self) -> None:
        """Ask the provider nothing: Django makes a backend for every permission it checks."""

    def authenticate(
        self, request: HttpRequest | None, *, nonce: str, code_verifier: str
    ) -> User | None:
        """Take only what the callback gives.

        The library's takes anything, also a form's name and password, and would then
        redeem a code of the address without state, nonce and verifier.
        """
        super().__init__()
        user: User | None = super().authenticate(
            request, nonce=nonce, code_verifier=code_verifier
        )
        return user

    def retrieve_matching_jwk(self, token: str) -> jwt.PyJWK:
        """Return the provider's key for a token; one that names none needs no second."""
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
            claims.setdefault("azp", None)  # whose it is of several must be said
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
