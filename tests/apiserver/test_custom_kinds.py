"""Custom kinds on API servers in virtual time: several of them, restarts, watches, the end of a definition."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client.clients import Client
from kemu.emulated.client.informers import Callbacks, Informer
from kemu.emulated.objects import custom_kinds, meta
from kemu.emulated.objects.conversion import convert, custom_objects
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject, CustomResourceDefinition
from kemu.messages.v1 import api_pb2
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim
from tests.apiserver.apiserver_cluster import Cluster, refusal, run
from tests.apiserver.test_with_store import STORE, server

WIDGETS = "widgets.example.com"


def definition(**properties: Any) -> CustomResourceDefinition:
    spec = {"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    data = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": WIDGETS},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}},
                {"name": "v2", "served": True, "storage": False, "schema": schema, "subresources": {"status": {}}},
            ],
        },
    }
    found = convert.from_manifest(data)
    assert isinstance(found, CustomResourceDefinition)
    return found


def widget(name: str, version: str = "v1", **spec: Any) -> CustomObject:
    data = {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
    found = convert.from_manifest(data)
    assert isinstance(found, CustomObject)
    found.metadata.namespace = "default"
    return found


async def established(client: Client) -> custom_kinds.CustomResource:
    while True:
        found = await client.custom_kind("example.com", "Widget")
        if found is not None:
            return found
        await asyncio.sleep(0.01)


async def begin(cluster: Cluster, **properties: Any) -> None:
    await cluster.client.create(definition(**properties))
    await established(cluster.client)
    await cluster.clock.sleep(3)


def test_an_object_travels_through_several_servers_and_versions() -> None:
    async def main(cluster: Cluster) -> None:
        await begin(cluster)
        made = await cluster.client.create(widget("a", size=1), WIDGETS)
        assert (made.apiVersion, made.metadata.generation) == ("example.com/v1", 1)
        other = cluster.client_of(1)
        await cluster.clock.sleep(1)
        found = await other.get(WIDGETS, "a", "default")
        assert custom_objects.content(found) == {"spec": {"size": 1}}
        where = api_pb2.Resource(resource=WIDGETS, namespace="default", version="v2")
        answer = await cluster.stub(1).Get(api_pb2.GetRequest(resource=where, name="a"))
        assert CustomObject.FromString(answer.object).apiVersion == "example.com/v2"
        second = await other.create(widget("b", "v2", size=2), WIDGETS)
        assert second.apiVersion == "example.com/v2"
        listed = await cluster.client.list(WIDGETS, "default")
        assert [one.apiVersion for one in listed.items] == ["example.com/v1", "example.com/v1"]

    run(main, servers=({}, {}))


def test_a_server_that_lags_does_not_know_the_kind_yet() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(definition())
        await established(cluster.client)
        await refusal(errors.NotFound, cluster.client_of(1).create(widget("a"), WIDGETS))
        await cluster.clock.sleep(31)
        await cluster.client_of(1).create(widget("a"), WIDGETS)

    run(main, servers=({}, {"cache_lag_s": 30.0}))


def test_creates_wait_until_all_servers_may_know_the_kind() -> None:
    async def main(cluster: Cluster) -> float:
        await cluster.client.create(definition())
        await established(cluster.client)
        begin_ns = cluster.clock.now_ns()
        await cluster.client.create(widget("a"), WIDGETS)
        return (cluster.clock.now_ns() - begin_ns) / 1e9

    assert 2.0 <= run(main) < 2.5


def test_custom_kinds_survive_the_restart_of_servers_and_store() -> None:
    async def main(runtime: SimRuntime) -> None:
        client = Client(runtime.env("user"), "apiserver/0")
        await client.create(definition())
        await established(client)
        await client.create(widget("a", size=1), WIDGETS)
        for name in ("apiserver/0", "store"):
            await runtime.crash(name)
            await runtime.clock.sleep(1)
            await runtime.restart(name)
            await runtime.clock.sleep(15)
            found = await client.get(WIDGETS, "a", "default")
            assert custom_objects.content(found) == {"spec": {"size": 1}}
        updated = meta.copied(found)
        custom_objects.put(updated, {"spec": {"size": 2}})
        assert (await client.update(updated, kind=WIDGETS)).metadata.generation == 2

    sim(main, 1, [STORE, server(0)])


def test_a_watch_goes_on_when_the_definition_changes() -> None:
    async def main(cluster: Cluster) -> list[tuple[str, str]]:
        await begin(cluster)
        seen: list[tuple[str, str]] = []
        handler = Callbacks(
            lambda obj: seen.append(("add", obj.metadata.name)),
            lambda old, new: seen.append(("update", new.metadata.name)),
            lambda obj: seen.append(("delete", obj.metadata.name)),
        )
        informer: Informer[CustomObject] = Informer(cluster.client, WIDGETS, handler=handler)
        await informer.synced()
        await cluster.client.create(widget("a"), WIDGETS)
        await cluster.clock.sleep(1)
        patch = {"spec": {"versions": convert.to_json(definition(n={"type": "integer"}).spec)["versions"]}}
        await cluster.client.patch(custom_kinds.DEFINITIONS, WIDGETS, "", patch)
        await cluster.client.create(widget("b"), WIDGETS)
        await cluster.clock.sleep(1)
        await refusal(errors.Invalid, cluster.client.create(widget("c", n="x"), WIDGETS))
        await cluster.client.delete(custom_kinds.DEFINITIONS, WIDGETS)
        await cluster.clock.sleep(10)
        return seen

    assert run(main) == [("add", "a"), ("add", "b"), ("delete", "a"), ("delete", "b")]


def test_watchers_are_told_that_the_definition_has_changed() -> None:
    async def main(cluster: Cluster) -> None:
        await begin(cluster)
        watch = cluster.watch(resource=WIDGETS, version="0")
        first = await watch.next()
        assert first.type == api_pb2.WatchEvent.BOOKMARK
        await cluster.client.delete(custom_kinds.DEFINITIONS, WIDGETS)
        last = await watch.next()
        assert (last.type, last.error) == (api_pb2.WatchEvent.ERROR, b"")

    run(main)


def test_a_definition_goes_when_the_last_of_its_objects_is_gone() -> None:
    async def main(cluster: Cluster) -> None:
        await begin(cluster)
        held = widget("held")
        held.metadata.finalizers.append("example.com/hold")
        await cluster.client.create(held, WIDGETS)
        await cluster.client.create(widget("free"), WIDGETS)
        await cluster.client.delete(custom_kinds.DEFINITIONS, WIDGETS)
        await cluster.clock.sleep(8)
        assert [one.metadata.name for one in (await cluster.client.list(WIDGETS)).items] == ["held"]
        await refusal(errors.Forbidden, cluster.client.create(widget("new"), WIDGETS))
        await cluster.client.patch(WIDGETS, "held", "default", {"metadata": {"finalizers": None}})
        await cluster.clock.sleep(8)
        await refusal(errors.NotFound, cluster.client.get(custom_kinds.DEFINITIONS, WIDGETS))
        await refusal(errors.NotFound, cluster.client.list(WIDGETS))

    run(main)


def test_one_of_two_definitions_gets_a_name_and_the_other_gets_it_later() -> None:
    def other() -> CustomResourceDefinition:
        found = definition()
        found.metadata.name, found.spec.names.plural = "gadgets.example.com", "gadgets"
        return found

    async def conditions(cluster: Cluster) -> dict[str, str]:
        found = await cluster.client.get(custom_kinds.DEFINITIONS, "gadgets.example.com")
        assert isinstance(found, CustomResourceDefinition)
        return {one.type: one.reason for one in found.status.conditions}

    async def main(cluster: Cluster) -> None:
        await begin(cluster)
        await cluster.client.create(other())
        await cluster.clock.sleep(1)
        assert await conditions(cluster) == {"NamesAccepted": "ListKindConflict", "Established": "NotAccepted"}
        await cluster.client.delete(custom_kinds.DEFINITIONS, WIDGETS)
        await cluster.clock.sleep(5)
        assert await conditions(cluster) == {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}

    run(main, servers=({}, {}))


@pytest.mark.parametrize(("versions", "order"), [
    (["v1", "v2", "v10"], ["v10", "v2", "v1"]),
    (["v1alpha1", "v1", "v2beta1", "foo", "v1beta2", "bar"], ["v1", "v2beta1", "v1beta2", "v1alpha1", "bar", "foo"]),
])  # fmt: skip
def test_versions_have_the_order_of_kubernetes(versions: list[str], order: list[str]) -> None:
    assert custom_kinds.by_priority(versions) == order


def test_kinds_of_one_cluster_are_not_those_of_another() -> None:
    async def main(cluster: Cluster) -> None:
        await begin(cluster)

    async def empty(cluster: Cluster) -> None:
        await refusal(errors.NotFound, cluster.client.list(WIDGETS))

    run(main)
    run(empty)
