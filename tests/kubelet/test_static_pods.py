"""Pods that a kubelet runs from manifests of its own, and their mirrors."""

from __future__ import annotations

from typing import Any

from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod


def manifest(name: str = "proxy", cpu: str = "2", **fields: Any) -> bytes:
    found = pod(name, cpu, **fields)
    found.spec.ClearField("nodeName")
    found.spec.priorityClassName = "system-node-critical"
    return found.SerializeToString(deterministic=True)


async def mirror(cluster: Cluster, name: str = "proxy-n1") -> core_v1_pb2.Pod:
    return await cluster.pod(name)


def test_a_static_pod_runs_and_is_seen_by_its_mirror(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(1)
        found = await mirror(cluster)
        annotations = found.metadata.annotations
        assert found.status.phase == "Running"
        assert found.spec.nodeName == "n1"
        assert found.spec.priority == 2_000_001_000
        assert annotations["kubernetes.io/config.source"] == "file"
        assert len(annotations["kubernetes.io/config.hash"]) == 32
        assert annotations["kubernetes.io/config.mirror"] == annotations["kubernetes.io/config.hash"]
        assert [(one.kind, one.name) for one in found.metadata.ownerReferences] == [("Node", "n1")]
        assert any(one.operator == "Exists" and one.effect == "NoExecute" for one in found.spec.tolerations)
        # It takes its room like any other.
        await cluster.create(pod("other", "3"))
        await cluster.at(2)
        assert await cluster.phase("other") == "Failed"

    cluster.play(main, staticPods=[manifest()])


def test_a_deleted_mirror_comes_back_and_the_pod_does_not_notice(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(1)
        before = await mirror(cluster)
        await cluster.at(5)
        await cluster.client.delete("pods", "proxy-n1", "default")
        await cluster.at(6)
        after = await mirror(cluster)
        assert after.metadata.uid != before.metadata.uid
        assert after.status.phase == "Running"
        assert after.status.containerStatuses[0].restartCount == 0
        assert after.status.startTime == before.status.startTime
        await cluster.client.delete("pods", "proxy-n1", "default", grace_period_seconds=0)
        await cluster.at(7)
        assert (await mirror(cluster)).status.phase == "Running"

    cluster.play(main, staticPods=[manifest()])
    assert cluster.told("terminating", "running") == [(0.0, "running", "proxy-n1")]


def test_a_static_pod_on_a_full_node_has_others_killed(cluster: Cluster) -> None:
    async def before(cluster: Cluster) -> None:
        await cluster.run_before(pod("victim", "4", shutdown=10))

    async def main(cluster: Cluster) -> None:
        await cluster.at(1)
        assert await cluster.phase("proxy-n1") == "gone"
        await cluster.at(12)
        assert [await cluster.phase(name) for name in ("victim", "proxy-n1")] == ["Failed", "Running"]

    cluster.play(main, staticPods=[manifest()], before=before)
    assert cluster.data("preempting", "victim")[0]["by"] == "default/proxy-n1"


def test_a_static_pod_that_its_node_cannot_take_gets_no_mirror(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(10)
        assert await cluster.phase("proxy-n1") == "gone"

    cluster.play(main, staticPods=[manifest(cpu="9")])
    assert cluster.data("admit", "proxy-n1")[0]["reason"] == "UnexpectedAdmissionError"


def test_taints_that_drive_others_off_do_not_touch_it(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("other"))
        await cluster.at(1)
        assert [await cluster.phase(name) for name in ("other", "proxy-n1")] == ["Failed", "Running"]

    one = node()
    one.spec.taints.add(key="k", effect="NoExecute")
    cluster.play(main, [one], staticPods=[manifest()])


def test_a_kubelet_that_starts_again_finds_its_static_pod_running(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(5)
        uid = (await mirror(cluster)).metadata.uid
        await cluster.runtime.crash("kubelet/n1")
        await cluster.at(8)
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(10)
        found = await mirror(cluster)
        assert (found.metadata.uid, found.status.phase) == (uid, "Running")
        assert found.status.containerStatuses[0].restartCount == 0

    cluster.play(main, staticPods=[manifest()])
    assert cluster.told("admit", "running") == [(0.0, "admit", "proxy-n1"), (0.0, "running", "proxy-n1")]


def test_on_a_new_node_a_static_pod_comes_before_pods_of_the_api_server(cluster: Cluster) -> None:
    """Files are read at once, pods listed when the Node is there (``NewSourceApiserver`` in ``pkg/kubelet/config``)."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("other", "3", on="n2"))
        await cluster.at(1)
        await cluster.runtime.launch([cluster.kubelet(node("n2"), staticPods=[manifest()])])
        await cluster.at(2)
        assert [await cluster.phase(name) for name in ("other", "proxy-n2")] == ["Failed", "Running"]

    cluster.play(main)
    assert [name for _, _, name in cluster.told("admit")] == ["proxy-n2", "other"]
    assert not cluster.data("preempting")


def test_a_mirror_without_a_static_pod_is_removed(cluster: Cluster) -> None:
    """As of a manifest that is not there any more."""

    async def main(cluster: Cluster) -> None:
        stray = pod("stray-n1")
        stray.metadata.annotations["kubernetes.io/config.mirror"] = "0123"
        await cluster.create(stray)
        await cluster.at(1)
        assert [await cluster.phase(name) for name in ("stray-n1", "proxy-n1")] == ["gone", "Running"]

    cluster.play(main, staticPods=[manifest()])
