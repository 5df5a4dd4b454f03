"""kemu's scheduler as a process beside a real cluster: what ``kemu scheduler`` runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.emulated.bridge import connections, hosting
from kemu.emulated.client import elections
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.plugins import in_tree
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


def run(cluster: Mapping[str, Any], config: Mapping[str, Any], *, out: Path | None = None, quiet: bool = False) -> int:
    """Until SIGINT or SIGTERM. ``cluster``: the config of :mod:`kemu.emulated.bridge.apiservers`; ``config``: the
    scheduler's.

    Returns the exit code. Raises KemuError, and ActorFailed where a plugin raised.
    """
    _check(config)
    with contextlib.ExitStack() as stack:
        writer = None
        if out is not None:
            writer = hosting.writer(out)
            stack.callback(writer.close)
        told = Told(quiet=quiet, writer=writer)
        return asyncio.run(_run(cluster, config, told))


def _check(config: Mapping[str, Any]) -> None:
    """Mistakes are told before anything begins. Raises ConfigurationError."""
    found = configurations.configuration_of(config["config"], config["name"])
    handle = Handle(Cluster(), random.Random(0))
    for profile in found.profiles:
        Profile(profile, handle, in_tree.REGISTRY)


async def _run(cluster: Mapping[str, Any], config: Mapping[str, Any], told: Told) -> int:
    connection = connections.Connection(connections.Settings(**cluster))
    try:
        await connection.open()
    finally:
        await connection.close()
    process = hosting.Process(cluster, told.log)
    # Replicas of one name are told apart by where they run, as the identities of client-go are.
    replica = f"{socket.gethostname()}-{os.getpid()}"
    name = f"scheduler/{config['name']}/{replica}"
    spec = ActorSpec(name, FACTORY, {**config, "replica": replica, "apiserver": hosting.SERVER})
    try:
        await process.start([spec])
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
