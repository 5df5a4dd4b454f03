"""Updates: optimistic concurrency, generation, spec and status apart."""

from __future__ import annotations

import asyncio

import pytest

from kemu import errors
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2
from tests.apiserver.apiserver_cluster import Cluster, budget, node, pod, refusal, run

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def test_an_update_with_an_old_resource_version_is_a_conflict() -> None:
    async def main(cluster: Cluster) -> None:
        old = await cluster.client.create(pod("a"))
        newer = await cluster.client.get("pods", "a", "default")
        newer.metadata.labels["x"] = "1"
        newer = await cluster.client.update(newer)
        old.metadata.labels["x"] = "2"
        error = await refusal(errors.Conflict, cluster.client.update(old), cluster)
        assert str(error) == f'Operation cannot be fulfilled on pods "a": {MODIFIED}'
        await cluster.clock.sleep(1)  # now the watch cache knows it, too
        await refusal(errors.Conflict, cluster.client.update(old), cluster)
        assert await cluster.client.get("pods", "a", "default") == newer

    run(main)


def test_a_stale_cache_refuses_nothing_wrongly() -> None:
    """What a lagging server holds against a request is checked against the store first."""

    async def main(cluster: Cluster) -> None:
        stale = cluster.client_of(1, "stale")
        await cluster.client.create(pod("a"))
        await cluster.client.create(pod("b", schedulingGates=[{"name": "kemu.dev/wait"}]))
        await cluster.clock.sleep(11)
        newer = await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"x": "1"}}})
        newer.metadata.labels["x"] = "2"
        assert (await stale.update(newer)).metadata.labels["x"] == "2"
        await cluster.client.patch("pods", "b", "default", {"spec": {"schedulingGates": None}})
        assert (await stale.bind("default", "b", "", "n1")).spec.nodeName == "n1"
        await cluster.client.delete("pods", "a", "default")
        created = await cluster.client.create(pod("a"))
        assert (await stale.bind("default", "a", created.metadata.uid, "n1")).spec.nodeName == "n1"
        # And nothing is granted wrongly.
        await refusal(errors.Conflict, stale.bind("default", "b", "", "n2"), cluster)

    run(main, servers=({}, {"cache_lag_s": 10}))


def test_defaults_that_the_stored_object_lacks_are_no_change() -> None:
    """An earlier version of kemu stored the volume without them."""

    async def main(cluster: Cluster) -> None:
        volume = convert.from_json(
            core_v1_pb2.PersistentVolume,
            {
                "metadata": {"name": "v"},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}},
            },
        )
        cluster.etcd.change({b"/registry/persistentvolumes/v": volume.SerializeToString(deterministic=True)})
        volume.metadata.labels["x"] = "1"
        assert (await cluster.client.update(volume)).spec.persistentVolumeSource.hostPath.HasField("type")
        volume.spec.persistentVolumeSource.hostPath.path = "/b"
        await refusal(errors.Invalid, cluster.client.update(volume), cluster)

    run(main)


def test_without_a_resource_version_the_last_one_wins() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        updates = []
        for number in range(5):
            new = pod("a", labels={"n": str(number)})
            new.spec.CopyFrom((await cluster.client.get("pods", "a", "default")).spec)
            updates.append(cluster.client_of(number % 2, f"user{number}").update(new))
        results = await asyncio.gather(*updates)
        last = max(results, key=lambda one: int(one.metadata.resourceVersion))
        assert len({one.metadata.resourceVersion for one in results}) == 5, "each became a revision of its own"
        assert await cluster.client.get("pods", "a", "default") == last

    run(main, servers=({}, {}))


def test_the_ablation_lets_an_old_version_overwrite() -> None:
    async def main(cluster: Cluster) -> None:
        old = await cluster.client.create(pod("a"))
        newer = await cluster.client.get("pods", "a", "default")
        newer.metadata.labels["x"] = "1"
        await cluster.client.update(newer)
        old.metadata.labels["x"] = "2"
        assert (await cluster.client.update(old)).metadata.labels["x"] == "2"

    run(main, servers=({"ablate": ["resource-version-precondition"]},))


def test_status_and_spec_leave_each_other_alone() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        sent = await cluster.client.get("pods", "a", "default")
        sent.spec.nodeName, sent.status.phase = "elsewhere", "Running"
        sent = await cluster.client.update_status(sent)
        assert (sent.spec.nodeName, sent.status.phase) == ("", "Running")
        assert sent.spec == created.spec
        sent.metadata.labels["x"], sent.status.phase = "1", "Failed"
        sent = await cluster.client.update(sent)
        assert (sent.metadata.labels["x"], sent.status.phase) == ("1", "Running")
        assert sent.metadata.generation == 1, "neither labels nor status count"

    run(main)


def test_owner_references_and_qos_class_survive_a_status_update() -> None:
    async def main(cluster: Cluster) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
        created = await cluster.client.create(pod("a", metadata={"ownerReferences": [owner]}))
        sent = pod("a")
        sent.status.phase = "Running"
        sent.spec.CopyFrom(created.spec)
        updated = await cluster.client.update_status(sent)
        assert list(updated.metadata.ownerReferences) == list(created.metadata.ownerReferences)
        assert updated.metadata.uid == created.metadata.uid
        assert updated.metadata.creationTimestamp == created.metadata.creationTimestamp
        assert updated.status.qosClass == "BestEffort"

    run(main)


