"""A cluster that stands in the place of kemu's store, API servers and controllers: the run is a guest there.

Its schedulers are kube-schedulers of the run, which serve nobody else's pods, as they have names of their own; its
nodes have kemu's kubelets. What the run has made is removed at its end (:mod:`.guests`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.bridge import apiservers as bridges
from kemu.emulated.bridge import connections
from kemu.emulated.bridge.tenants import Tenant
from kemu.emulated.real import components, control_planes, guests, observations
from kemu.emulated.real.control_planes import APISERVER, CONTROLLER, SHARED, STORE
from kemu.emulated.real.guests import Guest
from kemu.emulated.real.scheduler_logs import SchedulerLog
from kemu.errors import KemuError
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.host import wall_clocks
from kemu.runtime.real.programs import Program
from kemu.runtime.real.runtime import Hear, Link
from kemu.runtime.runlog.events import Event

_SERVER = f"{APISERVER}0"
_READ_EVERY_S = 0.1
_HOLD_NS = observations.WAIT_NS + SECOND_NS // 4
"""So long what a log says waits until it is told which pods there are."""
_NODES_READY_S = 60.0
_ALL = 1 << 63
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Keys of a kubeconfig that name files, as seen from its folder."""


class StandingCluster:
    """Implements :class:`kemu.runtime.real.runtime.Programs`."""

    def __init__(self, folder: Path, guest: Guest, schedulers: frozenset[str]) -> None:
        """``folder``: for configurations and logs; made if it is not there. ``schedulers``: actors that are
        kube-schedulers."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder.resolve()
        self._guest = guest
        self._schedulers = schedulers
        self._tenant = Tenant(guest.run)
        self._connection = connections.Connection(guest.settings)
        self._observer = observations.Observer(self._connection, self._tenant, self._hear_transaction)
        self._logs: list[SchedulerLog] = []
        self._ports: dict[str, tuple[SchedulerLog, int]] = {}
        """By scheduler: its log, and the port at which it has its metrics."""
        self._reading: asyncio.Task[None] | None = None
        self._remover: guests.Remover | None = None
        self._hear: Hear
        self.left: list[str] = []

    def open(self, hear: Hear, link: Link) -> None:
        self._hear = hear

    async def actor(self, spec: ActorSpec) -> ActorSpec | None:
        if spec.name == STORE or spec.name.startswith(CONTROLLER):
            return None
        if not spec.name.startswith(APISERVER):
            return spec
        await self._arrive()
        config = {"kubeconfig": self._guest.kubeconfig, "context": self._guest.context, "run": self._guest.run}
        return ActorSpec(spec.name, bridges.FACTORY, {**config, "shares": SHARED})

    async def _arrive(self) -> None:
        if self._remover is not None:
            return
        self._remover = guests.Remover(self._guest)
        await self._connection.open()
        await self._observer.start()
        await guests.furnish(self._connection, self._tenant)
        self._reading = asyncio.create_task(self._read(), name="logs of schedulers")

    async def program(self, spec: ActorSpec) -> Program | None:
        if spec.name not in self._schedulers:
            return None
        if not await self._observer.nodes_ready(len(self._guest.nodes), _NODES_READY_S):
            why = "does its kube-controller-manager run?"
            raise KemuError(f"the nodes of the run have not become ready within {_NODES_READY_S:g} s: {why}")
        log = SchedulerLog(
            self._observer.pods,
            lambda unix_ns, event: self._hear(unix_ns, spec.name, event),
            actor=spec.name,
            bindings=lambda unix_ns, event: self._hear(unix_ns, _SERVER, event),
        )
        self._logs.append(log)
        (port,) = components.free_ports(1)
        self._ports[spec.name] = log, port
        prefix = self._tenant.prefix
        return components.scheduler(
            self._folder,
            spec.name.replace("/", "-"),
            self._kubeconfig(),
            port,
            self._named(spec.config["config"], spec.config["name"]),
            lambda line: log.line(line.replace(prefix, "")),
        )

    def _named(self, config: Mapping[str, Any], name: str) -> dict[str, Any]:
        """With the names that schedulers and namespaces of the run have in the cluster."""
        theirs = self._tenant.theirs
        profiles = [
            {**profile, "schedulerName": theirs(profile.get("schedulerName", name))}
            for profile in config.get("profiles") or [{}]
        ]
        found = {**config, "profiles": profiles}
        if "leaderElection" in config:
            election = config["leaderElection"]
            namespace = theirs(election.get("resourceNamespace") or "kube-system")
            found["leaderElection"] = {**election, "resourceNamespace": namespace}
        return found

    def _kubeconfig(self) -> Path:
        """That of the user, with the context that was chosen as its current one."""
        source = Path(self._guest.kubeconfig).resolve()
        if not self._guest.context:
            return source
        data = yaml.safe_load(source.read_text())
        data["current-context"] = self._guest.context
        for named in (*data.get("clusters", ()), *data.get("users", ())):
            for part in named.values():
                for key in _FILES if isinstance(part, dict) else ():
                    if key in part:
                        part[key] = str(source.parent / part[key])
        path = self._folder / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(data))
        return path

    def stand_in(self, spec: ActorSpec) -> ActorSpec | None:
        return None

    async def started(self, spec: ActorSpec) -> None:
        pass

    async def stopping(self, spec: ActorSpec) -> None:
        if spec.name in self._ports:
            await control_planes.count(*self._ports[spec.name])

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        await self._observer.stop()
        for log in self._logs:
            log.read(_ALL)
        if self._remover is not None:
            self.left = await guests.remove(self._connection, self._guest.run)
            self._remover.dismiss()
        await self._connection.close()

    async def _read(self) -> None:
        while True:
            await asyncio.sleep(_READ_EVERY_S)
            until_ns = wall_clocks.wall_ns() - _HOLD_NS
            for log in self._logs:
                log.read(until_ns)

    def _hear_transaction(self, unix_ns: int, event: Event) -> None:
        self._hear(unix_ns, _SERVER, event)
