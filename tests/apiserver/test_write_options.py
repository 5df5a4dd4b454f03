"""Bodies in JSON and YAML, field validation, dry runs, JSON patches and Scale, with kube-apiserver's answers."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest
from google.rpc import status_pb2

from kemu import errors
from kemu.emulated.apiserver.errors import DETAILS_KEY
from kemu.emulated.client.sessions import error_of
from kemu.emulated.objects import statuses
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import apps_v1_pb2, autoscaling_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, budget, pod, refusal, run

JSON, YAML = "application/json", "application/yaml"
WRONG = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"image": "nginx", "imagee": "x", "name": "c"}], "contaners": []},
}
TWICE = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"q","name":"q2"},"dta":{}}'


def create(body: Any, plural: str = "pods", content_type: str = JSON, **options: Any) -> api_pb2.CreateRequest:
    text = body if isinstance(body, str) else json.dumps(body)
    request = api_pb2.CreateRequest(object=text.encode(), content_type=content_type)
    request.resource.resource, request.resource.namespace = plural, "default"
    request.options.MergeFrom(api_pb2.WriteOptions(**options))
    return request


def patch(text: Any, kind: int = api_pb2.PatchRequest.MERGE, plural: str = "configmaps", **more: Any) -> Any:
    options = api_pb2.WriteOptions(**more.pop("options", {"field_manager": "me"}))
    request = api_pb2.PatchRequest(name="c", type=kind, patch=json.dumps(text).encode(), options=options, **more)  # type: ignore[arg-type]
    request.resource.resource, request.resource.namespace = plural, "default"
    return request


async def refused(call: Any) -> Any:
    """The error of a unary call."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    trailing: Any = dict(caught.value.trailing_metadata())
    for detail in status_pb2.Status.FromString(trailing[DETAILS_KEY]).details:
        if detail.Is(meta_v1_pb2.Status.DESCRIPTOR):
            return error_of(detail.value)
    raise AssertionError("there is no metav1.Status")


UNKNOWN = ['unknown field "spec.containers[0].imagee"', 'unknown field "spec.contaners"']


def test_unknown_fields_are_refused_told_or_ignored() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        error = await refused(stub.Create(create(WRONG, field_validation="Strict")))
        assert isinstance(error, errors.BadRequest)
        assert str(error) == (
            'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
            'unknown field "spec.containers[0].imagee", unknown field "spec.contaners"'
        )
        for level, warnings in (("Warn", UNKNOWN), ("", UNKNOWN), ("Ignore", [])):
            response = await stub.Create(create(WRONG, field_validation=level, dry_run=["All"]))
            assert list(response.warnings) == warnings
            assert core_v1_pb2.Pod.FromString(response.object).spec.containers[0].image == "nginx"
        wrong = await refused(stub.Create(create(WRONG, field_validation="Foo")))
        assert str(wrong) == (
            'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo": supported values: "", '
            '"Ignore", "Strict", "Warn"'
        )

    run(main)


def test_duplicate_fields_count_too_and_the_last_one_holds() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        error = await refused(stub.Create(create(TWICE, "configmaps", field_validation="Strict")))
        assert str(error) == (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field '
            '"metadata.name", unknown field "dta"'
        )
        response = await stub.Create(create(TWICE, "configmaps", dry_run=["All"]))
        assert list(response.warnings) == ['duplicate field "metadata.name"', 'unknown field "dta"']
        assert core_v1_pb2.ConfigMap.FromString(response.object).metadata.name == "q2"
        doubled = "kind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1',\n  x: '2'}\n"
        response = await stub.Create(create(doubled, "configmaps", YAML))
        assert list(response.warnings) == ['line 4: key "x" already set in map']

    run(main)


def test_an_apply_is_warned_of_every_key_that_stands_twice() -> None:
    async def main(cluster: Cluster) -> None:
        doubled = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1',\n  x: '2', y: '',\n  y: ''}\n"
        patch = api_pb2.PatchRequest(name="a", type=api_pb2.PatchRequest.APPLY, patch=doubled)
        patch.resource.resource, patch.resource.namespace, patch.options.field_manager = "configmaps", "default", "me"
        response = await cluster.stub().Patch(patch)
        told = [f'line {line}: key "{key}" already set in map' for line, key in ((5, "x"), (6, "y"))]
        assert list(response.warnings) == told

    run(main)


