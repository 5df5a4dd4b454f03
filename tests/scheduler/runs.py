"""A whole cluster in virtual time: store, API server, kubelets, schedulers; and a user who creates pods."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from kemu.emulated.client import clients
from kemu.messages.k8s import core_v1_pb2, scheduling_v1_pb2
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder

Main = Callable[["Run"], Coroutine[Any, Any, None]]


class Run:
    def __init__(self, seed: int = 1) -> None:
        self.recorder = Recorder()
        self.runtime = SimRuntime(seed, self.recorder)
        self.clock = self.runtime.clock
        self.client = clients.Client(self.runtime.env("user"))
        self._classes: list[str] = []

    def play(
        self,
        main: Main,
        nodes: Sequence[core_v1_pb2.Node],
        schedulers: Sequence[Mapping[str, Any]] = ({},),
        running: Sequence[core_v1_pb2.Pod] = (),
        others: Sequence[ActorSpec] = (),
        **kubelet: Any,
    ) -> None:
        """``schedulers``: actor configs, each with an optional ``replica``; ``kubelet``: config of all kubelets."""

        async def play() -> None:
            await self.runtime.launch([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "none"})])
            await self.runtime.launch([ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer")])
            for pod in running:
                created = await self._create(pod)
                created.status.phase = "Running"
                created.status.startTime.seconds = self.clock.epoch_unix_s
                await self.client.update_status(created)
            await self.runtime.launch([self._kubelet(node, kubelet) for node in nodes])
            await self.runtime.launch([*(self._scheduler(config) for config in schedulers), *others])
            await self.runtime.begin()
            await main(self)

        self.runtime.run(play())

    @staticmethod
    def _kubelet(node: core_v1_pb2.Node, config: Mapping[str, Any]) -> ActorSpec:
        data = {"node": node.SerializeToString(deterministic=True), "apiserver": "apiserver/0", **config}
        return ActorSpec(f"kubelet/{node.metadata.name}", "kemu.emulated.kubelet.kubelet:Kubelet", data)

    @staticmethod
    def _scheduler(config: Mapping[str, Any]) -> ActorSpec:
        full = {"name": "default-scheduler", "replica": 0, "apiserver": "apiserver/0", **config}
        name = f"scheduler/{full['name']}/{full['replica']}"
        return ActorSpec(name, "kemu.emulated.scheduler.scheduler:Scheduler", full)

    async def create(self, *pods: core_v1_pb2.Pod) -> None:
        for pod in pods:
            await self._create(pod)

    async def _create(self, pod: core_v1_pb2.Pod) -> core_v1_pb2.Pod:
        """As a user would: the priority comes from a class, the UID from the API server."""
        pod.metadata.ClearField("uid")
        if pod.spec.priority:
            name = f"priority-{pod.spec.priority}"
            if name not in self._classes:
                self._classes.append(name)
                await self.client.create(
                    scheduling_v1_pb2.PriorityClass(metadata={"name": name}, value=pod.spec.priority)
                )
            pod.spec.priorityClassName = name
        pod.spec.ClearField("priority")
        return await self.client.create(pod)

    async def get(self, name: str) -> core_v1_pb2.Pod:
        found: core_v1_pb2.Pod = await self.client.get("pods", name, "default")
        return found

    async def at(self, seconds: float) -> None:
        await self.clock.sleep_until_ns(round(seconds * SECOND_NS))

    def told(self, kind: str, name: str = "") -> list[dict[str, Any]]:
        """Events of a kind about a pod, or about all, with their times: ``at`` in seconds and ``actor``."""
        return [
            {"at": ns / SECOND_NS, "actor": actor, **data}
            for ns, actor, what, data in self.recorder.events
            if what == kind and name in ("", data["pod"].partition("/")[2])
        ]

    def bound(self) -> dict[str, str]:
        """Pod → node, of all successful bindings."""
        return {one["pod"].partition("/")[2]: one["node"] for one in self.told("sched.bind") if one["ok"]}
