"""A real control plane in the place of kemu's store, API servers, schedulers and controllers.

Each actor of those kinds is one process: so it can be killed, stopped and cut off alone, as in every other runtime.
Kubelets, the user, and schedulers of the user's own stay actors of kemu's process, and reach an API server over the
bridge, by its name.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kemu.emulated.apiserver.settings import ApiServers
from kemu.emulated.bridge import apiservers as bridges
from kemu.emulated.objects import identities
from kemu.emulated.real import components
from kemu.emulated.real.audit_logs import AuditLog
from kemu.emulated.real.scheduler_logs import SchedulerLog
from kemu.emulated.real.scheduler_metrics import Counts
from kemu.emulated.real.transactions import Transactions
from kemu.emulated.store.settings import Store
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.host import wall_clocks
from kemu.runtime.real.programs import Program
from kemu.runtime.real.runtime import Hear, Link
from kemu.runtime.runlog.events import Event

STORE, APISERVER, SCHEDULER, CONTROLLER = "store", "apiserver/", "scheduler/", "controller/"
BRIDGE = "kemu"
"""Whose token the bridge shows."""
SHARED = ("pods", "nodes")
"""What all kubelets together watch once."""
_READ_EVERY_S = 0.1
HOLD_NS = SECOND_NS // 2
"""So long what a log says waits for what etcd tells: which pod is meant, and what its revision is."""
_ALL = 1 << 63


@dataclass(frozen=True)
class Settings:
    """What a scenario says of its control plane."""

    folder: Path
    """For certificates, logs and data; made if it is not there."""
    actors: Sequence[str]
    """Names of the actors that are programs; all others are actors of this process."""
    store: Store
    api_servers: ApiServers
    is_cut: bool = False
    """Faults are to come between programs: they reach each other through proxies."""
    gates: Sequence[str] = ()
    """Feature gates of groups of pods that a scheduler has on: the API servers have them, too."""


class ControlPlane:
    """Implements :class:`kemu.runtime.real.runtime.Programs`."""

    def __init__(self, settings: Settings) -> None:
        settings.folder.mkdir(parents=True, exist_ok=True)
        self._settings = settings
        self._folder = settings.folder.resolve()
        self._etcd, self._peers = components.free_ports(2)
        self._ports: dict[str, int] = {}
        """The ports of API servers, by actor."""
        self._tokens = {name: secrets.token_hex(16) for name in (BRIDGE, *settings.actors)}
        self._transactions = Transactions(f"{components.LOOPBACK}:{self._etcd}", self._hear_transaction)
        self._logs: list[AuditLog | SchedulerLog] = []
        self._schedulers: dict[str, tuple[SchedulerLog, int]] = {}
        """By actor: its log, and the port at which it has its metrics."""
        self._reading: asyncio.Task[None] | None = None
        self._hear: Hear
        self._link: Link
        self.left: Sequence[str] = ()

    def open(self, hear: Hear, link: Link) -> None:
        self._hear = hear
        self._link = link

    async def program(self, spec: ActorSpec) -> Program | None:
        name, folder = spec.name, self._folder
        if name not in self._settings.actors:
            return None
        file = _file_of(name)
        if name == STORE:
            return components.etcd(folder, self._etcd, self._peers, fsync=self._settings.store.fsync != "none")
        if name.startswith(APISERVER):
            if name not in self._ports:
                (self._ports[name],) = components.free_ports(1)
            target = await self._address(name, STORE, f"{components.LOOPBACK}:{self._etcd}")
            port, token, settings = self._ports[name], self._tokens[BRIDGE], self._settings.api_servers
            return components.apiserver(
                folder, file, port, f"http://{target}", self._token_file(), settings, token, gates=self._settings.gates
            )
        if name.startswith(SCHEDULER):
            config = spec.config
            log = SchedulerLog(self._transactions.pods, lambda unix_ns, event: self._hear(unix_ns, name, event))
            self._logs.append(log)
            (port,) = components.free_ports(1)
            self._schedulers[name] = log, port
            kubeconfig = await self._kubeconfig(name, config["apiserver"])
            stated = _with_names(config["config"], config["name"])
            return components.scheduler(folder, file, kubeconfig, port, stated, log.line)
        (port,) = components.free_ports(1)
        kubeconfig = await self._kubeconfig(name, spec.config["apiserver"])
        controller = name.removeprefix(CONTROLLER).partition("/")[0]
        return components.controller_manager(folder, file, kubeconfig, port, controller, spec.config)

    async def actor(self, spec: ActorSpec) -> ActorSpec | None:
        return spec

    def stand_in(self, spec: ActorSpec) -> ActorSpec | None:
        if not spec.name.startswith(APISERVER):
            return None
        path = self._write_kubeconfig(f"bridge-{spec.name}", spec.name, self._own(spec.name), BRIDGE)
        return ActorSpec(spec.name, bridges.FACTORY, {"kubeconfig": str(path), "shares": SHARED})

    async def started(self, spec: ActorSpec) -> None:
        if spec.name == STORE:
            self._transactions.start()
        elif spec.name.startswith(APISERVER):
            path = components.audit_of(self._folder, _file_of(spec.name))
            self._logs.append(AuditLog(path, spec.name, self._transactions.pods, self._hear))
            if self._reading is None:
                self._reading = asyncio.create_task(self._read(), name="logs of programs")

    async def stopping(self, spec: ActorSpec) -> None:
        if spec.name in self._schedulers:
            await count(*self._schedulers[spec.name])

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        await self._transactions.stop()
        for log in self._logs:
            log.read(_ALL)

    async def _read(self) -> None:
        while True:
            await asyncio.sleep(_READ_EVERY_S)
            until_ns = wall_clocks.wall_ns() - HOLD_NS
            for log in self._logs:
                log.read(until_ns)

    def _hear_transaction(self, unix_ns: int, event: Event) -> None:
        self._hear(unix_ns, f"{APISERVER}0", event)

    # Addresses and credentials

    async def _address(self, caller: str, called: str, target: str) -> str:
        return await self._link(caller, called, target) if self._settings.is_cut else target

    def _own(self, server: str) -> str:
        return f"{components.LOOPBACK}:{self._ports[server]}"

    async def _kubeconfig(self, name: str, servers: str | Sequence[str]) -> Path:
        """A real component has one API server: the first that it would try."""
        server = servers if isinstance(servers, str) else servers[0]
        target = await self._address(name, server, self._own(server))
        return self._write_kubeconfig(name, server, target, name)

    def _write_kubeconfig(self, name: str, server: str, target: str, user: str) -> Path:
        authority = components.authority_of(self._folder, _file_of(server))
        path = self._folder / f"{_file_of(name)}.kubeconfig"
        return components.kubeconfig(path, f"https://{target}", authority, self._tokens[user])

    def _token_file(self) -> Path:
        """Static tokens: the name of an actor stands in the place of the uid, so that the audit log has it."""
        path = self._folder / "tokens.csv"
        if not path.exists():
            path.touch(mode=0o600)
            rows = [
                f'{token},{identities.of_actor(name).name},{name},"{identities.MASTERS}"'
                for name, token in self._tokens.items()
            ]
            path.write_text("\n".join(rows) + "\n")
        return path


async def count(log: SchedulerLog, port: int) -> None:
    """Ask a kube-scheduler for its counts, if it answers."""
    asked_ns = wall_clocks.wall_ns()
    if (text := await components.metrics(port)) is not None:
        log.counted(asked_ns, wall_clocks.wall_ns(), Counts.read(text))


def _file_of(actor: str) -> str:
    """What the names of an actor's files begin with."""
    return actor.replace("/", "-")


def _with_names(config: Mapping[str, object], name: str) -> Mapping[str, object]:
    """A profile without a name serves the pods of the scheduler's."""
    profiles = config.get("profiles") or [{}]
    assert isinstance(profiles, Sequence)
    return {**config, "profiles": [{"schedulerName": name, **profile} for profile in profiles]}