def test_bodies_that_are_something_else() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
        strange = "the object provided is unrecognized (must be of type Pod)"
        as_pod = "cannot be handled as a Pod:"
        scheme = 'no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"'
        for body, text in (
            (other, f'ConfigMap in version "v1" {as_pod} converting (v1.ConfigMap) to (core.Pod): unknown conversion'),
            ({**other, "apiVersion": "v2"}, f'ConfigMap in version "v2" {as_pod} {scheme}'),
            ("{", f"{strange}: couldn't get version/kind; json parse error"),
            ("[1]", strange),
            ("[" * 5000, strange),
            (
                {"spec": {"priority": "high"}},
                f'Pod in version "v1" {as_pod} json: cannot unmarshal string into Go struct field PodSpec.spec.pri',
            ),
        ):
            error = await refused(stub.Create(create(body)))
            assert isinstance(error, errors.BadRequest)
            assert str(error).startswith(text)
        named = {"metadata": {"name": "nokind"}}
        assert (await stub.Create(create(named, "configmaps"))).object
        day = "metadata: {name: day, annotations: {on: 2000-01-01}}"
        error = await refused(stub.Create(create(day.replace("on:", "'on':"), "configmaps", "text/plain")))
        assert "unknown format" in str(error)
        response = await stub.Create(create(day.replace("on:", "'on':"), "configmaps", YAML))
        shown = core_v1_pb2.ConfigMap.FromString(response.object)
        assert shown.metadata.annotations["on"] == "2000-01-01", "YAML's dates are texts"

    run(main)


def test_a_dry_run_does_everything_but_the_write() -> None:
    async def main(cluster: Cluster) -> None:
        stub, client = cluster.stub(), cluster.client
        before = cluster.etcd.revision
        response = await stub.Create(
            create({"metadata": {"name": "c"}, "data": {"a": "1"}}, "configmaps", dry_run=["All"])
        )
        made = core_v1_pb2.ConfigMap.FromString(response.object)
        assert made.metadata.uid
        assert made.metadata.HasField("creationTimestamp")
        assert not made.metadata.HasField("resourceVersion")
        misnamed = create({"metadata": {"name": "x/y"}}, "configmaps", dry_run=["All"])
        assert isinstance(await refused(stub.Create(misnamed)), errors.Invalid)
        assert "dryRun: Unsupported value" in str(await refused(stub.Create(create("{}", dry_run=["Foo"]))))
        assert cluster.etcd.revision == before
        await stub.Create(create({"metadata": {"name": "c"}, "data": {"a": "1"}}, "configmaps"))
        again = create({"metadata": {"name": "c"}}, "configmaps", dry_run=["All"])
        assert isinstance(await refused(stub.Create(again)), errors.AlreadyExists)
        now = await client.get("configmaps", "c", "default")
        before = cluster.etcd.revision
        response = await stub.Patch(patch({"data": {"dry": "1"}}, options={"dry_run": ["All"]}))
        shown = core_v1_pb2.ConfigMap.FromString(response.object)
        assert dict(shown.data) == {"a": "1", "dry": "1"}
        assert shown.metadata.resourceVersion == now.metadata.resourceVersion, "the old one, as nothing was written"
        delete = api_pb2.DeleteRequest(name="c", dry_run=["All"])
        delete.resource.resource, delete.resource.namespace = "configmaps", "default"
        assert (await stub.Delete(delete)).gone
        delete.propagation_policy = "Foreground"
        response = await stub.Delete(delete)
        assert not response.gone
        assert list(core_v1_pb2.ConfigMap.FromString(response.object).metadata.finalizers) == ["foregroundDeletion"]
        assert cluster.etcd.revision == before
        assert await client.get("configmaps", "c", "default") == now

    run(main)


def test_a_dry_eviction_asks_the_budget_and_takes_nothing_from_it() -> None:
    async def main(cluster: Cluster) -> None:
        client, stub = cluster.client, cluster.stub()
        await client.create(pod("a", nodeName="n1", labels={"app": "x"}))
        await client.create(budget("b", {"app": "x"}, minAvailable=0))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await client.patch("pods", "a", "default", {"status": ready}, "status")
        counts = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 0, "disruptionsAllowed": 1}
        await client.patch("poddisruptionbudgets", "b", "default", {"status": counts}, "status")
        before = cluster.etcd.revision
        request = api_pb2.EvictRequest(namespace="default", name="a", dry_run=["All"])
        assert (await stub.Evict(request)).object
        assert cluster.etcd.revision == before
        await client.patch("poddisruptionbudgets", "b", "default", {"status": {"disruptionsAllowed": 0}}, "status")
        assert isinstance(await refused(stub.Evict(request)), errors.TooManyRequests)
        assert not [one for one in cluster.recorder.of("api.request") if one["verb"] == "evict"], "nothing happened"

    run(main)


def test_unknown_fields_of_a_patch() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        await stub.Create(create({"metadata": {"name": "c"}, "data": {"a": "1"}}, "configmaps"))
        change = {"data": {"b": "2"}, "dta": {"x": 1}, "metadata": {"lables": {}}}
        response = await stub.Patch(patch(change, options={"field_validation": "Warn"}))
        assert sorted(response.warnings) == ['unknown field "dta"', 'unknown field "metadata.lables"']
        assert dict(core_v1_pb2.ConfigMap.FromString(response.object).data) == {"a": "1", "b": "2"}
        error = await refused(stub.Patch(patch(change, options={"field_validation": "Strict"})))
        assert isinstance(error, errors.Invalid)
        assert 'strict decoding error: unknown field "' in str(error)
        twice = patch({})
        twice.patch = b'{"data": {"b": "2", "b": "3"}}'
        twice.options.field_validation = "Warn"
        assert list((await stub.Patch(twice)).warnings) == ['duplicate field "data.b"']

    run(main)


