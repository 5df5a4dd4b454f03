"""The operator of the machines: carries out the events of a scenario that add, remove, shut down and start nodes.

Role: beside the runner, on the driver's side of the runtime; everything else that a scenario does is the user's
business (:mod:`kemu.lab.scenario.playing.user`). What that means for a machine is in
:mod:`kemu.lab.scenario.playing.machines`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import grpc

from kemu.emulated.autoscaler import clouds
from kemu.emulated.client import retries
from kemu.emulated.client.clients import Client
from kemu.emulated.objects import meta
from kemu.errors import Conflict, NotFound
from kemu.lab.scenario.format.clusters import Node
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.loading import node_groups
from kemu.lab.scenario.playing import plans
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.playing.machines import PREFIX, Machines
from kemu.lab.scenario.scenarios import Scenario
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import cloud_pb2, cloud_pb2_grpc
from kemu.runtime.runlog.events import UserRefused
from kemu.runtime.runtimes import Runtime

OPERATOR = "operator"
"""The name under which it stands in the run log."""


class Operator:
    """``roster``: the names of all actors, in the order of their launch; kept here as nodes come and go."""

    def __init__(self, runtime: Runtime, scenario: Scenario, roster: list[str], beats: Heartbeats) -> None:
        self._runtime = runtime
        self._scenario = scenario
        self._roster = roster
        self._beats = beats
        self._env = runtime.env(OPERATOR)
        self._client = Client(self._env, plans.apiservers_of(scenario, 0))
        self.machines = Machines(runtime, self._env, scenario.seed)
        for spec in plans.kubelets(scenario, beats):
            self.machines.know(spec)

    async def carry_out(self, event: Event) -> None:
        await self._env.clock.sleep_until_ns(event.at_ns)
        if event.what == "addNode":
            await self._add(event)
        elif event.what == "removeNode":
            await self._remove(event)
        else:
            switch = self.machines.shut_down if event.what == "shutdownNode" else self.machines.switch_on
            if not await switch(event.target.name):
                self._refuse(event, {"reason": "NotFound" if self._is_missing(event.target.name) else "Conflict"})

    async def _add(self, event: Event) -> None:
        known = await self.add(event.nodes)
        if known:
            self._refuse(event, {"reason": "AlreadyExists", "names": known})

    async def add(self, nodes: Sequence[Node]) -> list[str]:
        """Machines that come up. Returns the names of those that are there already: then none comes."""
        first = len(self._roster)
        specs = [plans.kubelet(self._scenario, node, first + index, self._beats) for index, node in enumerate(nodes)]
        known = [spec.name for spec in specs if spec.name in self._roster]
        if not known:
            self._roster.extend(spec.name for spec in specs)
            await self._runtime.launch([self.machines.install(spec) for spec in specs])
        return known

    async def _remove(self, event: Event) -> None:
        if not await self.remove(event.target.name):
            self._refuse(event, {"reason": "NotFound"})

    async def remove(self, node: str) -> bool:
        """A machine goes, and its Node with it. False: there was no Node."""
        name = PREFIX + node
        if name in self._roster:
            self._roster.remove(name)
            self.machines.remove(node)
            await self._runtime.stop(name)
        try:
            await retries.patiently(self._env, lambda: self._client.delete("nodes", node))
        except NotFound:
            return False
        return True

    async def untaint(self, node: str, key: str) -> None:
        """Take a taint off a node, if it is there."""
        while True:
            try:
                found = await retries.patiently(self._env, lambda: self._client.get("nodes", node))
                kept = [taint for taint in found.spec.taints if taint.key != key]
                if len(kept) == len(found.spec.taints):
                    return
                changed = meta.copied(found)
                del changed.spec.taints[:]
                changed.spec.taints.extend(kept)
                await retries.patiently(self._env, functools.partial(self._client.update, changed))
            except Conflict:
                continue
            except NotFound:
                pass
            return

    def _is_missing(self, node: str) -> bool:
        return PREFIX + node not in self._roster

    def _refuse(self, event: Event, why: Mapping[str, Any]) -> None:
        self._env.log(
            UserRefused(
                index=event.index,
                what=event.what,
                name=event.target.name,
                **why,
            )
        )


class Provisioner:
    """Starts and removes machines as they are ordered, side by side."""

    def __init__(self, runtime: Runtime, scenario: Scenario, operator: Operator) -> None:
        assert scenario.autoscaler is not None
        self._env = runtime.env(OPERATOR)
        self._operator = operator
        self._groups = {group.name: group for group in scenario.autoscaler.groups}
        self._starting: dict[str, Any] = {}
        """By node: the task that starts its machine."""

    async def run(self) -> None:
        stub: Any = cloud_pb2_grpc.CloudStub(self._env.dial(clouds.NAME))  # type: ignore[no-untyped-call]
        try:
            async for order in stub.Orders(cloud_pb2.OrdersRequest()):
                self._env.spawn(self._carry_out(order), f"order for {order.node}")
        except grpc.aio.AioRpcError:
            return  # the run is over

    async def _carry_out(self, order: cloud_pb2.Order) -> None:
        if order.what == cloud_pb2.Order.START:
            group = self._groups[order.group]
            node = node_groups.member(group, order.node)
            if group.settings.startup:
                message = node.message
                message.spec.taints.append(core_v1_pb2.Taint(key=clouds.STARTUP_TAINT, effect="NoSchedule"))
                node = dataclasses.replace(node, data=message.SerializeToString(deterministic=True))
            self._starting[order.node] = self._env.spawn(self._operator.add([node]), f"start {order.node}")
            return
        if (starting := self._starting.pop(order.node, None)) is not None:
            await starting
        if order.what == cloud_pb2.Order.REMOVE:
            await self._operator.remove(order.node)
        else:
            await self._operator.untaint(order.node, clouds.STARTUP_TAINT)
