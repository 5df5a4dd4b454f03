"""What the gateway is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kemu.emulated.gateway.aggregation import Aggregator
from kemu.emulated.gateway.authentication import authenticators, service_accounts
from kemu.emulated.gateway.deliveries import Deliveries
from kemu.emulated.gateway.handlers import Handlers
from kemu.emulated.gateway.issuers import Issuer
from kemu.emulated.gateway.requests.documents import Yaml
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from kemu.runtime.metrics.values import Values


class Authenticator(Protocol):
    """Says who makes a request."""

    async def authenticate(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None = None) -> User:
        """``headers``: by lower-case name. ``certificate``: as ``getpeercert`` has it, of a chain that was verified.

        Raises :class:`kemu.errors.Unauthorized`.
        """
        ...

    async def identify(self, token: str, audiences: Sequence[str] = ()) -> authenticators.Identity:
        """Whom a token stands for, for one of these audiences. Raises :class:`kemu.errors.Unauthorized`."""
        ...


class Everybody:
    """Takes everybody for the administrator."""

    async def identify(self, token: str, audiences: Sequence[str] = ()) -> authenticators.Identity:
        return authenticators.Identity(identities.ADMINISTRATOR, tuple(audiences) or (service_accounts.ISSUER,))

    async def authenticate(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None = None) -> User:
        return identities.ADMINISTRATOR


@dataclass(frozen=True)
class Settings:
    apiservers: tuple[str, ...] = ("apiserver/0",)
    """Names of the actors."""
    authenticator: Authenticator = field(default_factory=Everybody)
    accounts: service_accounts.Tokens | None = None
    """Signs tokens of service accounts; None: there are none."""
    aggregator: Aggregator | None = None
    """Leads to API servers of others; None: there are none."""
    issuer: Issuer | None = None
    """Signs certificates, and tokens in secrets; None: nobody does."""
    max_body_bytes: int = 3 << 20
    """``MaxRequestBodyBytes`` of kube-apiserver."""
    cache_bytes: int = 64 << 20
    """Cache bytes of objects that are kept in the forms in which they were sent."""
    all_backlog_bytes: int = 128 << 20
    """All backlog bytes of events that may wait for the clients of all watches; those that leave most unread are
    ended."""
    watch_backlog_bytes: int = 16 << 20
    """Watch backlog bytes of events that may wait for one watch whose client does not read; then it is ended."""
    least_watch_s: float = 1800.0
    """How long a watch lasts at least that does not say so; at most twice as long (``MinRequestTimeout``)."""
    node_usage: Callable[[str, int], Mapping[str, int]] = lambda node, second: {}
    """What a node uses besides its pods, by the seconds since the start: ``cpu`` in millicores, ``memory`` in bytes."""
    components: frozenset[str] = frozenset()
    """Components of the control plane that kemu runs, by their names in ``componentstatuses``."""
    yaml: Yaml = field(default_factory=Yaml)
    programs: bool = False
    """Whether containers do what their commands say."""
    handlers: Handlers = field(default_factory=Handlers)
    """Functions that answer for containers."""
    removed_betas: bool = False
    """Whether betas are served that Kubernetes has removed."""
    measured: Callable[[Values], str] | None = None
    """The text of /metrics: requests of clients, which it is given, and what is logged of the API servers; None: only
    the former."""
    max_watches: int = 10_000
    """Most watches of one user."""
    deliveries: Deliveries | None = None
    """Is told what watches have delivered; None: nobody wants to know."""