def test_generation_counts_changes_of_the_spec() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(budget("b", {"app": "x"}, minAvailable=1))
        await cluster.client.update(created)
        current = await cluster.client.get("poddisruptionbudgets", "b", "default")
        assert current.metadata.generation == 1
        current.spec.minAvailable.intVal = 2
        current.metadata.generation = 40
        current = await cluster.client.update(current)
        assert current.metadata.generation == 2
        current.status.observedGeneration = 2
        assert (await cluster.client.update_status(current)).metadata.generation == 2

    run(main)


def test_what_changes_nothing_is_not_written() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(node("n1"))
        before = cluster.etcd.revision
        assert await cluster.client.update(created) == created
        assert await cluster.client.update_status(created) == created
        assert cluster.etcd.revision == before

    run(main)


def test_the_wrong_uid_is_a_conflict() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        sent = pod("a")
        sent.metadata.uid = "another"
        error = await refusal(errors.Conflict, cluster.client.update(sent), cluster)
        assert (
            f"Precondition failed: UID in precondition: another, UID in object meta: {created.metadata.uid}"
        ) in str(error)

    run(main)


def test_a_pod_of_the_same_name_is_not_the_same_pod() -> None:
    """A kubelet that reports on a pod that was deleted and created anew is refused."""

    async def main(cluster: Cluster) -> None:
        first = await cluster.client.create(pod("a"))
        await cluster.client.delete("pods", "a", "default")
        await cluster.client.create(pod("a"))
        first.status.phase = "Running"
        await refusal(errors.Conflict, cluster.client.update_status(first), cluster)

    run(main)


def test_immutable_fields_are_refused() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a", priorityClassName="system-node-critical"))
        created.spec.priority = 7
        error = await refusal(errors.Invalid, cluster.client.update(created), cluster)
        assert "pod updates may not change fields other than" in str(error)

    run(main)


def test_priority_survives_a_client_that_does_not_know_it() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a", priorityClassName="system-node-critical"))
        created.spec.ClearField("priority")
        created.spec.ClearField("preemptionPolicy")
        created.metadata.labels["x"] = "1"
        assert (await cluster.client.update(created)).spec.priority == 2_000_001_000

    run(main)


@pytest.mark.parametrize("verb", ["update", "update_status"])
def test_what_does_not_exist_cannot_be_updated(verb: str) -> None:
    async def main(cluster: Cluster) -> None:
        error = await refusal(errors.NotFound, getattr(cluster.client, verb)(pod("a")), cluster)
        assert str(error) == 'pods "a" not found'
        error = await refusal(errors.NotFound, getattr(cluster.client, verb)(budget("b", {})), cluster)
        assert str(error) == 'poddisruptionbudgets.policy "b" not found'

    run(main)


def test_kinds_without_a_status_subresource_say_so() -> None:
    async def main(cluster: Cluster) -> None:
        found = await cluster.client.get("priorityclasses", "system-node-critical")
        await refusal(errors.NotFound, cluster.client.update_status(found), cluster)

    run(main)


def test_many_writers_of_one_object_lose_no_update() -> None:
    """Read, change, write, again on conflict: every increment counts."""

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        await cluster.clock.sleep(1)  # until the slowest cache knows the node

        async def increment(number: int) -> None:
            client = cluster.client_of(number % 3, f"writer{number}")
            for _ in range(5):
                while True:
                    found = await client.get("nodes", "n1", resource_version="0" if number % 2 else "")
                    count = int(found.metadata.annotations["count"] or "0")
                    found.metadata.annotations["count"] = str(count + 1)
                    try:
                        await client.update(found)
                        break
                    except errors.Conflict:
                        await cluster.clock.sleep(0.01 * number)

        await asyncio.gather(*(increment(number) for number in range(6)))
        found = await cluster.client.get("nodes", "n1")
        assert found.metadata.annotations["count"] == "30"

    run(main, servers=({}, {}, {"cache_lag_s": 0.05}), timing={"apiLatency": {"uniform": {"min": 0.001, "max": 0.01}}})


def test_a_suspended_job_may_be_sent_elsewhere_when_it_goes_on() -> None:
    async def main(cluster: Cluster) -> None:
        job = batch_v1_pb2.Job()
        job.metadata.name, job.metadata.namespace = "a", "default"
        job.spec.suspend = True
        job.spec.template.spec.restartPolicy = "Never"
        job.spec.template.spec.containers.add(name="c", image="i")
        found = await cluster.client.create(job)
        found.spec.suspend = False
        template = found.spec.template
        template.metadata.labels["x"] = "y"
        template.spec.nodeSelector["zone"] = "a"
        template.spec.tolerations.add(key="key", operator="Exists")
        found = await cluster.client.update(found)
        assert found.spec.template.spec.nodeSelector == {"zone": "a"}
        found.spec.template.spec.nodeSelector["zone"] = "b"
        error = await refusal(errors.Invalid, cluster.client.update(found), cluster)
        assert [cause.field for cause in error.causes] == ["spec.template"]

    run(main)


def test_a_client_changes_no_times_of_the_server() -> None:
    """``BeforeUpdate`` of registry/rest: they are put back, not refused."""

    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        stated = created.metadata.creationTimestamp.seconds
        for part in ("", "status"):
            new = await cluster.client.get("pods", "a", "default")
            new.metadata.creationTimestamp.seconds = 1
            new.metadata.labels["part"] = part or "all"
            found = await cluster.client.update(new, part)
            assert found.metadata.creationTimestamp.seconds == stated
        new.metadata.resourceVersion = found.metadata.resourceVersion
        new.metadata.deletionTimestamp.seconds = 1
        error = await refusal(errors.Invalid, cluster.client.update(new), cluster)
        assert {cause.field for cause in error.causes} == {"metadata.deletionTimestamp"}

    run(main)
