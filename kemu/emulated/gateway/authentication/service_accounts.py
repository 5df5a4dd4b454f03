"""Tokens of service accounts, as JSON Web Tokens that the gateway signs (``pkg/serviceaccount``).

The key is made when the cluster begins, so tokens of one cluster are worth nothing in another.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User

ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER = "kubernetes/serviceaccount"
"""Of tokens in secrets, which never expire."""
ALGORITHM = "ES256"
SHORTEST_S, LONGEST_S = 600, 1 << 32
"""What ``ValidateTokenRequest`` lets pass."""
USUAL_S = 3600
PROJECTED_S, EXTENDED_S = 3607, 365 * 24 * 3600
"""A token that lasts so long is one of a volume that admission gave to a pod: it works on for a year
(``WarnOnlyBoundTokenExpirationSeconds``)."""
LEEWAY_S = 60
"""How long tokens live on whose object is being deleted."""
_CLAIM = "kubernetes.io"
_LEGACY = "kubernetes.io/serviceaccount/"


class WrongToken(Exception):
    """Why a token is not taken, for who may know."""


@dataclass(frozen=True)
class Account:
    namespace: str
    name: str
    uid: str

    @property
    def user(self) -> User:
        return identities.service_account(self.name, self.namespace)


@dataclass(frozen=True)
class Bound:
    """The object with which a token ends."""

    kind: str
    """Pod, Secret or Node."""
    name: str
    uid: str = ""


@dataclass(frozen=True)
class Read:
    """What a token says; whether its objects are still there is another question."""

    account: Account
    audiences: tuple[str, ...]
    bound: tuple[Bound, ...] = ()
    """For a pod also its node, which is only told."""
    identifier: str = ""
    """Unique identifier of a token (``jti``)."""
    legacy_secret: str = ""
    """Name of the secret in which it stands; it must be the token there."""
    extra: identities.Extra = ()
    """What reviews and admission are told of it."""


class Tokens:
    """Signs and reads them."""

    def __init__(self, key: ec.EllipticCurvePrivateKey | None = None, issuer: str = ISSUER) -> None:
        self._key = key or ec.generate_private_key(ec.SECP256R1())
        self._public = self._key.public_key()
        self.issuer = issuer
        der = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._identifier = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
        """Of the key."""

    def sign(
        self,
        account: Account,
        *,
        now_s: int,
        seconds: int = USUAL_S,
        audiences: Sequence[str] = (),
        bound: Sequence[Bound] = (),
        warn_after_s: int = 0,
    ) -> str:
        """``now_s``: Unix time. Without audiences, one for the API server. ``bound``: a pod, perhaps with its node, or
        a secret or a node."""
        told: dict[str, Any] = {"namespace": account.namespace}
        for one in bound:
            told[one.kind.lower()] = {"name": one.name, **({"uid": one.uid} if one.uid else {})}
        told["serviceaccount"] = {"name": account.name, "uid": account.uid}
        if warn_after_s:
            told["warnafter"] = now_s + warn_after_s
        claims = {
            "aud": list(audiences) or [self.issuer],
            "exp": now_s + seconds,
            "iat": now_s,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            _CLAIM: told,
            "nbf": now_s,
            "sub": account.user.name,
        }
        return self._encode(claims)

    def sign_legacy(self, account: Account, secret: str) -> str:
        """For a secret of the type ``kubernetes.io/service-account-token`` (``LegacyClaims``)."""
        claims = {
            "iss": LEGACY_ISSUER,
            f"{_LEGACY}namespace": account.namespace,
            f"{_LEGACY}secret.name": secret,
            f"{_LEGACY}service-account.name": account.name,
            f"{_LEGACY}service-account.uid": account.uid,
            "sub": account.user.name,
        }
        return self._encode(claims)

    def _encode(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self._key, algorithm=ALGORITHM, headers={"kid": self._identifier, "typ": None})

    def read(self, token: str, *, now_s: float, audiences: Sequence[str] = ()) -> Read | None:
        """None: it is none of ours. ``audiences``: for whom it has to be, one of these; without any, the API server.
        Raises :class:`WrongToken` for one of ours that is not good."""
        try:
            # Times are judged by the cluster's clock, not by that of the machine.
            options: Any = {f"verify_{one}": False for one in ("exp", "nbf", "iat", "aud", "iss")}
            claims = jwt.decode(token, self._public, algorithms=[ALGORITHM], options=options)
            issuer = claims["iss"]
            if issuer == LEGACY_ISSUER:
                return self._legacy(claims, audiences)
            if issuer != self.issuer:
                return None
            stated = claims["aud"]
            kept = [one for one in ([stated] if isinstance(stated, str) else stated) if one in self._wanted(audiences)]
            if not kept:
                raise WrongToken(
                    f"token audiences {_listed(stated)} is invalid for the target audiences "
                    f"{_listed(self._wanted(audiences))}"
                )
            if now_s >= claims["exp"] + LEEWAY_S:
                raise WrongToken("service account token has expired")
            if now_s < claims["nbf"] - LEEWAY_S:
                raise WrongToken("service account token is not valid yet")
            return _of_claims(claims, tuple(kept))
        except (jwt.PyJWTError, KeyError, TypeError, ValueError):
            return None

    def _wanted(self, audiences: Sequence[str]) -> Sequence[str]:
        return audiences or [self.issuer]

    def _legacy(self, claims: dict[str, Any], audiences: Sequence[str]) -> Read:
        """It is for the API server alone."""
        if self.issuer not in self._wanted(audiences):
            raise WrongToken(
                f'token audiences ["{self.issuer}"] is invalid for the target audiences {_listed(audiences)}'
            )
        account = Account(*(claims[f"{_LEGACY}{one}"] for one in ("namespace", *_OF_ACCOUNT)))
        return Read(account, (self.issuer,), legacy_secret=claims[f"{_LEGACY}secret.name"])

    # What others need to read tokens

    def configuration(self, url: str) -> bytes:
        """``/.well-known/openid-configuration``. ``url``: where the cluster is reached."""
        found = {
            "issuer": self.issuer,
            "jwks_uri": f"{url}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }
        return json.dumps(found, separators=(",", ":")).encode()

    def keys(self) -> bytes:
        """``/openid/v1/jwks``: the public key."""
        numbers = self._public.public_numbers()
        x, y = (
            base64.urlsafe_b64encode(one.to_bytes(32, "big")).decode().rstrip("=") for one in (numbers.x, numbers.y)
        )
        key = {"use": "sig", "kty": "EC", "kid": self._identifier, "crv": "P-256", "alg": ALGORITHM, "x": x, "y": y}
        return json.dumps({"keys": [key]}, separators=(",", ":")).encode()


_OF_ACCOUNT = "service-account.name", "service-account.uid"
_EXTRA = "authentication.kubernetes.io/"


def _of_claims(claims: dict[str, Any], audiences: tuple[str, ...]) -> Read:
    told, identifier = claims[_CLAIM], str(claims["jti"])
    owner = told["serviceaccount"]
    bound = tuple(
        Bound(kind, told[kind.lower()]["name"], told[kind.lower()].get("uid", ""))
        for kind in ("Pod", "Secret", "Node")
        if kind.lower() in told
    )
    extra = {f"{_EXTRA}credential-id": (f"JTI={identifier}",)}
    for one in bound:
        if one.kind != "Secret":
            extra[f"{_EXTRA}{one.kind.lower()}-name"] = (one.name,)
            if one.uid:
                extra[f"{_EXTRA}{one.kind.lower()}-uid"] = (one.uid,)
    account = Account(told["namespace"], owner["name"], owner["uid"])
    return Read(account, audiences, bound, identifier, extra=tuple(extra.items()))


def _listed(texts: Sequence[str]) -> str:
    """As Go prints a list of strings."""
    return f"[{' '.join(json.dumps(one) for one in texts)}]"
