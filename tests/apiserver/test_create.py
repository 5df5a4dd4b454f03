"""Creating objects: what the server fills in, and what it refuses without a trace."""

from __future__ import annotations

import re

import grpc
import pytest

from kemu import errors
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import apps_v1_pb2, coordination_v1_pb2, core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import EPOCH_UNIX_S
from tests.apiserver.apiserver_cluster import Cluster, budget, node, pod, priority_class, refusal, run


def test_the_server_fills_in_what_belongs_to_it() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.clock.sleep(90)
        new = pod("a", labels={"app": "x"})
        new.metadata.uid, new.metadata.generation = "mine", 77
        new.metadata.deletionTimestamp.seconds = 1
        new.status.phase, new.status.nominatedNodeName = "Running", "n1"
        created = await cluster.client.create(new)
        metadata = created.metadata
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", metadata.uid)
        assert metadata.creationTimestamp.seconds == EPOCH_UNIX_S + 90
        assert metadata.generation == 1
        assert int(metadata.resourceVersion) == cluster.etcd.revision
        assert not metadata.HasField("deletionTimestamp")
        assert (created.status.phase, created.status.qosClass) == ("Pending", "BestEffort")
        assert not created.status.nominatedNodeName
        assert created.spec.schedulerName == "default-scheduler"
        assert created == await cluster.client.get("pods", "a", "default")

    run(main)


def test_the_store_holds_no_resource_version() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        value = cluster.etcd.state(cluster.etcd.revision)[b"/registry/pods/default/a"].value
        stored = core_v1_pb2.Pod.FromString(value)
        assert stored.metadata.resourceVersion == ""
        assert stored.SerializeToString(deterministic=True) == value
        stored.metadata.resourceVersion = created.metadata.resourceVersion
        assert stored == created

    run(main)


def test_every_cluster_has_its_namespaces_and_system_classes() -> None:
    async def main(cluster: Cluster) -> None:
        listed = await cluster.client.list("namespaces")
        assert [one.metadata.name for one in listed.items] == [
            "default", "kube-node-lease", "kube-public", "kube-system",
        ]  # fmt: skip
        assert all(one.status.phase == "Active" for one in listed.items)
        classes = await cluster.client.list("priorityclasses")
        assert {one.metadata.name: one.value for one in classes.items} == {
            "system-cluster-critical": 2_000_000_000,
            "system-node-critical": 2_000_001_000,
        }

    run(main)


def test_a_second_api_server_finds_the_namespaces_of_the_first() -> None:
    async def main(cluster: Cluster) -> None:
        uids = []
        for server in (0, 1):
            namespace = await cluster.client_of(server, f"user{server}").get("namespaces", "default")
            uids.append(namespace.metadata.uid)
        assert uids[0] == uids[1]

    run(main, servers=({}, {}))


def test_generate_name_makes_different_names() -> None:
    async def main(cluster: Cluster) -> None:
        names = []
        for _ in range(20):
            new = pod("")
            new.metadata.generateName = "web-" + "x" * 70
            names.append((await cluster.client.create(new)).metadata.name)
        assert len(set(names)) == 20
        for name in names:
            assert re.fullmatch(r"web-x{54}[bcdfghjklmnpqrstvwxz2456789]{5}", name)

    run(main)


def test_a_name_is_used_once() -> None:
    async def main(cluster: Cluster) -> None:
        first = await cluster.client.create(pod("a"))
        error = await refusal(errors.AlreadyExists, cluster.client.create(pod("a")), cluster)
        assert str(error) == 'pods "a" already exists'
        assert (error.kind, error.name) == ("pods", "a")
        assert await cluster.client.get("pods", "a", "default") == first
        error = await refusal(
            errors.AlreadyExists, cluster.client.create(priority_class("system-node-critical", 2_000_001_000)), cluster
        )
        assert str(error) == 'priorityclasses.scheduling.k8s.io "system-node-critical" already exists'

    run(main)


def test_a_name_whose_owner_is_still_terminating_is_not_free() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", nodeName="n1"))
        await cluster.client.delete("pods", "a", "default")
        error = await refusal(errors.AlreadyExists, cluster.client.create(pod("a")), cluster)
        assert str(error) == 'object is being deleted: pods "a" already exists'

    run(main)


