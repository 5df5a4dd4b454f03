"""From the headers of a request, and the certificate of its client, to a user.

As in kube-apiserver, a certificate counts before a token, whoever shows something that is wrong is refused, and
whoever shows nothing is ``system:anonymous``.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.emulated.gateway.authentication import service_accounts
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

TOKEN_BYTES = 32
_BEARER = "bearer "
_UID = "1.3.6.1.4.1.57683.2"
"""The object identifier of a UID in the subject of a certificate."""
DIGEST = "kemu.sha256"
"""Key beside those of ``getpeercert``: SHA-256 of the certificate, in hexadecimal."""
CREDENTIAL = "authentication.kubernetes.io/credential-id"

Look = Callable[[str, str, str], Awaitable[KubernetesObject | None]]
"""From the plural of a kind, a namespace and a name to an object; None: there is none."""

INVALID, INVALIDATED = "invalid bearer token", "service account token has been invalidated"
_PLURALS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@dataclass(frozen=True)
class Identity:
    """Whom a token stands for, and for whom it is."""

    user: User
    audiences: tuple[str, ...] = ()


class Authenticator:
    """Raises nothing but :class:`kemu.errors.Unauthorized`."""

    def __init__(
        self,
        tokens: Mapping[str, User],
        *,
        accounts: service_accounts.Tokens | None = None,
        look: Look | None = None,
        now_s: Callable[[], float] = lambda: 0.0,
        anonymous: bool = True,
    ) -> None:
        """``tokens``: known by heart. ``accounts``: reads those of service accounts, by ``now_s``, Unix time;
        ``look`` finds the account and what a token is bound to. ``anonymous``: requests that show nothing are let
        through, to be refused by authorization where they want more than ``/version`` and ``/healthz``."""
        # Only digests are kept and compared: how long that takes says nothing of a token.
        self._users = {_digest(token): user for token, user in tokens.items()}
        self._accounts = accounts
        self._look = look
        self._now_s = now_s
        self._anonymous = anonymous

    def add(self, token: str, user: User) -> None:
        self._users[_digest(token)] = user

    async def authenticate(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None = None) -> User:
        """``headers``: names in lower case. ``certificate``: as ``ssl.SSLSocket.getpeercert`` returns it, of a chain
        that was verified."""
        if certificate:
            user = of_certificate(certificate)
            if user is not None:
                return user
        stated = headers.get("authorization", "").strip()
        if not stated:
            if self._anonymous:
                return identities.ANONYMOUS
            raise errors.Unauthorized("Unauthorized")
        token = bearer(headers)
        if not token:
            # Other schemes are those of others: as if nothing had been shown.
            if self._anonymous:
                return identities.ANONYMOUS
            raise errors.Unauthorized("Unauthorized")
        user = self._users.get(_digest(token)) or await self.of_token(token)
        if user is None:
            raise errors.Unauthorized("Unauthorized")
        return user

    async def of_token(self, token: str) -> User | None:
        """None: no user's."""
        try:
            return (await self.identify(token)).user
        except errors.Unauthorized:
            return None

    async def identify(self, token: str, audiences: Sequence[str] = ()) -> Identity:
        """``audiences``: for whom it has to be, one of these; without any, the API server. Raises
        :class:`kemu.errors.Unauthorized`, which says why."""
        known = self._users.get(_digest(token))
        if known is not None:
            # Such a token says nothing of whom it is for: it is for the API server.
            own = service_accounts.ISSUER if self._accounts is None else self._accounts.issuer
            if audiences and own not in audiences:
                raise errors.Unauthorized(INVALID)
            return Identity(known, (own,))
        if self._accounts is None:
            raise errors.Unauthorized(INVALID)
        try:
            read = self._accounts.read(token, now_s=self._now_s(), audiences=audiences)
            if read is None:
                raise errors.Unauthorized(INVALID)
            await self._check(read, token)
        except service_accounts.WrongToken as wrong:
            raise errors.Unauthorized(f"[{INVALID}, {wrong}]") from None
        user = read.account.user._replace(uid=read.account.uid, extra=read.extra)
        return Identity(user, read.audiences)

    async def _check(self, read: service_accounts.Read, token: str) -> None:
        """Whether its objects are still there (``validator.Validate``). Raises WrongToken."""
        if self._look is None:
            return
        account = read.account
        found = await self._look("serviceaccounts", account.namespace, account.name)
        if found is None:
            raise service_accounts.WrongToken(f'serviceaccounts "{account.name}" not found')
        if found.metadata.uid != account.uid:
            text = f"service account UID ({found.metadata.uid}) does not match claim ({account.uid})"
            raise service_accounts.WrongToken(text)
        if self._is_going(found):
            raise service_accounts.WrongToken(f"service account {account.namespace}/{account.name} has been deleted")
        if read.legacy_secret:
            secret = await self._look("secrets", account.namespace, read.legacy_secret)
            if secret is None or secret.metadata.HasField("deletionTimestamp"):
                raise service_accounts.WrongToken("Token has been invalidated")
            assert isinstance(secret, core_v1_pb2.Secret)
            if not hmac.compare_digest(secret.data.get("token", b""), token.encode()):
                raise service_accounts.WrongToken("Token does not match server's copy")
        for one in read.bound[:1]:
            # The second is the node of a pod, which is only told.
            namespace = "" if one.kind == "Node" else account.namespace
            bound = await self._look(_PLURALS[one.kind], namespace, one.name)
            if bound is None:
                raise service_accounts.WrongToken(INVALIDATED)
            if bound.metadata.uid != one.uid:
                ref = "service account " + {"Pod": "pod ref", "Secret": "secret ref", "Node": "node ref"}[one.kind]
                text = f"{one.kind} UID ({bound.metadata.uid}) does not match {ref} claim ({one.uid})"
                raise service_accounts.WrongToken(text)
            if self._is_going(bound):
                raise service_accounts.WrongToken(INVALIDATED)

    def _is_going(self, found: KubernetesObject) -> bool:
        """Whether its deletion began a while ago."""
        metadata = found.metadata
        if not metadata.HasField("deletionTimestamp"):
            return False
        return bool(metadata.deletionTimestamp.seconds < self._now_s() - service_accounts.LEEWAY_S)


