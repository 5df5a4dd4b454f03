"""kemu's scheduler as a process beside a real cluster: what ``kemu scheduler`` runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kemu.emulated.bridge import connections, hosting
from kemu.emulated.client import elections
from kemu.emulated.objects import resources
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.plugins import in_tree
from kemu.errors import KemuError
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.runlog import frames
from kemu.runtime.runlog.events import (
    ActorExited,
    BridgeOpened,
    BridgeTrouble,
    LeaseAcquired,
    LeaseObserved,
    PodAttempted,
    PodBound,
    PreemptionPlanned,
    handlers,
)

FACTORY = "kemu.emulated.scheduler.scheduler:Scheduler"
LOST = 1
"""The exit code of a leader that has lost its lease, as kube-scheduler's."""
_DEVICES = ("deviceclasses", "resourceslices", "resourceclaims")
_RETRY_S = 1.0


def run(cluster: Mapping[str, Any], config: Mapping[str, Any], *, out: Path | None = None, quiet: bool = False) -> int:
    """Until SIGINT or SIGTERM. ``cluster``: the config of :mod:`kemu.emulated.bridge.apiservers`; ``config``: the
    scheduler's, without ``devices``: whether there may be claims of them depends on what the cluster serves.

    Returns the exit code. Raises KemuError, and ActorFailed where a plugin raised.
    """
    groups = _check(config).groups
    with contextlib.ExitStack() as stack:
        writer = None
        if out is not None:
            writer = hosting.writer(out)
            stack.callback(writer.close)
        told = Told(quiet=quiet, writer=writer)
        return asyncio.run(_run(cluster, config, told, groups=bool(groups)))


def _check(config: Mapping[str, Any]) -> configurations.Configuration:
    """Mistakes are told before anything begins. Raises ConfigurationError."""
    found = configurations.configuration_of(config["config"], config["name"])
    handle = Handle(Cluster(), random.Random(0))
    for profile in found.profiles:
        Profile(profile, handle, in_tree.REGISTRY)
    return found


async def _serves(connection: connections.Connection, plurals: tuple[str, ...], say: Callable[[str], object]) -> bool:
    """Whether the cluster serves all these kinds, of one API group, in the version that kemu knows. Asks until it
    answers; ``say`` is told once why it does not."""
    version = resources.BY_PLURAL[plurals[0]].api_version
    last = ""
    while True:
        try:
            answer = await connection.read_json(f"/apis/{version}")
            # Too many requests, or a server that is not ready: not for good.
            why = f"it answers {answer.code}" if answer.code == 429 or answer.code >= 500 else ""
        except connections.Unreachable as error:
            why = str(error)
        if not why:
            found = json.loads(answer.body)["resources"] if answer.code == 200 else ()
            return {one["name"] for one in found}.issuperset(plurals)
        if why != last:
            say(f"the cluster cannot be read: {why}")
            last = why
        await asyncio.sleep(_RETRY_S)


async def _run(cluster: Mapping[str, Any], config: Mapping[str, Any], told: Told, *, groups: bool) -> int:
    connection = connections.Connection(connections.Settings(**cluster))
    try:
        await connection.open()
        devices = await _serves(connection, _DEVICES, told.say)
        if groups and not await _serves(connection, ("podgroups",), told.say):
            version = resources.BY_PLURAL["podgroups"].api_version
            raise KemuError(f"featureGates.GenericWorkload: {connection.server} serves no PodGroups of {version}")
    finally:
        await connection.close()
    process = hosting.Process(cluster, told.log)
    # Replicas of one name are told apart by where they run, as the identities of client-go are.
    replica = f"{socket.gethostname()}-{os.getpid()}"
    name = f"scheduler/{config['name']}/{replica}"
    spec = ActorSpec(name, FACTORY, {**config, "devices": devices, "replica": replica, "apiserver": hosting.SERVER})
    try:
        await process.start([spec])
        if not devices:
            version = resources.BY_PLURAL[_DEVICES[0]].api_version
            told.say(f"leaves pods with ResourceClaims waiting: the cluster does not serve {version}")
        told.say(f"schedules pods of {config['name']}; Ctrl-C ends it")
        await process.run()
    finally:
        await process.stop()
    told.end()
    return LOST if told.lost else 0


class Told:
    """Events of the process, for people and for the run log."""

    def __init__(self, *, quiet: bool, writer: frames.Writer | None) -> None:
        self._quiet = quiet
        self._writer = writer
        self._bound = self._failed = self._preempted = 0
        self.lost = False
        self._handlers = handlers.of(self)

    def log(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if self._writer is not None:
            self._writer.append(time_ns, actor, kind, data)
        show = self._handlers.get(kind)
        if show is not None:
            show(time_ns, data)

    def say(self, text: str) -> None:
        print(f"kemu scheduler: {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        self.say(f"{self._bound} bound, {self._failed} failed attempts, {self._preempted} preempted")

    def _line(self, time_ns: int, text: str) -> None:
        if not self._quiet:
            print(f"{time_ns / SECOND_NS:9.3f} s  {text}", flush=True)

    def _on_opened(self, time_ns: int, event: BridgeOpened) -> None:
        self.say(f"uses {event.server}")

    def _on_trouble(self, time_ns: int, event: BridgeTrouble) -> None:
        self.say(f"the cluster cannot be read: {event.message}")

    def _on_attempt(self, time_ns: int, event: PodAttempted) -> None:
        if event.result == "scheduled":
            self._line(time_ns, f"{event.pod} -> {event.node}")
        elif event.result != "skipped":
            self._failed += 1
            self._line(time_ns, f"{event.pod}: {event.message}")

    def _on_bind(self, time_ns: int, event: PodBound) -> None:
        if event.ok:
            self._bound += 1
        else:
            self._line(time_ns, f"{event.pod}: binding to {event.node} failed: {event.message}")

    def _on_preemption(self, time_ns: int, event: PreemptionPlanned) -> None:
        victims = ", ".join(str(one[0]) for one in event.victims)
        self._preempted += len(event.victims)
        self._line(time_ns, f"{event.pod} preempts on {event.node}: {victims}")

    def _on_won(self, time_ns: int, event: LeaseAcquired) -> None:
        self.say(f"leads: holds {event.lease} as {event.identity}")

    def _on_observed(self, time_ns: int, event: LeaseObserved) -> None:
        self.say(f"waits: {event.holder} leads")

    def _on_exited(self, time_ns: int, event: ActorExited) -> None:
        self.lost = event.why == elections.LOST
        if self.lost:
            self.say("ends: it has lost the lease")
