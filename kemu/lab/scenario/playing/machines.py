"""The machines of the nodes: they come and go, are shut down, crash and start again, each with its kubelet.

Role: beside :mod:`kemu.lab.scenario.playing.faults`, on the driver's side of the runtime, for the runner's events and
for chaos. A machine that goes off takes its containers along; its Node stays until it is deleted. When it comes
back its kubelet is told of the new boot (:mod:`kemu.emulated.kubelet.node.boots`). A kubelet that crashes alone leaves
its containers running.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import grpc

from kemu.emulated.kubelet.settings import kubelet_configurations, shutdown_groups
from kemu.messages.v1 import kubelet_pb2, kubelet_pb2_grpc
from kemu.runtime.env import SECOND_NS, ActorSpec, Env
from kemu.runtime.runlog.events import MachineOff, MachineOn
from kemu.runtime.runtimes import Runtime

SWITCHES_OFF_S = 1.0
"""From the kubelet's consent until the machine is off: its services stop."""
LEAST_OFF_NS = SECOND_NS
"""A machine is off for at least this long."""

PREFIX = "kubelet/"


class Machines:
    """``down``: the actors that are not running, kept by those that crash and start them."""

    def __init__(self, runtime: Runtime, env: Env, seed: int) -> None:
        self.down: dict[str, None] = {}
        self._runtime = runtime
        self._env = env
        self._seed = seed
        self._specs: dict[str, ActorSpec] = {}
        """By node."""
        self._off_ns: dict[str, int] = {}
        """Machines that are off, and since when."""
        self._boots: dict[str, int] = {}
        self._going: dict[str, None] = {}
        """Those that are being shut down."""

    # --- which there are ----------------------------------------------------------------------------------------------

    def know(self, spec: ActorSpec) -> None:
        """A machine that is there from the start, by its kubelet."""
        self._specs[spec.name.removeprefix(PREFIX)] = spec

    def install(self, spec: ActorSpec) -> ActorSpec:
        """A new machine. Its kubelet is to be launched as this says."""
        node = spec.name.removeprefix(PREFIX)
        self._specs[node] = spec
        return self._booted(node, is_new=True)

    def remove(self, node: str) -> None:
        """For good; another one may come under its name."""
        self._specs.pop(node, None)
        self._off_ns.pop(node, None)
        self.down.pop(PREFIX + node, None)

    def is_off(self, node: str) -> bool:
        return node in self._off_ns

    # --- on and off ---------------------------------------------------------------------------------------------------

    async def shut_down(self, node: str) -> bool:
        """Switch it off; if its kubelet is configured so, only when that has ended its pods. False: it is off, or is
        not there."""
        if node not in self._specs or node in self._off_ns or node in self._going:
            return False
        self._going[node] = None
        groups = kubelet_configurations.configuration(self._specs[node].config["kubelet"]).shutdown
        if groups and PREFIX + node not in self.down:
            await self._ask(node, shutdown_groups.requested_s(groups))
        self._going.pop(node, None)
        await self.switch_off(node, "shutdown")
        return True

    async def _ask(self, node: str, patience_s: int) -> None:
        """Tell the kubelet, and wait until it agrees. One that dies meanwhile has nothing to say any more."""
        stub: Any = kubelet_pb2_grpc.KubeletStub(self._env.dial(PREFIX + node))  # type: ignore[no-untyped-call]
        asked = self._env.spawn(_answered(stub), f"shutdown of {node}")
        clock = self._env.clock
        timer = clock.call_at_ns(clock.now_ns() + (patience_s + 1) * SECOND_NS, asked.cancel)
        await asyncio.wait([asked])
        timer.cancel()
        await clock.sleep(SWITCHES_OFF_S)

    async def switch_off(self, node: str, why: str) -> bool:
        """At once. ``why``: ``crash shutdown``. False: it is off, or is not there."""
        if node not in self._specs or node in self._off_ns:
            return False
        self._off_ns[node] = self._env.clock.now_ns()
        self.down[PREFIX + node] = None
        self._env.log(MachineOff(node=node, why=why))
        await self._runtime.crash(PREFIX + node)
        return True

    async def switch_on(self, node: str) -> bool:
        """It boots, and its kubelet starts. False: it is on, or is not there."""
        if node not in self._off_ns:
            return False
        await self._env.clock.sleep_until_ns(self._off_ns[node] + LEAST_OFF_NS)
        if self._off_ns.pop(node, None) is None:
            return False  # removed, or switched on by another event meanwhile
        self.down.pop(PREFIX + node, None)
        spec = self._booted(node, is_new=False)
        await self._runtime.restart(PREFIX + node, spec)
        return True

    def _booted(self, node: str, *, is_new: bool) -> ActorSpec:
        number = self._boots[node] = self._boots.get(node, 0) + 1
        boot: Mapping[str, Any] = {
            "id": boot_id(self._seed, node, number),
            "at_s": self._env.clock.now_ns() // SECOND_NS,
            "isNew": is_new,
        }
        self._env.log(MachineOn(node=node, boot=boot["id"]))
        spec = self._specs[node]
        return dataclasses.replace(spec, config={**spec.config, "boot": boot})


def boot_id(seed: int, node: str, number: int) -> str:
    """Looks like the random UUID that a kernel makes up; 0: the boot before the start of the run."""
    digest = hashlib.sha256(f"boot {seed} {node} {number}".encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], f"4{digest[13:16]}", f"8{digest[17:20]}", digest[20:32]))


async def _answered(stub: Any) -> None:
    try:
        await stub.Shutdown(kubelet_pb2.ShutdownRequest())
    except grpc.aio.AioRpcError:
        return