@pytest.mark.parametrize(
    ("requests", "field", "text"),
    [
        ({"cpu": "-1"}, "spec.containers[0].resources.requests[cpu]", "must be greater than or equal to 0"),
        ({"memory": "1Gii"}, "spec.containers[0].resources.requests[memory]", ""),
    ],
)
def test_a_bad_request_for_resources_is_invalid(requests: dict[str, str], field: str, text: str) -> None:
    async def main(cluster: Cluster) -> None:
        new = pod("a")
        for name, amount in requests.items():
            new.spec.containers[0].resources.requests[name].string = amount
        error = await refusal(errors.Invalid, cluster.client.create(new), cluster)
        assert str(error).startswith('Pod "a" is invalid: ')
        assert [cause.field for cause in error.causes] == [field]
        assert text in str(error)
        (logged,) = cluster.refused()
        assert (logged["verb"], logged["resource"], logged["namespace"], logged["name"]) == (
            "create", "pods", "default", "a",
        )  # fmt: skip
        assert (logged["reason"], logged["by"]) == ("Invalid", "user")
        assert not cluster.recorder.of("api.request")

    run(main)


def test_all_mistakes_of_an_object_come_at_once() -> None:
    async def main(cluster: Cluster) -> None:
        new = pod("Not A Name", restartPolicy="Sometimes")
        new.spec.containers[0].name = ""
        error = await refusal(errors.Invalid, cluster.client.create(new), cluster)
        assert {"metadata.name", "spec.restartPolicy", "spec.containers[0].name"} <= {c.field for c in error.causes}

    run(main)


def test_an_object_with_a_resource_version_cannot_be_created() -> None:
    async def main(cluster: Cluster) -> None:
        new = pod("a")
        new.metadata.resourceVersion = "5"
        error = await refusal(errors.ApiError, cluster.client.create(new), cluster)
        assert str(error) == "resourceVersion should not be set on objects to be created"
        new.spec.restartPolicy = "Sometimes"
        await refusal(errors.Invalid, cluster.client.create(new), cluster)
        none = pod("b")
        none.metadata.resourceVersion = "0"
        assert (await cluster.client.create(none)).metadata.resourceVersion not in ("", "0")

    run(main)


def test_the_namespace_of_object_and_request_must_agree() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        request = api_pb2.CreateRequest(object=pod("a", "default").SerializeToString())
        request.resource.resource, request.resource.namespace = "pods", "kube-system"
        with pytest.raises(grpc.aio.AioRpcError, match="does not match the namespace"):
            await stub.Create(request)
        request.resource.namespace = ""
        created = core_v1_pb2.Pod.FromString((await stub.Create(request)).object)
        assert created.metadata.namespace == "default"

    run(main)


def test_kinds_without_namespace_have_none() -> None:
    async def main(cluster: Cluster) -> None:
        new = node("n1")
        new.metadata.namespace = "default"
        created = await cluster.client.create(new)
        assert created.metadata.namespace == ""
        assert created.status.allocatable["cpu"].string == "4", "a node brings its status along"
        assert created.metadata.generation == 0
        created.metadata.namespace = "default"
        created.metadata.labels["x"] = "y"
        updated = await cluster.client.update(created)
        assert (updated.metadata.namespace, updated.metadata.labels["x"]) == ("", "y")
        change = {"metadata": {"namespace": "other", "labels": {"x": "z"}}}
        patched = await cluster.client.patch("nodes", "n1", "", change)
        assert (patched.metadata.namespace, patched.metadata.labels["x"]) == ("", "z")

    run(main)


def test_status_of_other_kinds_cannot_be_created() -> None:
    async def main(cluster: Cluster) -> None:
        new = budget("b", {"app": "x"}, minAvailable=1)
        new.status.disruptionsAllowed = 5
        created = await cluster.client.create(new)
        assert created.status.disruptionsAllowed == 0
        assert created.metadata.generation == 1

    run(main)


