"""Server-side apply and managed fields, with kube-apiserver's answers."""

from __future__ import annotations

import json
from typing import Any

from kemu import errors
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance.writes import sequences
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, run
from tests.apiserver.test_write_options import create, patch, refused


def applied(data: Any, manager: str, **more: Any) -> api_pb2.PatchRequest:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
    return patch(body, api_pb2.PatchRequest.APPLY, options={"field_manager": manager}, **more)  # type: ignore[no-any-return]


def managers(response: Any) -> dict[str, list[str]]:
    obj = core_v1_pb2.ConfigMap.FromString(response.object)
    entries = convert.to_manifest(obj)["metadata"].get("managedFields", [])
    return {one["who"][0]: one["fields"] for one in sequences.managers_of(entries)}


def data(response: Any) -> dict[str, str]:
    return dict(core_v1_pb2.ConfigMap.FromString(response.object).data)


def test_who_applies_owns_its_fields_and_loses_what_it_leaves_out() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        found = await stub.Patch(applied({"a": "1", "b": "1"}, "alice"))
        assert found.created
        assert managers(found) == {"alice": [".data.a", ".data.b"]}
        found = await stub.Patch(applied({"a": "1", "c": "1"}, "bob"))
        assert managers(found) == {"alice": [".data.a", ".data.b"], "bob": [".data.a", ".data.c"]}
        found = await stub.Patch(applied({}, "alice"))
        assert data(found) == {"a": "1", "c": "1"}
        assert managers(found)["bob"] == [".data.a", ".data.c"]

    run(main)


def test_a_field_of_another_manager_is_a_conflict_unless_forced() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        await stub.Patch(applied({"a": "1"}, "alice"))
        await stub.Patch(patch({"data": {"b": "1"}}, options={"field_manager": "ctl"}))
        error = await refused(stub.Patch(applied({"a": "2"}, "bob")))
        assert isinstance(error, errors.Conflict)
        assert error.message == 'Apply failed with 1 conflict: conflict with "alice": .data.a'
        assert error.causes == (errors.Cause(".data.a", "FieldManagerConflict", 'conflict with "alice"'),)
        error = await refused(stub.Patch(applied({"a": "2", "b": "2"}, "bob")))
        assert error.message == (
            'Apply failed with 2 conflicts: conflicts with "alice":\n- .data.a\n'
            'conflicts with "ctl" using v1:\n- .data.b'
        )
        found = await stub.Patch(applied({"a": "2", "b": "2"}, "bob", force=True))
        assert managers(found) == {"bob": [".data.a", ".data.b"]}

    run(main)


def test_options_of_an_apply_are_checked() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        error = await refused(stub.Patch(applied({}, "")))
        assert (
            error.message
            == 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
        )
        error = await refused(stub.Patch(patch({}, options={"field_manager": "a"}, force=False)))
        assert error.message == (
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
        )

    run(main)


def test_actors_that_do_not_say_who_they_are_are_tracked_where_others_are() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
        request = create(body, "configmaps")
        request.ClearField("options")
        assert managers(await stub.Create(request)) == {}
        change = patch({"data": {"b": "1"}})
        change.ClearField("options")
        assert managers(await stub.Patch(change)) == {}
        found = await stub.Patch(applied({"c": "1"}, "alice"))
        assert managers(found) == {
            "alice": [".data.c"],
            "before-first-apply": [".data", ".data.a", ".data.b"],
        }
        change.patch = json.dumps({"data": {"c": "2"}}).encode()
        found = await stub.Patch(change)
        assert managers(found)["user"] == [".data.c"]
        error = await refused(stub.Patch(applied({"c": "1"}, "alice")))
        assert error.message == 'Apply failed with 1 conflict: conflict with "user" using v1: .data.c'

    run(main)


def test_a_server_that_tracks_all_tracks_actors_from_the_start() -> None:
    async def main(cluster: Cluster) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
        request = create(body, "configmaps")
        request.ClearField("options")
        found = await cluster.stub(name="controller/x").Create(request)
        assert managers(found) == {"controller": [".data", ".data.a"]}

    run(main, servers=({"managed_fields": True},))


def test_an_apply_that_changes_nothing_writes_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        first = await stub.Patch(applied({"a": "1"}, "alice"))
        await cluster.clock.sleep(5)
        assert (await stub.Patch(applied({"a": "1"}, "alice"))).object == first.object

    run(main)


def test_fields_that_are_set_to_nothing_change_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        body: Any = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "c"},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]},
        }
        first = await stub.Create(create(body, field_manager="alice"))
        # As Go clients write it in protobuf.
        pod = core_v1_pb2.Pod.FromString(first.object)
        pod.spec.nodeName = ""
        pod.spec.containers[0].resources.SetInParent()
        pod.spec.containers[0].ports[0].hostIP = ""
        pod.status.message = ""
        pod.status.conditions.add(type="A", status="True").lastProbeTime.SetInParent()
        request = api_pb2.UpdateRequest(object=pod.SerializeToString(), subresource="status")
        request.resource.resource, request.resource.namespace = "pods", "default"
        request.options.field_manager = "alice"
        found = core_v1_pb2.Pod.FromString((await stub.Update(request)).object)
        assert found.metadata.generation == 1
        assert not found.spec.HasField("nodeName")
        assert not found.status.conditions[0].HasField("lastProbeTime")
        request.object, request.subresource = found.SerializeToString(), ""
        again = await stub.Update(request)
        assert core_v1_pb2.Pod.FromString(again.object).metadata.resourceVersion == found.metadata.resourceVersion

    run(main)