def bearer(headers: Mapping[str, str]) -> str:
    """The token that a request shows; empty: none."""
    stated = headers.get("authorization", "").strip()
    return stated[len(_BEARER) :].strip() if stated[: len(_BEARER)].lower() == _BEARER else ""


def of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """The common name is the user, organizations are groups (``x509.CommonNameUserConversion``). Raises
    :class:`kemu.errors.Unauthorized` for several UIDs, or an empty one."""
    name, groups, uids = "", list[str](), list[str]()
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
            elif key == _UID:
                uids.append(value)
    if not name:
        return None
    if len(uids) > 1 or "" in uids:
        raise errors.Unauthorized("Unauthorized")
    user = authenticated(name, groups)._replace(uid="".join(uids))
    digest = certificate.get(DIGEST)
    return user._replace(extra=((CREDENTIAL, (f"X509SHA256={digest}",)),)) if digest else user


def authenticated(name: str, groups: Iterable[str]) -> User:
    """A known user belongs to ``system:authenticated``, too."""
    return User(name, tuple(dict.fromkeys([*groups, identities.AUTHENTICATED])))


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def read_token_file(file: Path) -> dict[str, User]:
    """A token file of kube-apiserver: lines of ``token,user,uid`` and perhaps ``"group,group"``.

    Raises :class:`kemu.errors.KemuError` with the line.
    """
    found: dict[str, User] = {}
    try:
        with file.open(newline="") as lines:
            for number, row in enumerate(csv.reader(lines, skipinitialspace=True), 1):
                if not row:
                    continue
                if len(row) < 3 or not row[0] or not row[1]:
                    raise errors.KemuError(f"{file}:{number}: a line of a token file is token,user,uid[,groups]")
                groups = [one.strip() for one in row[3].split(",")] if len(row) > 3 and row[3] else []
                found[row[0]] = authenticated(row[1], groups)._replace(uid=row[2])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise errors.KemuError(f"{file}: {error}") from None
    return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
