"""The actor ``cloud``: a provider of machines in groups, as cloud providers offer them to the cluster autoscaler.

A group has a target size. An instance that is asked for takes its provisioning time until its machine runs, and may
fail: the request is refused (``error``), the instance is reported as failed (``out-of-resources``), or its machine runs
and never registers (``never-registers``). Deleted instances run for the time of their removal; then machine and Node
go together, as with the node lifecycle controller of a cloud provider. What is to be done with machines goes to their
owner (:mod:`kemu.lab.scenario.playing.operators`) as a stream of orders.

    config = {"groups": [{"name": "pool", "initial": ["pool-1"], "price": 0.1, "provisioning": 60, "startup": 0,
                          "removal": 30, "failures": [{"kind": "error", "from_ns": 0, "until_ns": 10, "share": 1.0}]}]}

The provider does not crash: as with real ones, its state outlives its clients. The run log has the life of
every instance (``cloud.instance``), with its price per hour: that is the bill.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc

from kemu.messages.v1 import cloud_pb2, cloud_pb2_grpc
from kemu.runtime import distributions
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import InstanceChanged

NAME = "cloud"
"""Name of the actor."""
STARTUP_TAINT = "startup-taint.cluster-autoscaler.kubernetes.io/initializing"
"""A node with a startup time has it until its agents are done; the autoscaler takes such a node for unready."""

ERROR, OUT_OF_RESOURCES, NEVER_REGISTERS = "error", "out-of-resources", "never-registers"
FAILURES = (OUT_OF_RESOURCES, ERROR, NEVER_REGISTERS)

_CREATING, _RUNNING, _DELETING = (
    cloud_pb2.Instance.CREATING,
    cloud_pb2.Instance.RUNNING,
    cloud_pb2.Instance.DELETING,
)


def node_name(group: str, number: int) -> str:
    """Node name of the instance with that number, from 1; numbers are not used again."""
    return f"{group}-{number}"


class _Group:
    def __init__(self, data: Mapping[str, Any]) -> None:
        self.name: str = data["name"]
        self.price = float(data["price"])
        self.provisioning = distributions.parse(data["provisioning"])
        self.startup = distributions.parse(data["startup"])
        self.removal = distributions.parse(data["removal"])
        self.failures: list[Mapping[str, Any]] = list(data["failures"])
        self.instances = {name: cloud_pb2.Instance(node=name, state=_RUNNING) for name in data["initial"]}
        self.made = len(self.instances)

    def living(self) -> list[cloud_pb2.Instance]:
        """Those that count in the target size."""
        return [each for each in self.instances.values() if each.state != _DELETING]


class Cloud(cloud_pb2_grpc.CloudServicer):
    """Factory: ``kemu.emulated.autoscaler.clouds:Cloud``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self._env = env
        self._groups = {group["name"]: _Group(group) for group in config["groups"]}
        self._orders: asyncio.Queue[cloud_pb2.Order] = asyncio.Queue()
        env.serve(cloud_pb2_grpc.add_CloudServicer_to_server, self)

    async def run(self) -> None:
        self._env.ready()
        await self._env.clock.started()
        for group in self._groups.values():
            for node in group.instances:
                self._log(group, node, "running")
        await asyncio.Event().wait()

    # --- for the autoscaler ------------------------------------------------------------------------------------------

    async def Describe(
        self, request: cloud_pb2.DescribeRequest, context: grpc.aio.ServicerContext
    ) -> cloud_pb2.DescribeResponse:
        groups = [
            cloud_pb2.NodeGroup(
                name=group.name, target_size=len(group.living()), instances=list(group.instances.values())
            )
            for group in self._groups.values()
        ]
        return cloud_pb2.DescribeResponse(groups=groups)

    async def Increase(
        self, request: cloud_pb2.ResizeRequest, context: grpc.aio.ServicerContext
    ) -> cloud_pb2.ResizeResponse:
        group = self._groups[request.group]
        if self._fails(group, ERROR):
            self._log(group, "", "refused")
            return cloud_pb2.ResizeResponse(refused=f"group {group.name}: the provider refuses to add machines")
        for _ in range(request.by):
            group.made += 1
            instance = cloud_pb2.Instance(node=node_name(group.name, group.made), state=_CREATING)
            group.instances[instance.node] = instance
            self._log(group, instance.node, "requested")
            if self._fails(group, OUT_OF_RESOURCES):
                instance.error_class, instance.error_code = "OutOfResource", "STOCKOUT"
                instance.error_message = f"there are no more machines for group {group.name}"
                self._log(group, instance.node, "failed")
                continue
            never = self._fails(group, NEVER_REGISTERS)
            self._env.spawn(self._provision(group, instance, never), f"provision {instance.node}")
        return cloud_pb2.ResizeResponse()

    async def Decrease(self, request: cloud_pb2.ResizeRequest, context: grpc.aio.ServicerContext) -> Any:
        group = self._groups[request.group]
        coming = [each for each in group.living() if each.state == _CREATING]
        if len(coming) < request.by:
            there = len(group.living()) - len(coming)
            size = len(group.living())
            return cloud_pb2.ResizeResponse(
                refused=f"attempt to delete existing nodes, targetSize: {size} delta: -{request.by} "
                f"existingNodes: {there}"
            )
        for instance in coming[len(coming) - request.by :]:
            self._forget(group, instance.node)
        return cloud_pb2.ResizeResponse()

    async def DeleteNodes(
        self, request: cloud_pb2.DeleteNodesRequest, context: grpc.aio.ServicerContext
    ) -> cloud_pb2.ResizeResponse:
        group = self._groups[request.group]
        for node in request.nodes:
            instance = group.instances.get(node)
            if instance is None or instance.state == _DELETING:
                continue
            if instance.state == _CREATING:
                self._forget(group, node)
                continue
            instance.state = _DELETING
            self._log(group, node, "deleting")
            self._env.spawn(self._remove(group, node), f"remove {node}")
        return cloud_pb2.ResizeResponse()

    # --- for the owner of the machines -------------------------------------------------------------------------------

    async def Orders(
        self, request: cloud_pb2.OrdersRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[cloud_pb2.Order]:
        while True:
            yield await self._orders.get()

    # --- what takes time ---------------------------------------------------------------------------------------------

    async def _provision(self, group: _Group, instance: cloud_pb2.Instance, never: bool) -> None:
        clock = self._env.clock
        await clock.sleep(group.provisioning.draw(self._env.random))
        if group.instances.get(instance.node) is not instance:
            return
        instance.state = _RUNNING
        self._log(group, instance.node, "running")
        if never:
            return
        self._order(cloud_pb2.Order.START, group, instance.node)
        startup_s = group.startup.draw(self._env.random)
        if startup_s:
            await clock.sleep(startup_s)
            self._order(cloud_pb2.Order.INITIALIZED, group, instance.node)

    async def _remove(self, group: _Group, node: str) -> None:
        await self._env.clock.sleep(group.removal.draw(self._env.random))
        self._order(cloud_pb2.Order.REMOVE, group, node)
        self._forget(group, node)

    def _order(self, what: Any, group: _Group, node: str) -> None:
        self._orders.put_nowait(cloud_pb2.Order(what=what, group=group.name, node=node))

    def _forget(self, group: _Group, node: str) -> None:
        del group.instances[node]
        self._log(group, node, "gone")

    def _fails(self, group: _Group, kind: str) -> bool:
        """Whether this failure comes now."""
        now_ns = self._env.clock.now_ns()
        for failure in group.failures:
            until_ns = failure["until_ns"]
            if failure["kind"] != kind or now_ns < failure["from_ns"] or (until_ns is not None and now_ns >= until_ns):
                continue
            if failure["share"] >= 1 or self._env.random.random() < failure["share"]:
                return True
        return False

    def _log(self, group: _Group, node: str, what: str) -> None:
        self._env.log(
            InstanceChanged(
                group=group.name,
                node=node,
                what=what,
                price=group.price,
            )
        )
