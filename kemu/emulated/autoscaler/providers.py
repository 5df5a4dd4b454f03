"""The provider of machines as the autoscaler sees it: node groups, read once for each iteration.

Mirrors the part of ``cloudprovider.CloudProvider`` and ``NodeGroup`` that the autoscaler uses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import grpc

from kemu.emulated.autoscaler import clouds
from kemu.emulated.client import streams
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.messages.v1 import cloud_pb2, cloud_pb2_grpc
from kemu.runtime.env import Env

Tell = Callable[[str, str, str], None]
"""Type, reason and message of an event about the autoscaler itself."""


class ProviderError(Exception):
    """The provider refuses."""


class NodeGroup:
    """One group. ``target_size`` and ``instances`` are as of the last :meth:`Provider.refresh`, plus own changes."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.name: str = data["name"]
        self.min_size: int = data["min"]
        self.max_size: int = data["max"]
        self.price: float = data["price"]
        """Per node and hour."""
        self.template = core_v1_pb2.Node.FromString(data["template"])
        self.slices = tuple(resource_v1_pb2.ResourceSlice.FromString(one) for one in data.get("slices", ()))
        """Of the devices of a node, as its drivers publish them."""
        self.target_size = 0
        self.instances: dict[str, cloud_pb2.Instance] = {}
        """By the name of the node."""


R = TypeVar("R")


class Provider:
    """All groups, in the order of the scenario."""

    def __init__(self, env: Env, groups: Sequence[Mapping[str, Any]]) -> None:
        self._env = env
        self._stub: Any = cloud_pb2_grpc.CloudStub(env.dial(clouds.NAME))  # type: ignore[no-untyped-call]
        self.groups = {group["name"]: NodeGroup(group) for group in groups}
        self._group_of: dict[str, NodeGroup] = {}

    async def refresh(self) -> None:
        """Ask for sizes and instances."""
        described = await self._call(lambda: self._stub.Describe(cloud_pb2.DescribeRequest()))
        self._group_of = {}
        for found in described.groups:
            group = self.groups[found.name]
            group.target_size = found.target_size
            group.instances = {instance.node: instance for instance in found.instances}
            self._group_of.update(dict.fromkeys(group.instances, group))

    def group_of(self, node: str) -> NodeGroup | None:
        """Group of the machine behind a node; None: it is not scaled."""
        return self._group_of.get(node)

    def has_instance(self, node: str) -> bool:
        """Whether the provider still counts the machine of a node; of others than its own nothing is known."""
        group = self._group_of.get(node)
        return group is None or group.instances[node].state != cloud_pb2.Instance.DELETING

    async def increase(self, group: NodeGroup, by: int) -> None:
        """Raises ProviderError."""
        request = cloud_pb2.ResizeRequest(group=group.name, by=by)
        self._check(await self._call(lambda: self._stub.Increase(request)))
        group.target_size += by

    async def decrease(self, group: NodeGroup, by: int) -> None:
        """Give up instances that do not exist yet. Raises ProviderError."""
        request = cloud_pb2.ResizeRequest(group=group.name, by=by)
        self._check(await self._call(lambda: self._stub.Decrease(request)))
        group.target_size -= by

    async def delete_nodes(self, group: NodeGroup, nodes: Iterable[str]) -> None:
        """Raises ProviderError."""
        names = list(nodes)
        request = cloud_pb2.DeleteNodesRequest(group=group.name, nodes=names)
        self._check(await self._call(lambda: self._stub.DeleteNodes(request)))
        group.target_size -= len(names)

    async def _call(self, call: Callable[[], Awaitable[R]]) -> R:
        backoff = streams.Backoff(self._env)
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError:
                await self._env.clock.pause(backoff.next_s())

    @staticmethod
    def _check(response: cloud_pb2.ResizeResponse) -> None:
        if response.refused:
            raise ProviderError(response.refused)