def test_an_update_of_a_lease_that_does_not_exist_creates_it() -> None:
    async def main(cluster: Cluster) -> None:
        lease = coordination_v1_pb2.Lease()
        lease.metadata.name, lease.metadata.namespace = "n1", "kube-node-lease"
        lease.spec.holderIdentity, lease.spec.leaseDurationSeconds = "n1", 40
        created = await cluster.client.update(lease)
        assert created.metadata.uid
        error = await refusal(errors.Invalid, cluster.client.update(lease), cluster)
        assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in str(error)
        created.spec.leaseDurationSeconds = 50
        assert (await cluster.client.update(created)).spec.leaseDurationSeconds == 50

    run(main)


def test_fields_that_the_server_does_not_know_survive() -> None:
    async def main(cluster: Cluster) -> None:
        unknown = b"\xfa\x3f\x03abc"  # field 1023, bytes
        request = api_pb2.CreateRequest(object=pod("a").SerializeToString() + unknown)
        request.resource.resource = "pods"
        created = (await cluster.stub().Create(request)).object
        assert unknown in created
        status = api_pb2.UpdateStatusRequest(object=created)
        status.resource.resource = "pods"
        assert unknown in (await cluster.stub().UpdateStatus(status)).object
        request.object = b"\xff\xff"
        with pytest.raises(grpc.aio.AioRpcError, match="the object is not a Pod") as caught:
            await cluster.stub().Create(request)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    run(main)


def test_creations_are_noted_in_the_run_log() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.clock.sleep(1)
        created = await cluster.client.create(pod("a"))
        (logged,) = cluster.recorder.of("api.request")
        assert dict(logged) == {
            "verb": "create",
            "resource": "pods",
            "namespace": "default",
            "name": "a",
            "uid": created.metadata.uid,
            "by": "user",
            "start": 1_001_000_000,
            "rev": int(created.metadata.resourceVersion),
        }
        await cluster.client.create(node("n1"))
        assert len(cluster.recorder.of("api.request")) == 1, "only what happens to pods"

    run(main)


def test_fields_that_kemu_does_not_simulate_are_refused() -> None:
    async def main(cluster: Cluster) -> None:
        volumes = [{"name": "data", "gitRepo": {"repository": "x"}}]
        error = await refusal(errors.Invalid, cluster.client.create(pod("a", volumes=volumes)), cluster)
        assert [(cause.field, cause.reason) for cause in error.causes] == [
            ("spec.volumes[0].gitRepo", "FieldValueUnbuilt")
        ]
        probe = {"exec": {"command": ["true"]}}  # Its default for successThreshold is no mistake.
        containers = [{"name": "main", "image": "a:1", "readinessProbe": probe}]
        await cluster.client.create(pod("a", containers=containers))

    run(main)


def test_volumes_that_are_images_name_one() -> None:
    async def main(cluster: Cluster) -> None:
        volumes = [{"name": "data", "image": {"pullPolicy": "Sometimes"}}]
        error = await refusal(errors.Invalid, cluster.client.create(pod("a", volumes=volumes)), cluster)
        assert [(cause.field, cause.reason) for cause in error.causes] == [
            ("spec.volumes[0].image.reference", "FieldValueRequired"),
            ("spec.volumes[0].image.pullPolicy", "FieldValueNotSupported"),
        ]
        await cluster.client.create(pod("a", volumes=[{"name": "data", "image": {"reference": "models/a"}}]))

    run(main)


def test_templates_of_claims_are_checked_as_claims() -> None:
    """``validateVolumeClaimTemplates`` of pkg/apis/apps/validation: on creation alone."""

    async def main(cluster: Cluster) -> None:
        spec = {"serviceName": "a", "selector": {"matchLabels": {"app": "a"}}, "volumeClaimTemplates": [CLAIM]}
        template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        manifest = {"metadata": {"name": "a", "namespace": "default"}, "spec": {**spec, "template": template}}
        new = convert.from_json(apps_v1_pb2.StatefulSet, manifest)
        assert (await cluster.client.create(new)).spec.volumeClaimTemplates[0].spec.volumeMode == "Filesystem"
        new.metadata.name = "b"
        new.spec.volumeClaimTemplates[0].spec.ClearField("accessModes")
        error = await refusal(errors.Invalid, cluster.client.create(new), cluster)
        text = "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required"
        assert str(error) == f'StatefulSet.apps "b" is invalid: {text}'

    run(main)


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
