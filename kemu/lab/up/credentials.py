"""What the server of a cluster shows to its clients, and the tokens of its users. Made anew for each cluster."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kemu.emulated.gateway.authentication import authenticators, certificates, service_accounts
from kemu.emulated.gateway.servers import Certificates
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from kemu.lab.scenario.format import users

_ANY = ("", "0.0.0.0", "::")


@dataclass(frozen=True)
class Credentials:
    authority: certificates.Authority
    server: certificates.KeyPair
    token: str
    """Token of the administrator."""
    others: Mapping[str, User] = field(default_factory=dict)
    """Other users, by token."""
    clients: bytes | None = None
    """Whose certificates clients may show, in PEM; empty: nobody's; None: the authority's."""
    accounts: service_accounts.Tokens = field(default_factory=service_accounts.Tokens)
    """Signs tokens of service accounts."""
    signs: bool = True
    """Certificates that are asked for are signed by the authority, and tokens in secrets."""

    @property
    def trusted(self) -> bytes:
        """What clients have to trust, in PEM."""
        return self.authority.certificate if self.clients is None else self.server.certificate

    @property
    def users(self) -> dict[str, User]:
        """All of them, by token."""
        return {self.token: identities.ADMINISTRATOR, **self.others}

    @property
    def certificates(self) -> Certificates:
        return Certificates(self.server, self.authority.certificate if self.clients is None else self.clients)


def make(host: str, users: Iterable[User] = ()) -> Credentials:
    """``host``: where the server listens. ``users``: who gets a token, beside the administrator."""
    authority = certificates.Authority.make()
    others = {authenticators.new_token(): user for user in users}
    return Credentials(authority, authority.server(_addresses(host)), authenticators.new_token(), others)


def users_of(stated: Mapping[str, users.User], more: Sequence[User]) -> list[User]:
    """Those of a scenario, with their groups, and more; each once."""
    found = [identities.of_name(name, one.groups) for name, one in stated.items()]
    return list({user.name: user for user in (*found, *more)}.values())


def _addresses(host: str) -> Sequence[str]:
    """Under which clients may reach a server that listens there."""
    if host not in _ANY:
        return [host]
    name = socket.gethostname()
    found = [name]
    with contextlib.suppress(OSError):
        found += [str(address[4][0]) for address in socket.getaddrinfo(name, None)]
    return found


def reached_at(host: str) -> str:
    """The host that clients on this machine call."""
    if host == "::":
        return "::1"
    return "127.0.0.1" if host in _ANY else host
