"""Somebody else writes to the store what is no object, and clients send what is no patch."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from kemu import errors
from kemu.emulated.apiserver.registry.patching import patches
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, pod, refusal, run

GARBAGE = b"\xff\xff\xff"


def test_a_value_that_is_no_object_is_told_and_hurts_nobody_else() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        watch = await cluster.watch(version="0").start()
        await watch.take(2)
        cluster.etcd.change({b"/registry/pods/default/b": GARBAGE, b"/registry/pods/\xff/c": b"", b"/registry/x": b""})
        await cluster.clock.sleep(1)
        assert [data["key"] for data in cluster.recorder.of("api.corrupt")] == [
            "/registry/pods/default/b",
            "/registry/pods/\\xff/c",
        ]
        await cluster.client.create(pod("d"))
        assert await watch.take(1) == [("ADDED", "d")]
        listed = await cluster.client.list("pods", resource_version="0")
        assert [one.metadata.name for one in listed.items] == ["a", "d"]
        for request in (
            cluster.client.get("pods", "b", "default"),
            cluster.client.bind("default", "b", "", "n1"),
            cluster.client.delete("pods", "b", "default"),
            cluster.client.patch("pods", "b", "default", {"metadata": {"labels": {"a": "b"}}}),
        ):
            error = await refusal(errors.InternalError, request, cluster)
            assert error.message.startswith("unable to decode an object in the store")

    run(main)


def test_an_api_server_starts_on_such_a_store() -> None:
    async def main(cluster: Cluster) -> None:
        cluster.etcd.change({b"/registry/pods/default/b": GARBAGE})
        await cluster.runtime.crash("apiserver/0")
        await cluster.runtime.restart("apiserver/0")
        await cluster.clock.sleep(1)
        assert (await cluster.client_of(0, "other").create(pod("a"))).metadata.uid
        assert cluster.recorder.of("api.corrupt")

    run(main)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": ' * 90_000,
        b'{"a": ' * 50_000 + b"1" + b"}" * 50_000,
        b'{"a": ' + b"[" * 40_000 + b"]" * 40_000 + b"}",
        b'{"a": ' * 101 + b"1" + b"}" * 101,
    ],
)
def test_a_patch_that_is_too_deep_is_refused(text: bytes) -> None:
    with pytest.raises(errors.BadRequest, match="max depth"):
        patches.parse(text)


def test_a_patch_may_have_many_brackets_side_by_side() -> None:
    text = b'{"a": [' + b",".join([b"{}"] * 5_000) + b"]}"
    assert len(patches.parse(text)["a"]) == 5_000
    deep = b'{"a": ' * 99 + b"{}" + b"}" * 99
    assert patches.parse(deep)


async def _code(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code()


def test_a_body_of_more_than_three_mebibytes_is_refused_and_half_of_that_by_the_store() -> None:
    async def main(cluster: Cluster) -> None:
        request = api_pb2.CreateRequest(object=b"\x0a" + b"a" * (3 << 20))
        request.resource.resource = "pods"
        assert await _code(cluster.stub().Create(request)) is grpc.StatusCode.RESOURCE_EXHAUSTED

    run(main)
