"""Tokens of service accounts, as JSON Web Tokens that the gateway signs (``pkg/serviceaccount``).

The key is made when the cluster begins, so tokens of one cluster are worth nothing in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User

ISSUER = "https://kubernetes.default.svc.cluster.local"
ALGORITHM = "ES256"
SHORTEST_S, LONGEST_S = 600, 1 << 32
"""What ``ValidateTokenRequest`` lets pass."""
USUAL_S = 3600
_CLAIM = "kubernetes.io"


@dataclass(frozen=True)
class Account:
    namespace: str
    name: str
    uid: str

    @property
    def user(self) -> User:
        return identities.service_account(self.name, self.namespace)


class Tokens:
    """Signs and reads them."""

    def __init__(self, key: ec.EllipticCurvePrivateKey | None = None, issuer: str = ISSUER) -> None:
        self._key = key or ec.generate_private_key(ec.SECP256R1())
        self._public = self._key.public_key()
        self._issuer = issuer

    def sign(self, account: Account, *, now_s: int, seconds: int = USUAL_S, audiences: Sequence[str] = ()) -> str:
        """``now_s``: Unix time. Without audiences, one for the API server."""
        claims = {
            "aud": list(audiences) or [self._issuer],
            "exp": now_s + seconds,
            "iat": now_s,
            "iss": self._issuer,
            _CLAIM: {
                "namespace": account.namespace,
                "serviceaccount": {"name": account.name, "uid": account.uid},
            },
            "nbf": now_s,
            "sub": account.user.name,
        }
        return jwt.encode(claims, self._key, algorithm=ALGORITHM)

    def read(self, token: str, *, now_s: float) -> Account | None:
        """Whose token it is; None: it is none of ours, has expired, or is meant for others. Whether the account still
        exists is another question."""
        try:
            # Times are judged by the cluster's clock, not by that of the machine.
            options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "require": ["exp", "nbf"]}
            claims = jwt.decode(
                token, self._public, algorithms=[ALGORITHM], audience=self._issuer, issuer=self._issuer, options=options
            )
            account = claims[_CLAIM]["serviceaccount"]
            if not claims["nbf"] <= now_s < claims["exp"]:
                return None
            return Account(claims[_CLAIM]["namespace"], account["name"], account["uid"])
        except (jwt.PyJWTError, KeyError, TypeError, ValueError):
            return None
