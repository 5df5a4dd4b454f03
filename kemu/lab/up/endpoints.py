"""Where clients reach a cluster: the server, behind it the control endpoint, the layer of faults, the gateway."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.gateway import issuers
from kemu.emulated.gateway.aggregation import Aggregator
from kemu.emulated.gateway.app import Gateway
from kemu.emulated.gateway.asgi import Application
from kemu.emulated.gateway.authentication import authenticators
from kemu.emulated.gateway.deliveries import Deliveries
from kemu.emulated.gateway.faults.layer import Layer, Strike, Time
from kemu.emulated.gateway.faults.revisions import Revisions
from kemu.emulated.gateway.handlers import Handlers
from kemu.emulated.gateway.limits import files, sites
from kemu.emulated.gateway.servers import Server
from kemu.emulated.gateway.settings import Authenticator, Everybody
from kemu.emulated.gateway.settings import Settings as GatewaySettings
from kemu.emulated.gateway.verbs import component_statuses
from kemu.emulated.kubelet.usage import usages
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.telemetry.metrics.folds import Fold
from kemu.lab.up import controls, credentials
from kemu.lab.up.chaos.injectors import Injector
from kemu.runtime.env import SECOND_NS, Channel, Clock
from kemu.runtime.metrics import texts
from kemu.runtime.metrics.families import APISERVER, STATE
from kemu.runtime.metrics.values import Values
from kemu.runtime.runlog.events import Transaction

_CONNECTIONS = 10_000
_NO_HANDLERS = Handlers()


@dataclass(frozen=True)
class Place:
    """Where to listen, and how."""

    host: str
    port: int
    insecure_http: bool


class Measures:
    """The metrics of the components, from the run log; in virtual time another thread writes that."""

    def __init__(self) -> None:
        self._fold = Fold(counts_gateway=False)
        self._lock = threading.Lock()

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        with self._lock:
            self._fold.feed(time_ns, actor, kind, data)

    def text(self, component: str, instance: str, now_ns: int) -> str:
        """``instance``: empty for all of them. Raises ServiceUnavailable where none of them answers."""
        with self._lock:
            fold = self._fold
            every = [one for one in fold.up if one.component == component and instance in ("", one.instance)]
            answering = {one.instance for one in every if fold.answers(one)}
            if component != STATE and not answering:
                raise errors.ServiceUnavailable(f"{component}{instance and f' {instance}'} does not answer")
            values = fold.values(now_ns)
            return texts.of_component(component, values, only=lambda one: not one or one in answering)

    def of_servers(self, clients: Values, now_ns: int) -> str:
        """``clients``: requests that the gateway has counted."""
        with self._lock:
            return texts.of_component(APISERVER, clients, self._fold.values(now_ns), instances=False)


class Listener:
    """Listener of the run log: what the endpoint has to know of the past."""

    def __init__(self) -> None:
        self.revisions = Revisions()
        self.injector: Injector | None = None
        self.measures: Measures | None = None
        """Where metrics are asked for."""

    def measure(self, scenario: Scenario) -> None:
        """Before anything is logged."""
        if scenario.metrics:
            self.measures = Measures()

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if self.measures is not None:
            self.measures.feed(time_ns, actor, kind, data)
        if isinstance(data, Transaction):
            self.revisions.add(time_ns, data.rev)
        elif self.injector is not None and kind in Injector.HEARD:
            self.injector.listen(time_ns, actor, kind, data)


class Endpoint:
    """Endpoint of one cluster."""

    def __init__(
        self,
        place: Place,
        made: credentials.Credentials,
        scenario: Scenario,
        dial: Callable[[str], Channel],
        clock: Clock,
        look: authenticators.Look,
        time: Time,
        listener: Listener,
        injector: Injector,
        on_strike: Callable[[Strike], None],
        steps: controls.Steps | None = None,
        deliveries: Deliveries | None = None,
        handlers: Handlers = _NO_HANDLERS,
        before: Callable[[Application], Application] = lambda app: app,
    ) -> None:
        """``dial`` and ``clock``: see :class:`kemu.emulated.gateway.app.Gateway`. ``steps``: None in real time.
        ``before``: puts something before the layer of faults."""
        self._place = place
        measures = listener.measures
        authenticator: Authenticator = Everybody()
        accounts = made.accounts
        if not place.insecure_http:
            authenticator = authenticators.Authenticator(
                made.users,
                accounts=accounts,
                look=look,
                now_s=lambda: clock.unix_ns() / SECOND_NS,
            )
        names = tuple(f"apiserver/{number}" for number in range(scenario.api_servers.replicas))
        settings = GatewaySettings(
            apiservers=names,
            authenticator=authenticator,
            accounts=accounts,
            node_usage=_usage_of_nodes(scenario),
            components=_components(scenario),
            aggregator=Aggregator(
                clock, scenario.api_servers.services, None if place.insecure_http else made.authority
            ),
            issuer=issuers.Issuer(None if place.insecure_http else made.authority, accounts) if made.signs else None,
            deliveries=deliveries,
            programs=scenario.programs,
            handlers=handlers,
            removed_betas=scenario.api_servers.removed_betas,
            measured=None if measures is None else lambda clients: measures.of_servers(clients, time.now_ns()),
        )
        gateway = Gateway(dial, clock, settings)
        self.layer = Layer(gateway, time, authenticator, listener.revisions, on_strike)
        self._app = controls.Controls(
            before(self.layer),
            authenticator,
            lambda: time.now_ns() / SECOND_NS,
            clock.unix_ns,
            injector,
            steps,
            None if measures is None else lambda component, instance: measures.text(component, instance, time.now_ns()),
        )
        listener.injector = injector
        files.raise_limit(_CONNECTIONS)
        certificates = None if place.insecure_http else made.certificates
        guarded = sites.Guard(self._app, place.host) if place.insecure_http else self._app
        self.server = Server(guarded, place.host, place.port, certificates)

    async def start(self) -> None:
        """Raises KemuError where the port is taken."""
        try:
            await self.server.start()
        except OSError as error:
            where = f"{self._place.host}:{self._place.port}"
            raise errors.KemuError(f"{where}: {error.strerror or error}: choose another port (--port)") from None

    @property
    def address(self) -> tuple[str, int]:
        """Where clients on this machine reach it."""
        host, _, port = self.server.url.partition("://")[2].rpartition(":")
        return credentials.reached_at(host.strip("[]")), int(port)

    async def stop(self) -> None:
        """May be repeated."""
        self._app.close()
        await self.server.stop()


def _components(scenario: Scenario) -> frozenset[str]:
    """What of the control plane the scenario has."""
    found = set[str]()
    if scenario.schedulers:
        found.add(component_statuses.SCHEDULER)
    if scenario.controllers:
        found.add(component_statuses.CONTROLLER_MANAGER)
    return frozenset(found)


def _usage_of_nodes(scenario: Scenario) -> Callable[[str, int], Mapping[str, int]]:
    """What the scenario says that nodes use besides their pods."""
    curves = {node.name: usages.parse_node(node.usage, node.name) for node in scenario.nodes if node.usage}

    def usage(node: str, second: int) -> Mapping[str, int]:
        used = {resource: curve.at(second) for resource, curve in curves.get(node, {}).items()}
        used["memory"] = used.get("memory", 0) + used.get(usages.ACTIVE_FILE, 0)
        return used

    return usage
