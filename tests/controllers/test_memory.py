"""What controllers, client and API server keep after everything has come and gone: nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sized
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.apiserver.server import ApiServer
from kemu.emulated.client import clients
from kemu.emulated.controllers import disruption, taint_timers
from kemu.emulated.controllers.workloads import base, replica_sets
from kemu.emulated.controllers.workloads.daemon import daemon_sets
from kemu.emulated.controllers.workloads.stateful import stateful_sets
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim
from tests.apiserver.apiserver_cluster import budget, node, pod

MADE: dict[str, Any] = {}
"""The actors of the run, by name."""
CONTROLLERS = {
    "replicaset": replica_sets.ReplicaSetController,
    "statefulset": stateful_sets.StatefulSetController,
    "daemonset": daemon_sets.DaemonSetController,
    "disruption": disruption.DisruptionController,
}


def make(env: Env, config: dict[str, Any]) -> Any:
    """Factory of a controller that this module can look into."""
    made = MADE[config["name"]] = CONTROLLERS[config["name"]](env, config)
    return made


def sizes(thing: Any, path: str, seen: dict[int, None]) -> Iterator[tuple[str, int]]:
    """The collections of an actor's own, by path; of those within informers and queues, too."""
    if id(thing) in seen:
        return
    seen[id(thing)] = None
    slots = [name for cls in type(thing).__mro__ for name in getattr(cls, "__slots__", ())]
    names = [*getattr(thing, "__dict__", ()), *slots]
    for name in names:
        value = getattr(thing, name, None)
        here = f"{path}.{name}"
        if isinstance(value, (dict, list, set)) or type(value).__name__ == "deque":
            assert isinstance(value, Sized)
            yield here, len(value)
        elif type(value).__module__.startswith(("kemu.emulated.controllers", "kemu.emulated.client.workqueues")):
            yield from sizes(value, here, seen)


def workload(kind: str, name: str, labels: dict[str, str]) -> Any:
    spec = {
        "replicas": 4,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x"}]}},
    }
    if kind == "DaemonSet":
        del spec["replicas"]
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    data = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    return convert.from_manifest(data)


async def churn(client: clients.Client, runtime: SimRuntime, kind: str, plural: str) -> None:
    """Owners, nodes, budgets and pods come and go; pods fail, are lost, and are set free."""
    for turn in range(12):
        names = [f"n{turn}-{number}" for number in range(3)]
        for name in names:
            await client.create(node(name))
        labels = {"app": f"app{turn}"}
        await client.create(budget(f"budget{turn}", labels, minAvailable=1))
        await client.create(pod(f"stray{turn}", labels=labels))
        await client.create(workload(kind, f"set{turn}", labels))
        await runtime.clock.sleep(2)
        for number, one in enumerate((await client.list("pods")).items):
            metadata = one.metadata
            status = {"phase": "Failed"} if number % 2 else {"conditions": [{"type": "Ready", "status": "True"}]}
            await client.patch("pods", metadata.name, metadata.namespace, {"status": status}, "status")
        await runtime.clock.sleep(5)
        await client.delete("nodes", names[0])
        if turn % 2:
            patch = {"metadata": {"labels": {"app": "debugged"}}}
            freed = (await client.list("pods", label_selector=f"app=app{turn}")).items[0].metadata.name
            await client.patch("pods", freed, "default", patch)
        await runtime.clock.sleep(5)
        pods = (await client.list("pods", label_selector=f"app=app{turn}")).items
        await client.delete(plural, f"set{turn}", "default")
        if turn % 3:
            # Lost in the same moment.
            await asyncio.gather(
                *(client.delete("pods", one.metadata.name, "default") for one in pods), return_exceptions=True
            )
        await client.delete("poddisruptionbudgets", f"budget{turn}", "default")
        await runtime.clock.sleep(5)
        for one in (await client.list("pods")).items:
            await client.delete("pods", one.metadata.name, one.metadata.namespace, 0)
        for name in names[1:]:
            await client.delete("nodes", name)
    await runtime.clock.sleep(2 * base.expectations.TIMEOUT_S)


@pytest.mark.parametrize(
    ("kind", "plural"), [("ReplicaSet", "replicasets"), ("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets")]
)
def test_controllers_keep_nothing_of_what_is_gone(kind: str, plural: str) -> None:
    names = [kind.lower(), "disruption"]
    specs = [
        ActorSpec("store", "kemu.emulated.store.server:Store", {}),
        ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", {}),
        *(ActorSpec(f"controller/{name}", f"{__name__}:make", {"name": name}) for name in names),
    ]

    async def main(runtime: SimRuntime) -> None:
        await churn(clients.Client(runtime.env("user")), runtime, kind, plural)

    sim(main, 1, specs)
    for name in names:
        left = {path: size for path, size in sizes(MADE[name], name, {}) if size}
        # One worker waits at each end of a queue; of each informer it is known how far it has read.
        constant = ("._getters", "._owners", ".read", "._read")
        allowed = {path: size for path, size in left.items() if path.endswith(constant)}
        assert {path: size for path, size in left.items() if path not in allowed} == {}
        assert sum(allowed.values()) <= 14


def tainted(name: str) -> core_v1_pb2.Taint:
    return core_v1_pb2.Taint(key=name, effect="NoExecute")


def test_taint_timers_keep_nothing_of_what_is_gone() -> None:
    timers = taint_timers.TaintEviction()
    year_s = 365 * 24 * 3600
    toleration = {"key": "lost", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": year_s}
    for turn in range(500):
        name = f"n{turn}"
        found = pod(f"p{turn}", nodeName=name, tolerations=[toleration])
        timers.set_node(name, [tainted("lost")], turn)
        timers.set_pod(f"default/p{turn}", found, turn)
        assert timers.next_ns() == turn + year_s * 10**9
        timers.forget_pod(f"default/p{turn}")
        timers.forget_node(name)
    left = {path: size for path, size in sizes(timers, "timers", {}) if size}
    assert not [path for path in left if not path.endswith("._agenda")]
    assert left.get("timers._agenda", 0) <= 2 * taint_timers._FEW


def test_reads_that_wait_in_vain_leave_nothing_in_the_watch_cache() -> None:
    """While the store is away."""

    async def main(runtime: SimRuntime) -> None:
        client = clients.Client(runtime.env("user"))
        await client.create(pod("a"))
        await runtime.partition("p", ["apiserver/0"], ["store"])
        reads = [client.get("pods", "a", "default", resource_version="1000000") for _ in range(20)]
        answers = await asyncio.gather(*reads, return_exceptions=True)
        assert {type(answer) for answer in answers} == {errors.ServerTimeout}
        (server,) = SERVERS
        assert len(server.cache._waiting) == 0

    SERVERS.clear()
    sim(
        main,
        1,
        [ActorSpec("store", "kemu.emulated.store.server:Store", {}), ActorSpec("apiserver/0", f"{__name__}:serve", {})],
    )


SERVERS: list[Any] = []


def serve(env: Env, config: dict[str, Any]) -> Any:
    SERVERS.append(ApiServer(env, config))
    return SERVERS[-1]
