"""Bugs in the runtime: network, disks, crashes, timers."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from kemu.runtime.rpc import networks
from kemu.runtime.sim import crashes, disks, wires
from kemu.runtime.sim.owners import Condition
from tests.mutants.planting import mutant

RACE = "races/two-replicas-same-pods timing=realistic"
STORE = "chaos/store-crash timing=realistic"


@mutant("runtime", "messages-of-a-stream-overtake-each-other", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    carry = wires.SimWire._carry

    def unordered(self: Any, end: Any, deliver: Any, payload: Any) -> None:
        if not end.is_client and end.method.endswith("/Watch"):
            end.last_ns = 0
        carry(self, end, deliver, payload)

    patch.setattr(wires.SimWire, "_carry", unordered)


@mutant("runtime", "a-message-of-a-stream-is-lost", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    carry = wires.SimWire._carry
    count = itertools.count()

    def lossy(self: Any, end: Any, deliver: Any, payload: Any) -> None:
        is_watch = not end.is_client and end.method.endswith("/Watch") and isinstance(payload, bytes)
        if not (is_watch and next(count) % 50 == 49):
            carry(self, end, deliver, payload)

    patch.setattr(wires.SimWire, "_carry", lossy)


@mutant("runtime", "a-message-of-a-stream-comes-twice", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    carry = wires.SimWire._carry
    count = itertools.count()

    def twice(self: Any, end: Any, deliver: Any, payload: Any) -> None:
        carry(self, end, deliver, payload)
        if (
            not end.is_client
            and end.method.endswith("/Watch")
            and isinstance(payload, bytes)
            and next(count) % 50 == 49
        ):
            carry(self, end, deliver, payload)

    patch.setattr(wires.SimWire, "_carry", twice)


@mutant("runtime", "fsync-does-nothing", STORE)
def _(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: disks.MemoryDisk, name: str) -> None:
        return None

    patch.setattr(disks.MemoryDisk, "fsync", lambda self, name: None)
    patch.setattr(disks.MemoryDisk, "sync", nothing)


@mutant("runtime", "a-crash-empties-the-disk", STORE)
def _(patch: pytest.MonkeyPatch) -> None:
    crash = disks.MemoryDisk.crash

    def blank(self: disks.MemoryDisk, stream: random.Random) -> disks.MemoryDisk:
        crash(self, stream)
        return disks.MemoryDisk()

    patch.setattr(disks.MemoryDisk, "crash", blank)


@mutant("runtime", "a-crashed-actor-goes-on", "chaos/scheduler-crash timing=realistic", STORE)
def _(patch: pytest.MonkeyPatch) -> None:
    def half(loop: Any, network: Any, owner: Any, peer: Any, disk: Any, stream: random.Random) -> Any:
        return disk.crash(stream)

    patch.setattr(crashes, "crash", half)


@mutant("runtime", "a-partition-lets-everything-through", "chaos/kubelet-partition")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(networks.Network, "_cuts", lambda self, link: (False, False))


@mutant(
    "runtime",
    "code-of-a-crashed-actor-runs-again",
    "chaos/machine-crash",
    survives="no verdict is reached: the simulation ends with an error when a task of a dead actor runs",
)
def _(patch: pytest.MonkeyPatch) -> None:
    crash = crashes.crash

    def undead(loop: Any, network: Any, owner: Any, *others: Any) -> Any:
        survivor = crash(loop, network, owner, *others)
        owner.condition = Condition.RUNNING
        return survivor

    patch.setattr(crashes, "crash", undead)