OF_C = {"data": {"a": "1", "c": "3"}}


def op(what: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": what, "path": path, **more}


FINALIZERS = "/metadata/finalizers"


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([op("add", "/data/d", value="4"), op("remove", "/data/c")], {"a": "1", "d": "4"}),
        ([op("test", "/data/a", value="1"), op("replace", "/data/a", value="x")], {"a": "x", "c": "3"}),
        ([{"op": "move", "from": "/data/a", "path": "/data/b"}], {"b": "1", "c": "3"}),
        ([{"op": "copy", "from": "/data/a", "path": "/data/b~1c"}, op("remove", "/data/b~1c")], OF_C["data"]),
        (
            [
                op("add", FINALIZERS, value=["a.b/c"]),
                op("add", f"{FINALIZERS}/-", value="a.b/d"),
                op("remove", f"{FINALIZERS}/-1"),
            ],
            OF_C["data"],
        ),
        ([op("remove", "/data/zzz")], None),
        ([op("test", "/data/a", value="2")], None),
        ([op("replace", "/data/zzz", value="2")], {"a": "1", "zzz": "2"} | OF_C["data"]),
        ([op("replace", "/zzz/zzz", value="2")], None),
        ([op("else", "/data/a")], None),
        ([{"op": "add"}], None),
        ([op("add", "/nothing/here", value="2")], None),
        ([op("add", "/metadata/name/x", value="2")], None),
    ],
)
def test_json_patches(operations: list[dict[str, Any]], data: dict[str, str] | None) -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        await stub.Create(create({"metadata": {"name": "c"}, **OF_C}, "configmaps"))
        request = patch(operations, api_pb2.PatchRequest.JSON)
        if data is None:
            error = await refused(stub.Patch(request))
            assert isinstance(error, errors.Invalid)
            assert str(error) == "the server rejected our request due to an error in our request"
        else:
            response = await stub.Patch(request)
            assert dict(core_v1_pb2.ConfigMap.FromString(response.object).data) == data
        error = await refused(stub.Patch(patch({"op": 1}, api_pb2.PatchRequest.JSON)))
        assert isinstance(error, errors.BadRequest)
        assert "cannot unmarshal object into Go value of type []handlers.jsonPatchOp" in str(error)

    run(main)


def test_scale_is_a_small_object_of_its_own() -> None:
    async def main(cluster: Cluster) -> None:
        stub, client = cluster.stub(), cluster.client
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "x"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        created = await client.create(
            convert.from_json(apps_v1_pb2.Deployment, {"metadata": {"name": "c", "namespace": "default"}, "spec": spec})
        )
        get = api_pb2.GetRequest(name="c", subresource="scale")
        get.resource.resource, get.resource.namespace = "deployments", "default"
        scale = autoscaling_v1_pb2.Scale.FromString((await stub.Get(get)).object)
        assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (1, 0, "a=b")
        assert scale.metadata.uid == created.metadata.uid
        assert scale.metadata.resourceVersion == created.metadata.resourceVersion
        update = api_pb2.UpdateRequest(subresource="scale")
        update.resource.resource, update.resource.namespace = "deployments", "default"
        scale.spec.replicas = 2
        update.object = scale.SerializeToString()
        scale = autoscaling_v1_pb2.Scale.FromString((await stub.Update(update)).object)
        assert scale.spec.replicas == 2
        now = await client.get("deployments", "c", "default")
        assert (now.spec.replicas, now.metadata.generation) == (2, 2)
        assert isinstance(await refused(stub.Update(update)), errors.Conflict), "its resource version is old"
        changed = patch({"spec": {"replicas": 5}}, plural="deployments", subresource="scale")
        assert autoscaling_v1_pb2.Scale.FromString((await stub.Patch(changed)).object).spec.replicas == 5
        changed = patch({"spec": {"replicas": -1}}, plural="deployments", subresource="scale")
        error = await refused(stub.Patch(changed))
        assert str(error) == (
            'Scale.autoscaling "c" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
        )
        get.resource.resource = "pods"
        assert isinstance(await refused(stub.Get(get)), errors.NotFound)

    run(main)


def test_what_stays_as_it_was() -> None:
    """A patch of kemu's own actors that says nothing about validation is refused with all of its mistakes."""

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        error = await refusal(errors.BadRequest, cluster.client.patch("pods", "a", "default", {"spec": {"foo": 1}}))
        assert "spec.foo" in str(error)

    run(main)


def test_errors_name_the_group_of_what_they_are_about() -> None:
    """``Status.details.group``, which clients of Kubernetes print."""

    async def main(cluster: Cluster) -> None:
        for plural, group in (("pods", ""), ("deployments", "apps"), ("leases", "coordination.k8s.io")):
            error = await refusal(errors.NotFound, cluster.client.get(plural, "nope", "default"))
            assert statuses.of_error(error).details.group == group
        wrong = await refused(cluster.stub().Create(create("{}", dry_run=["Foo"])))
        assert statuses.of_error(wrong).details.group == "meta.k8s.io"

    run(main)
