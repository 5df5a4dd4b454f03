"""Deleting: graceful for pods, finalizers, preconditions."""

from __future__ import annotations

import asyncio

import pytest

from kemu import errors
from kemu.runtime.env import EPOCH_UNIX_S
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run


def test_a_pod_without_node_is_removed_at_once() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        last = await cluster.client.delete("pods", "a", "default")
        assert last.metadata.uid == created.metadata.uid
        assert int(last.metadata.resourceVersion) == cluster.etcd.revision, "the revision of the deletion"
        await refusal(errors.NotFound, cluster.client.get("pods", "a", "default"))
        (logged,) = [one for one in cluster.recorder.of("api.request") if one["verb"] == "delete"]
        assert (logged["uid"], logged["rev"]) == (created.metadata.uid, cluster.etcd.revision)

    run(main)


def test_a_pod_on_a_node_gets_its_grace_period() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", nodeName="n1", terminationGracePeriodSeconds=60))
        await cluster.clock.sleep(10)
        deleted = await cluster.client.delete("pods", "a", "default")
        metadata = deleted.metadata
        assert metadata.deletionTimestamp.seconds == EPOCH_UNIX_S + 70
        assert metadata.deletionGracePeriodSeconds == 60
        assert metadata.generation == 2
        assert await cluster.client.get("pods", "a", "default") == deleted

    run(main)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_over_is_removed_at_once(phase: str) -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a", nodeName="n1"))
        created.status.phase = phase
        await cluster.client.update_status(created)
        await cluster.client.delete("pods", "a", "default")
        await refusal(errors.NotFound, cluster.client.get("pods", "a", "default"))

    run(main)


def test_a_second_delete_can_only_shorten() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", nodeName="n1", terminationGracePeriodSeconds=60))
        await cluster.client.delete("pods", "a", "default", 40)
        await cluster.clock.sleep(5)
        before = cluster.etcd.revision
        for grace_s in (None, 40, 100):
            again = await cluster.client.delete("pods", "a", "default", grace_s)
            assert again.metadata.deletionGracePeriodSeconds == 40
        assert cluster.etcd.revision == before
        shorter = await cluster.client.delete("pods", "a", "default", 10)
        assert shorter.metadata.deletionGracePeriodSeconds == 10
        assert shorter.metadata.deletionTimestamp.seconds == EPOCH_UNIX_S + 10, "counted from the first delete"
        assert shorter.metadata.generation == 2
        await cluster.client.delete("pods", "a", "default", 0)
        await refusal(errors.NotFound, cluster.client.get("pods", "a", "default"))

    run(main)


def test_a_negative_grace_period_is_one_second() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", nodeName="n1"))
        assert (await cluster.client.delete("pods", "a", "default", -5)).metadata.deletionGracePeriodSeconds == 1

    run(main)


def test_finalizers_hold_an_object_until_they_are_gone() -> None:
    async def main(cluster: Cluster) -> None:
        held = node("n1")
        held.metadata.finalizers.extend(["kemu.dev/one", "kemu.dev/two"])
        await cluster.client.create(held)
        deleted = await cluster.client.delete("nodes", "n1")
        assert deleted.metadata.HasField("deletionTimestamp")
        before = cluster.etcd.revision
        await cluster.client.delete("nodes", "n1")
        assert cluster.etcd.revision == before
        deleted.metadata.finalizers.append("kemu.dev/three")
        error = await refusal(errors.Invalid, cluster.client.update(deleted), cluster)
        assert "no new finalizers can be added if the object is being deleted" in str(error)
        del deleted.metadata.finalizers[1:]
        deleted = await cluster.client.update(deleted)
        assert list(deleted.metadata.finalizers) == ["kemu.dev/one"]
        last = await cluster.client.patch("nodes", "n1", "", {"metadata": {"finalizers": None}})
        assert last.metadata.uid == deleted.metadata.uid
        await refusal(errors.NotFound, cluster.client.get("nodes", "n1"))

    run(main)


def test_a_pod_with_finalizers_waits_for_both() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", nodeName="n1", metadata={"finalizers": ["kemu.dev/one"]}))
        await cluster.client.delete("pods", "a", "default")
        deleted = await cluster.client.delete("pods", "a", "default", 0)
        assert deleted.metadata.deletionGracePeriodSeconds == 0, "the kubelet is done, the finalizer is not"
        await cluster.client.patch("pods", "a", "default", {"metadata": {"finalizers": []}})
        await refusal(errors.NotFound, cluster.client.get("pods", "a", "default"))

    run(main)


def test_preconditions_of_a_delete() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        uid, version = created.metadata.uid, created.metadata.resourceVersion
        error = await refusal(errors.Conflict, cluster.client.delete("pods", "a", "default", uid="another"), cluster)
        assert str(error) == (
            'Operation cannot be fulfilled on pods "a": the UID in the precondition (another) does not match '
            f"the UID in record ({uid}). The object might have been deleted and then recreated"
        )
        changed = await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"x": "1"}}})
        error = await refusal(
            errors.Conflict, cluster.client.delete("pods", "a", "default", resource_version=version), cluster
        )
        assert f"the ResourceVersion in the precondition ({version}) does not match" in str(error)
        await cluster.client.delete("pods", "a", "default", uid=uid, resource_version=changed.metadata.resourceVersion)

    run(main)


def test_what_does_not_exist_cannot_be_deleted() -> None:
    async def main(cluster: Cluster) -> None:
        error = await refusal(errors.NotFound, cluster.client.delete("pods", "a", "default"), cluster)
        assert str(error) == 'pods "a" not found'
        await refusal(errors.BadRequest, cluster.client.delete("pods", "", "default"), cluster)
        await refusal(errors.BadRequest, cluster.client.delete("pods", "a", ""), cluster)

    run(main)


def test_a_delete_races_with_an_update_and_one_of_them_comes_second() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(10):
            name = f"p{number}"
            created = await cluster.client.create(pod(name))
            created.metadata.labels["x"] = "1"
            updating = cluster.client_of(1, "b").update(created)
            deleting = cluster.client.delete("pods", name, "default")
            updated, _ = await asyncio.gather(updating, deleting, return_exceptions=True)
            assert not isinstance(updated, BaseException) or isinstance(updated, (errors.NotFound, errors.Conflict))
            await refusal(errors.NotFound, cluster.client.get("pods", name, "default"))

    run(main, servers=({}, {}), timing={"apiLatency": {"uniform": {"min": 0.001, "max": 0.004}}})
