"""What the server of a cluster shows to its clients, and the token of its administrator. Made anew for each cluster."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from kemu.gateway.authentication import authenticators, certificates
from kemu.gateway.servers import Certificates

_ANY = ("", "0.0.0.0", "::")


@dataclass(frozen=True)
class Credentials:
    authority: certificates.Authority
    server: certificates.KeyPair
    token: str

    @property
    def certificates(self) -> Certificates:
        return Certificates(self.server, self.authority.certificate)


def make(host: str) -> Credentials:
    """``host``: where the server listens."""
    authority = certificates.Authority.make()
    return Credentials(authority, authority.server(_addresses(host)), authenticators.new_token())


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
