"""Draining a node as kubectl does: which pods go, what keeps a drain from beginning, how it waits."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, cast

from kemu.emulated.client import drains
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.runtime.env import SECOND_NS
from tests.apiserver.apiserver_cluster import Cluster, budget, node, pod, run

OWNED = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
OF_AGENT = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
EMPTY = [{"name": "tmp", "emptyDir": {}}]


def owned(name: str, **more: Any) -> Any:
    metadata = {"ownerReferences": [OWNED], **more.pop("metadata", {})}
    return pod(name, metadata=metadata, **{"nodeName": "n1", **more})


async def insist(request: Callable[[], Awaitable[Any]]) -> Any:
    return await request()


class Drain:
    """One drain of n1 and what it told."""

    def __init__(self, cluster: Cluster, **options: Any) -> None:
        self.cluster = cluster
        self.options = dataclasses.replace(drains.Options("n1"), **options)
        self.told: list[tuple[float, str, str, str]] = []
        self.ended: dict[str, tuple[float, str]] = {}
        """By node: when, and why it was refused, if it was."""

    def tell(self, node: str, step: str, pod: str = "", why: str = "") -> None:
        if step in ("drained", "refused"):
            self.ended[node] = (self.cluster.clock.now_ns() / 1e9, why)
        self.told.append((self.cluster.clock.now_ns() / 1e9, step, pod.removeprefix("default/"), why))

    async def run(self) -> Drain:
        env = self.cluster.runtime.env("user")
        await drains.drain(env, self.cluster.client, self.options, insist, self.tell)
        return self

    async def refusal(self) -> str:
        await self.run()
        assert self.told[-1][1] == "refused"
        return self.told[-1][3]

    def steps(self, step: str) -> list[str]:
        return [name for _, one, name, _ in self.told if one == step]


async def kubelet(cluster: Cluster) -> None:
    """Removes pods a second after they were told to go."""
    client = cluster.client_of(0, "remover")
    while True:
        for one in (await client.list("pods")).items:
            if one.metadata.HasField("deletionTimestamp"):
                await client.delete("pods", one.metadata.name, "default", 0)
        await cluster.clock.sleep(1)


async def world(cluster: Cluster, *objects: Any) -> None:
    await cluster.client.create(node("n1"))
    for one in objects:
        await cluster.client.create(one)
    cluster.runtime.env("remover").spawn(kubelet(cluster), "kubelet")


def agents() -> Any:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "x"}]}}
    data = {"metadata": {"name": "agent", "namespace": "default"}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return convert.from_json(apps_v1_pb2.DaemonSet, {**data, "spec": spec})


def test_owned_pods_go_and_the_node_is_cordoned() -> None:
    async def main(cluster: Cluster) -> None:
        await world(cluster, owned("a"), owned("b"), pod("elsewhere", nodeName="n2"))
        drain = await Drain(cluster).run()
        assert drain.steps("evicting") == ["a", "b"]
        assert sorted(drain.steps("gone")) == ["a", "b"]
        assert [one.metadata.name for one in (await cluster.client.list("pods")).items] == ["elsewhere"]
        assert (await cluster.client.get("nodes", "n1")).spec.unschedulable
        assert (await Drain(cluster).run()).told[0][1] == "already cordoned"

    run(main)


def test_what_keeps_a_drain_from_beginning() -> None:
    async def main(cluster: Cluster) -> None:
        agent = {"ownerReferences": [OF_AGENT]}
        await world(
            cluster,
            pod("alone", nodeName="n1"),
            owned("local", volumes=EMPTY),
            agents(),
            pod("agent-1", nodeName="n1", metadata=agent),
        )
        assert await Drain(cluster).refusal() == (
            "[cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/agent-1, cannot delete "
            "Pods that declare no controller (use --force to override): default/alone, cannot delete Pods with local "
            "storage (use --delete-emptydir-data to override): default/local]"
        )
        assert len((await cluster.client.list("pods")).items) == 3, "nobody was evicted"
        drain = Drain(cluster, force=True, delete_empty_dir_data=True, ignore_daemon_sets=True)
        await drain.run()
        assert [why for _, step, _, why in drain.told if step == "warns"] == [
            "ignoring DaemonSet-managed Pods: default/agent-1",
            "deleting Pods that declare no controller: default/alone",
        ]
        assert [one.metadata.name for one in (await cluster.client.list("pods")).items] == ["agent-1"]

    run(main)


def test_finished_pods_go_in_any_case_and_mirror_pods_never() -> None:
    async def main(cluster: Cluster) -> None:
        mirror = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
        await world(
            cluster, pod("done", nodeName="n1", volumes=EMPTY), owned("static", metadata={"annotations": mirror})
        )
        await cluster.client.patch("pods", "done", "default", {"status": {"phase": "Succeeded"}}, "status")
        await Drain(cluster).run()
        assert [one.metadata.name for one in (await cluster.client.list("pods")).items] == ["static"]

    run(main)


def test_a_pod_of_a_daemon_set_that_is_gone_needs_force() -> None:
    async def main(cluster: Cluster) -> None:
        await world(cluster, pod("agent-1", nodeName="n1", metadata={"ownerReferences": [OF_AGENT]}))
        missing = 'daemonsets.apps "agent" not found'
        assert await Drain(cluster, ignore_daemon_sets=True).refusal() == f"cannot delete {missing}: default/agent-1"
        assert (await Drain(cluster, force=True).run()).steps("gone") == ["agent-1"]

    run(main)


def test_a_budget_is_asked_every_five_seconds() -> None:
    async def main(cluster: Cluster) -> None:
        await world(cluster, owned("a", labels={"app": "x"}), budget("b", {"app": "x"}, minAvailable=1))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await cluster.client.patch("pods", "a", "default", {"status": ready}, "status")
        counts = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}
        await cluster.client.patch("poddisruptionbudgets", "b", "default", {"status": counts}, "status")
        drain = Drain(cluster, timeout_ns=12 * SECOND_NS)
        started = cluster.clock.now_ns() / 1e9
        assert await drain.refusal() == ('error when evicting pods/"a" -n "default": global timeout reached: 12s')
        waits = [round(time - started) for time, step, _, _ in drain.told if step == "waits"]
        assert waits == [0, 5, 10]
        assert (await Drain(cluster, disable_eviction=True).run()).steps("gone") == ["a"], "deleted, not evicted"

    run(main)


def test_who_does_not_terminate_in_time_is_told() -> None:
    async def main(cluster: Cluster) -> None:
        await world(cluster, owned("a", metadata={"finalizers": ["kemu.dev/stay"]}))
        assert await Drain(cluster, timeout_ns=90 * SECOND_NS).refusal() == (
            'error when waiting for pod "a" in namespace "default" to terminate: global timeout reached: 1m30s'
        )
        await Drain(cluster, skip_wait_for_delete_timeout_ns=5 * SECOND_NS).run()

    run(main)


def test_only_the_selected_pods_and_their_own_grace_period() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        await cluster.client.create(owned("a", labels={"app": "x"}))
        await cluster.client.create(owned("b"))
        drain = Drain(cluster, pod_selector="app=x", grace_period_seconds=7, timeout_ns=3 * SECOND_NS)
        assert "to terminate: global timeout reached: 3s" in await drain.refusal()
        pods = {one.metadata.name: one.metadata for one in (await cluster.client.list("pods")).items}
        assert pods["a"].deletionGracePeriodSeconds == 7
        assert not pods["b"].HasField("deletionTimestamp")

    run(main)


def test_several_nodes_are_cordoned_first_and_drained_so_many_at_a_time() -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.client
        for name in ("n4", "n3", "n2", "n1"):
            made = node(name)
            made.metadata.labels["zone"] = "b" if name == "n4" else "a"
            await client.create(made)
            await client.create(owned(f"on-{name}", nodeName=name))
        await client.create(pod("alone", nodeName="n2"))
        cluster.runtime.env("remover").spawn(kubelet(cluster), "kubelet")
        drain = await Drain(cluster, node=None, selector="zone=a", at_once=2).run()
        steps = [step for _, step, _, _ in drain.told]
        assert steps[:3] == ["cordoned"] * 3, "before anybody is evicted"
        nodes = cast(list[core_v1_pb2.Node], (await client.list("nodes")).items)
        assert [one.spec.unschedulable for one in nodes] == [True, True, True, False]
        assert drain.ended["n2"][1].endswith("(use --force to override): default/alone"), "which keeps nobody"
        assert drain.ended["n1"][1] == drain.ended["n3"][1] == ""
        assert drain.ended["n2"][0] < drain.ended["n1"][0] <= drain.ended["n3"][0]
        left = [one.metadata.name for one in (await client.list("pods")).items]
        assert left == ["alone", "on-n2", "on-n4"]

    run(main)


def test_one_after_the_other_as_kubectl() -> None:
    async def main(cluster: Cluster) -> None:
        for name in ("n1", "n2"):
            await cluster.client.create(node(name))
            await cluster.client.create(owned(f"on-{name}", nodeName=name))
        cluster.runtime.env("remover").spawn(kubelet(cluster), "kubelet")
        drain = await Drain(cluster, node=None, selector="").run()
        assert [name for _, step, name, _ in drain.told if step in ("evicting", "gone")] == [
            "on-n1", "on-n1", "on-n2", "on-n2",
        ]  # fmt: skip

    run(main)
