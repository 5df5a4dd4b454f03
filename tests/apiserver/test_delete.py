"""Deleting: graceful for pods, finalizers, preconditions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.apiserver.registry import deletions, strategies
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import EPOCH_UNIX_S
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run


def namespace(name: str) -> core_v1_pb2.Namespace:
    return core_v1_pb2.Namespace(metadata={"name": name})


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
            'Operation cannot be fulfilled on Pod "a": the UID in the precondition (another) does not match '
            f"the UID in record ({uid}). The object might have been deleted and then recreated"
        )
        changed = await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"x": "1"}}})
        error = await refusal(
            errors.Conflict, cluster.client.delete("pods", "a", "default", resource_version=version), cluster
        )
        assert f"the ResourceVersion in the precondition ({version}) does not match" in str(error)
        await cluster.client.delete("pods", "a", "default", uid=uid, resource_version=changed.metadata.resourceVersion)

    run(main)


def test_removing_the_last_finalizer_answers_with_the_object_that_never_was() -> None:
    """As recorded from an API server: without the finalizer, with the resource version before."""

    async def main(cluster: Cluster) -> None:
        held = node("n1")
        held.metadata.finalizers.append("kemu.dev/one")
        await cluster.client.create(held)
        deleted = await cluster.client.delete("nodes", "n1")
        events = cluster.watch(resource="nodes", version=deleted.metadata.resourceVersion)
        await events.start()
        last = await cluster.client.patch("nodes", "n1", "", {"metadata": {"finalizers": []}})
        assert last.metadata.resourceVersion == deleted.metadata.resourceVersion
        assert not last.metadata.finalizers
        event = await events.next()
        assert event.type == event.DELETED
        assert event.resource_version == cluster.etcd.revision

    run(main)


def stated(policy: str = "", orphan: bool | None = None, **fields: Any) -> api_pb2.DeleteRequest:
    request = api_pb2.DeleteRequest(name="r", propagation_policy=policy, **fields)
    request.resource.resource, request.resource.namespace = "replicasets", "default"
    if orphan is not None:
        request.orphan_dependents = orphan
    return request


OWN = ["kemu.dev/own"]


@pytest.mark.parametrize(
    ("plural", "before", "policy", "orphan", "after"),
    [
        ("replicasets", [], "Background", None, None),
        ("replicasets", [], "", None, None),
        ("replicasets", [], "Orphan", None, ["orphan"]),
        ("replicasets", [], "Foreground", None, ["foregroundDeletion"]),
        ("replicasets", OWN, "Foreground", None, [*OWN, "foregroundDeletion"]),
        ("replicasets", [], "", True, ["orphan"]),
        ("replicasets", [], "", False, None),
        ("replicasets", ["orphan", *OWN], "", None, ["orphan", *OWN]),
        ("replicasets", ["orphan", *OWN], "Background", None, OWN),
        ("replicasets", ["foregroundDeletion"], "Orphan", None, ["orphan"]),
        ("replicasets", ["foregroundDeletion"], "", False, None),
        ("jobs", [], "", None, ["orphan"]),
        ("jobs", [], "Background", None, None),
        ("replicationcontrollers", [], "", None, ["orphan"]),
        ("replicationcontrollers", ["foregroundDeletion"], "", None, ["foregroundDeletion"]),
        ("events", OWN, "Foreground", None, OWN),
    ],
)
def test_the_propagation_policy_decides_on_the_garbage_collectors_finalizers(
    plural: str, before: list[str], policy: str, orphan: bool | None, after: list[str] | None
) -> None:
    """``shouldOrphanDependents``, ``shouldDeleteDependents``; None: the object goes at once."""
    strategy = strategies.STRATEGIES[plural]
    obj: Any = strategy.resource.message()
    obj.metadata.finalizers.extend(before)
    obj.metadata.generation = 3
    deletion = deletions.of_request(stated(policy, orphan))
    stays = deletions.delete(strategy, obj, deletion, None, 10 * 1_000_000_000)
    assert bool(stays) == (after is not None)
    if after is not None:
        assert list(obj.metadata.finalizers) == after
        assert obj.metadata.deletionTimestamp.seconds == 10
        assert obj.metadata.HasField("deletionGracePeriodSeconds")
        assert obj.metadata.generation == 4


def test_options_of_a_delete_are_validated() -> None:
    with pytest.raises(errors.Invalid) as caught:
        deletions.of_request(stated("Foo"))
    assert str(caught.value) == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Foo": supported values: '
        '"Foreground", "Background", "Orphan", "nil"'
    )
    with pytest.raises(errors.Invalid) as caught:
        deletions.of_request(stated("Background", True))
    assert str(caught.value) == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Background": orphanDependents and '
        "deletionPropagation cannot be both set"
    )
    with pytest.raises(errors.Invalid) as caught:
        deletions.of_request(stated(dry_run=["Foo"]))
    assert str(caught.value) == (
        'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Foo"]: supported values: "All"'
    )


def test_a_namespace_is_terminated_then_finalized() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(namespace("old"))
        error = await refusal(errors.Conflict, cluster.client.delete("namespaces", "old", uid="another"), cluster)
        assert str(error) == (
            'Operation cannot be fulfilled on namespaces "old": Precondition failed: UID in precondition: another, '
            f"UID in object meta: {created.metadata.uid}"
        )
        deleted = await cluster.client.delete("namespaces", "old")
        assert deleted.status.phase == "Terminating"
        assert not deleted.metadata.HasField("deletionGracePeriodSeconds"), "namespaces know no grace period"
        before = cluster.etcd.revision
        assert await cluster.client.delete("namespaces", "old") == deleted
        assert cluster.etcd.revision == before, "its content is still there"
        deleted.spec.finalizers.append("mine")
        error = await refusal(errors.Invalid, cluster.client.update(deleted, "finalize"), cluster)
        assert 'spec.finalizers[1]: Invalid value: "mine": name is neither a standard finalizer name' in str(error)
        deleted.spec.ClearField("finalizers")
        deleted.status.phase = "Active"
        last = await cluster.client.update(deleted, "finalize")
        assert last.status.phase == "Terminating", "the status belongs to another subresource"
        await refusal(errors.NotFound, cluster.client.get("namespaces", "old"))

    run(main)


def test_the_finalize_subresource_is_for_namespaces() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        await refusal(errors.NotFound, cluster.client.update(created, "finalize"), cluster)

    run(main)


def test_a_collection_is_deleted_by_selectors() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(5):
            labels = {"odd": str(number % 2)}
            await cluster.client.create(pod(f"p{number}", labels=labels, nodeName="n1" if number == 3 else ""))
        found = await cluster.client.delete_collection("pods", "default", "odd=1", grace_period_seconds=7)
        assert [one.metadata.name for one in found.items] == ["p1", "p3"]
        assert not any(one.metadata.HasField("deletionTimestamp") for one in found.items), "as they were before"
        left = (await cluster.client.list("pods", "default")).items
        assert [one.metadata.name for one in left] == ["p0", "p2", "p3", "p4"]
        assert left[2].metadata.deletionGracePeriodSeconds == 7
        assert [one["name"] for one in cluster.recorder.of("api.request") if one["verb"] == "delete"] == ["p1", "p3"]
        assert cluster.recorder.of("client.listed")[-1]["count"] == 4, "the answer of a delete is no list"
        refused = cluster.client.delete_collection("namespaces")
        await refusal(errors.MethodNotAllowed, refused, cluster)

    run(main)


def test_jobs_warn_when_nobody_says_what_becomes_of_their_pods() -> None:
    async def main(cluster: Cluster) -> None:
        request = api_pb2.DeleteRequest(name="j")
        request.resource.resource, request.resource.namespace = "jobs", "default"
        for policy, finalizers, warned in (("", ["orphan"], True), ("Background", [], False)):
            template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause:1"}]}}
            data = {"metadata": {"name": "j", "namespace": "default"}, "spec": {"template": template}}
            await cluster.client.create(convert.from_json(batch_v1_pb2.Job, data))
            request.propagation_policy = policy
            response = await cluster.stub().Delete(request)
            job = batch_v1_pb2.Job.FromString(response.object)
            assert list(job.metadata.finalizers) == finalizers
            assert response.gone is not warned
            assert bool(response.warnings) is warned
            if warned:
                assert response.warnings[0].startswith("child pods are preserved by default when jobs are deleted")
                await cluster.client.patch("jobs", "j", "default", {"metadata": {"finalizers": []}})

    run(main)


def test_a_late_shorter_period_does_not_end_in_the_past() -> None:
    """``rest.BeforeDelete``: whoever asks for a period still gets one, of a second."""

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", nodeName="n1", terminationGracePeriodSeconds=60))
        await cluster.client.delete("pods", "a", "default")
        await cluster.clock.sleep(50)
        deleted = await cluster.client.delete("pods", "a", "default", 20)
        assert deleted.metadata.deletionTimestamp.seconds == EPOCH_UNIX_S + 50
        assert deleted.metadata.deletionGracePeriodSeconds == 1

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
