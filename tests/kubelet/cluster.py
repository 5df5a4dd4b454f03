"""A small cluster in virtual time: store, API server, one kubelet for each node, and a user who binds pods by hand."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.lab.checks import registry
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import ActorSpec
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder

STORE = "kemu.emulated.store.server:Store"
APISERVER = "kemu.emulated.apiserver.server:ApiServer"
KUBELET = "kemu.emulated.kubelet.kubelet:Kubelet"

Main = Callable[["Cluster"], Coroutine[Any, Any, Any]]


def node(name: str = "n1", labels: Mapping[str, str] | None = None, **allocatable: str) -> core_v1_pb2.Node:
    found = core_v1_pb2.Node()
    found.metadata.name = name
    for key, value in sorted((labels or {}).items()):
        found.metadata.labels[key] = value
    for resource, amount in {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}.items():
        found.status.allocatable[resource].string = amount
    return found


def pod(
    name: str,
    cpu: str = "1",
    *,
    on: str = "n1",
    grace_s: int = 30,
    restart: str = "Always",
    labels: Mapping[str, str] | None = None,
    **life: float,
) -> core_v1_pb2.Pod:
    """``life``: ``start``, ``run``, ``shutdown`` (seconds) and ``exit_code``, as annotations."""
    found = core_v1_pb2.Pod()
    found.metadata.name = name
    found.metadata.namespace = "default"
    for key, value in sorted((labels or {}).items()):
        found.metadata.labels[key] = value
    names = {"start": "start-seconds", "run": "run-seconds", "shutdown": "shutdown-seconds", "exit_code": "exit-code"}
    for key, number in sorted(life.items()):
        found.metadata.annotations[f"kemu.dev/{names[key]}"] = str(number)
    spec = found.spec
    spec.nodeName = on
    spec.restartPolicy = restart
    spec.terminationGracePeriodSeconds = grace_s
    container = spec.containers.add(name="main", image="app")
    if cpu:
        container.resources.requests["cpu"].string = cpu
    return found


class Cluster:
    def __init__(self, seed: int = 1, network: Mapping[str, Any] | None = None) -> None:
        self.recorder = Recorder()
        self.runtime = SimRuntime(seed, self.recorder, network or {})
        self.clock = self.runtime.clock
        self.client = clients.Client(self.runtime.env("user"))

    def play(
        self,
        main: Main,
        nodes: Sequence[core_v1_pb2.Node] = (),
        *,
        before: Main | None = None,
        **config: Any,
    ) -> Any:
        """``before`` runs before the kubelets start, ``main`` when the clock has begun to run.

        ``config``: of all kubelets.
        """

        async def play() -> Any:
            await self.runtime.launch([ActorSpec("store", STORE, {"fsync": "always"})])
            await self.runtime.launch([ActorSpec("apiserver/0", APISERVER)])
            if before is not None:
                await before(self)
            await self.runtime.launch([self.kubelet(one, **config) for one in nodes or [node()]])
            await self.runtime.begin()
            return await main(self)

        outcome = self.runtime.run(play())
        _, results = registry.judge(Entry(*event) for event in self.recorder.events)
        assert not [one for one in results if one.asked and one.holds is False], results
        return outcome

    def kubelet(self, one: core_v1_pb2.Node, **config: Any) -> ActorSpec:
        data = {"node": one.SerializeToString(deterministic=True), "apiserver": "apiserver/0", **config}
        return ActorSpec(f"kubelet/{one.metadata.name}", KUBELET, data)

    async def create(self, *pods: core_v1_pb2.Pod) -> None:
        for one in pods:
            await self.client.create(one)

    async def run_before(self, one: core_v1_pb2.Pod) -> None:
        """Create a pod and say that it runs, as the user's set-up does."""
        created = await self.client.create(one)
        created.status.phase = "Running"
        created.status.startTime.seconds = self.clock.epoch_unix_s
        await self.client.update_status(created)

    async def pod(self, name: str) -> core_v1_pb2.Pod:
        """Raises NotFound."""
        return await self.client.get("pods", name, "default")

    async def get(self, name: str) -> core_v1_pb2.Pod | None:
        try:
            return await self.pod(name)
        except errors.NotFound:
            return None

    async def phase(self, name: str) -> str:
        """``gone`` when there is no such pod."""
        found = await self.get(name)
        return "gone" if found is None else found.status.phase

    async def at(self, seconds: float) -> None:
        """Wait until that time."""
        await self.clock.sleep_until_ns(int(seconds * 1e9))

    def told(self, *kinds: str) -> list[tuple[float, str, str]]:
        """What the kubelets said of pods: (tenths of seconds, event, pod), of these kinds or of all."""
        return [
            (round(ns / 1e9, 1), kind.removeprefix("kubelet."), data["pod"].removeprefix("default/"))
            for ns, _, kind, data in self.recorder.events
            if kind.startswith("kubelet.") and (not kinds or kind.removeprefix("kubelet.") in kinds)
        ]

    def data(self, kind: str, name: str = "") -> list[Mapping[str, Any]]:
        return [one for one in self.recorder.of(f"kubelet.{kind}") if not name or one["pod"] == f"default/{name}"]
