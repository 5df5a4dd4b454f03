"""The kubelet's own Node: registration, lease, status."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.objects import meta
from kemu.runtime.env import SECOND_NS
from tests.kubelet.cluster import Cluster, node


async def _node(cluster: Cluster, name: str = "n1") -> Any:
    return await cluster.client.get("nodes", name)


def test_registers_its_node(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        found = await _node(cluster)
        assert found.status.allocatable["cpu"].string == "4"
        assert found.status.capacity["memory"].string == "8Gi"
        assert {key: found.metadata.labels[key] for key in sorted(found.metadata.labels)} == {
            "disk": "ssd",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": "n1",
            "kubernetes.io/os": "linux",
        }
        assert {one.type: one.status for one in found.status.conditions} == {
            "Ready": "True",
            "MemoryPressure": "False",
            "DiskPressure": "False",
            "PIDPressure": "False",
        }

    cluster.play(main, [node(labels={"disk": "ssd"})])


def test_a_node_that_does_not_say_how_many_pods_it_takes(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        found = await _node(cluster)
        assert found.status.allocatable["pods"].string == found.status.capacity["pods"].string == "20"

    bare = node()
    del bare.status.allocatable["pods"]
    cluster.play(main, [bare], kubelet={"maxPods": 20})


def test_takes_over_a_node_that_is_there(cluster: Cluster) -> None:
    async def before(cluster: Cluster) -> None:
        there = node(labels={"by": "hand"}, cpu="2")
        there.spec.taints.add(key="k", effect="NoSchedule")
        await cluster.client.create(there)

    async def main(cluster: Cluster) -> None:
        found = await _node(cluster)
        assert found.metadata.labels["by"] == "hand"
        assert len(found.spec.taints) == 1
        assert found.status.allocatable["cpu"].string == "4"
        assert meta.has_condition(found.status.conditions, "Ready")

    cluster.play(main, before=before)


def test_renews_its_lease_every_quarter_of_its_duration(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> list[int]:
        versions = []
        for second in range(0, 101, 5):
            await cluster.at(second)
            lease = await cluster.client.get("leases", "n1", "kube-node-lease")
            assert lease.spec.holderIdentity == "n1"
            assert lease.spec.leaseDurationSeconds == 40
            age_s = cluster.clock.epoch_unix_s + second - lease.spec.renewTime.seconds
            assert age_s <= 11
            versions.append(int(lease.metadata.resourceVersion))
        assert lease.metadata.ownerReferences[0].kind == "Node"
        return versions

    versions = cluster.play(main)
    assert len(set(versions)) in (10, 11)


def test_heartbeats_keep_no_run_alive_and_can_be_left_out(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        assert await cluster.runtime.run_until(int(3600e9), until_idle=True) == "idle"
        assert cluster.clock.now_ns() < 1e9
        before = (await cluster.client.list("nodes")).resource_version
        await cluster.at(3600)
        assert (await cluster.client.list("nodes")).resource_version == before
        assert (await cluster.client.list("leases")).items == []

    cluster.play(main, heartbeats=False)


def test_an_unchanged_status_is_reported_every_five_minutes(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> list[int]:
        seen = []
        for second in range(0, 1000, 10):
            await cluster.at(second)
            condition = meta.get_condition((await _node(cluster)).status.conditions, "Ready")
            seen.append(condition.lastHeartbeatTime.seconds - cluster.clock.epoch_unix_s)
            assert condition.lastTransitionTime.seconds == cluster.clock.epoch_unix_s
        return sorted(set(seen))

    reported = cluster.play(main)
    assert len(reported) == 4
    assert reported[0] == 0
    assert all(300 <= later - earlier <= 311 for earlier, later in itertools.pairwise(reported))


def test_a_condition_that_somebody_else_has_changed_is_set_right_at_the_next_look(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(50)
        found = await _node(cluster)
        now_ns = cluster.clock.epoch_unix_s * 1_000_000_000 + cluster.clock.now_ns()
        meta.set_condition(found.status.conditions, "Ready", "Unknown", "NodeStatusUnknown", "silent", now_ns)
        await cluster.client.update_status(found)
        await cluster.at(61)
        found = await _node(cluster)
        assert meta.has_condition(found.status.conditions, "Ready", "True")

    cluster.play(main)


def test_the_configuration_sets_the_pace(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(100)
        lease = await cluster.client.get("leases", "n1", "kube-node-lease")
        assert lease.spec.leaseDurationSeconds == 400
        assert lease.spec.renewTime.seconds <= cluster.clock.epoch_unix_s + 100
        condition = meta.get_condition((await _node(cluster)).status.conditions, "Ready")
        assert condition.lastHeartbeatTime.seconds >= cluster.clock.epoch_unix_s + 70

    pace = {"nodeLeaseDurationSeconds": 400, "nodeStatusReportFrequency": "20s", "nodeStatusUpdateFrequency": "5s"}
    cluster.play(main, kubelet=pace)


def test_heartbeats_go_on_after_a_partition(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(30)
        await cluster.runtime.partition("cut", ["kubelet/n1"], ["apiserver/0"])
        await cluster.at(100)
        lease = await cluster.client.get("leases", "n1", "kube-node-lease")
        assert lease.spec.renewTime.seconds <= cluster.clock.epoch_unix_s + 30
        await cluster.runtime.heal("cut")
        await cluster.at(180)
        lease = await cluster.client.get("leases", "n1", "kube-node-lease")
        assert lease.spec.renewTime.seconds >= cluster.clock.epoch_unix_s + 168

    cluster.play(main)


def test_a_bad_configuration_is_refused_by_name(cluster: Cluster) -> None:
    import pytest

    from kemu.emulated.kubelet.settings import kubelet_configurations

    with pytest.raises(ValueError, match=r"nodeStatusUpdateFrequency.*'often'"):
        kubelet_configurations.read({"nodeStatusUpdateFrequency": "often"}, {})
    with pytest.raises(ValueError, match=r"timing\.podStart"):
        kubelet_configurations.read({}, {"podStart": {"uniform": {"min": 2}}})


def test_a_lease_that_was_deleted_is_created_again(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(25)
        await cluster.client.delete("leases", "n1", "kube-node-lease")
        await cluster.at(50)
        lease = await cluster.client.get("leases", "n1", "kube-node-lease")
        assert cluster.clock.epoch_unix_s + 50 - lease.spec.renewTime.seconds <= 11

    cluster.play(main)


def test_a_renewal_that_is_refused_is_tried_again_at_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    update = clients.Client.update
    refused: list[int] = []

    async def overloaded(self: clients.Client, obj: Any, *more: Any) -> Any:
        if cluster.clock.now_ns() > 30 * SECOND_NS and len(refused) < 4:
            refused.append(cluster.clock.now_ns())
            raise errors.TooManyRequests("later")
        return await update(self, obj, *more)

    async def main(cluster: Cluster) -> None:
        await cluster.at(42)
        lease = await cluster.client.get("leases", "n1", "kube-node-lease")
        assert lease.spec.renewTime.seconds > cluster.clock.epoch_unix_s + 29
        assert len(refused) == 4
        assert len(set(refused)) == 1

    monkeypatch.setattr(clients.Client, "update", overloaded)
    cluster.play(main)
