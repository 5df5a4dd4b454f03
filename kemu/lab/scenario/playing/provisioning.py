"""The owner of the machines carries out what the provider of an autoscaled cluster orders.

Role: between the actor ``cloud`` (:mod:`kemu.emulated.autoscaler.clouds`) and
:mod:`kemu.lab.scenario.playing.operators`, on the driver's side of the runtime.
"""

from __future__ import annotations

from typing import Any

import grpc

from kemu.emulated.autoscaler import clouds
from kemu.lab.scenario.loading import node_groups
from kemu.lab.scenario.playing.operators import OPERATOR, Operator
from kemu.lab.scenario.scenarios import Scenario
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import cloud_pb2, cloud_pb2_grpc
from kemu.runtime.runtimes import Runtime


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
                node.message.spec.taints.append(core_v1_pb2.Taint(key=clouds.STARTUP_TAINT, effect="NoSchedule"))
            self._starting[order.node] = self._env.spawn(self._operator.add([node]), f"start {order.node}")
            return
        if (starting := self._starting.pop(order.node, None)) is not None:
            await starting
        if order.what == cloud_pb2.Order.REMOVE:
            await self._operator.remove(order.node)
        else:
            await self._operator.untaint(order.node, clouds.STARTUP_TAINT)
