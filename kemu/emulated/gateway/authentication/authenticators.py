"""From the headers of a request, and the certificate of its client, to a user.

As in kube-apiserver, a certificate counts before a token, whoever shows something that is wrong is refused, and
whoever shows nothing is ``system:anonymous``.
"""

from __future__ import annotations

import csv
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.emulated.gateway.authentication import service_accounts
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User

TOKEN_BYTES = 32
_BEARER = "bearer "

AccountUid = Callable[[str, str], Awaitable[str]]
"""From namespace and name of a service account to its UID; empty: there is none."""


class Authenticator:
    """Raises nothing but :class:`kemu.errors.Unauthorized`."""

    def __init__(
        self,
        tokens: Mapping[str, User],
        *,
        accounts: service_accounts.Tokens | None = None,
        account_uid: AccountUid | None = None,
        now_s: Callable[[], float] = lambda: 0.0,
        anonymous: bool = True,
    ) -> None:
        """``tokens``: known by heart. ``accounts``: reads those of service accounts, by ``now_s``, Unix time;
        ``account_uid`` says whether the account is still there. ``anonymous``: requests that show nothing are let
        through, to be refused by authorization where they want more than ``/version`` and ``/healthz``."""
        # Only digests are kept and compared: how long that takes says nothing of a token.
        self._users = {_digest(token): user for token, user in tokens.items()}
        self._accounts = accounts
        self._account_uid = account_uid
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
        if stated[: len(_BEARER)].lower() != _BEARER:
            # Other schemes are those of others: as if nothing had been shown.
            if self._anonymous:
                return identities.ANONYMOUS
            raise errors.Unauthorized("Unauthorized")
        user = await self.of_token(stated[len(_BEARER) :].strip())
        if user is None:
            raise errors.Unauthorized("Unauthorized")
        return user

    async def of_token(self, token: str) -> User | None:
        """None: no user's."""
        known = self._users.get(_digest(token))
        if known is not None:
            return known
        if self._accounts is None:
            return None
        account = self._accounts.read(token, now_s=self._now_s())
        if account is None:
            return None
        if self._account_uid is not None and await self._account_uid(account.namespace, account.name) != account.uid:
            return None
        return account.user


def of_certificate(certificate: Mapping[str, Any]) -> User | None:
    """The common name is the user, organizations are groups (``x509.CommonNameUserConversion``)."""
    name, groups = "", list[str]()
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return authenticated(name, groups) if name else None


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
                found[row[0]] = authenticated(row[1], groups)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise errors.KemuError(f"{file}: {error}") from None
    return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
