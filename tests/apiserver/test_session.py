"""How requests travel: order and batches on a Session, rich errors on unary calls."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from kemu.emulated.client.sessions import error_of
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, node, pod, run

JITTER = {"storeLatency": {"uniform": {"min": 0.001, "max": 0.02}}}


def label_call(call_id: int, value: int) -> api_pb2.Call:
    call = api_pb2.Call(id=call_id)
    call.patch.resource.resource, call.patch.name = "nodes", "n1"
    call.patch.patch = b'{"metadata": {"labels": {"n": "%d"}}}' % value
    return call


def create_call(call_id: int, name: str) -> api_pb2.Call:
    call = api_pb2.Call(id=call_id)
    call.create.resource.resource = "pods"
    call.create.object = pod(name).SerializeToString()
    return call


async def answers(call: Any, count: int) -> list[api_pb2.Reply]:
    replies: list[api_pb2.Reply] = []
    while len(replies) < count:
        replies += (await call.read()).replies
    return replies


@pytest.mark.parametrize("seed", range(3))
def test_two_writes_to_one_object_keep_their_order(seed: int) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        session = cluster.stub(0, "writer").Session()
        for start in range(0, 20, 5):  # several messages, several calls in each
            await session.write(
                api_pb2.SessionRequest(calls=[label_call(number, number) for number in range(start, start + 5)])
            )
        replies = await answers(session, 20)
        assert [reply.id for reply in replies] == list(range(20))
        nodes = [core_v1_pb2.Node.FromString(reply.object.object) for reply in replies]
        assert [one.metadata.labels["n"] for one in nodes] == [str(number) for number in range(20)]

    run(main, seed=seed, timing=JITTER)


def test_a_create_and_what_follows_it_need_no_round_trip() -> None:
    async def main(cluster: Cluster) -> None:
        session = cluster.stub(0, "writer").Session()
        bind = api_pb2.Call(id=2)
        bind.bind.namespace, bind.bind.name, bind.bind.node = "default", "a", "n1"
        delete = api_pb2.Call(id=3)
        delete.delete.resource.resource, delete.delete.resource.namespace = "pods", "default"
        delete.delete.name = "a"
        delete.delete.grace_period_seconds = 0
        await session.write(api_pb2.SessionRequest(calls=[create_call(1, "a"), bind, delete]))
        replies = await answers(session, 3)
        assert [reply.WhichOneof("result") for reply in replies] == ["object"] * 3
        assert core_v1_pb2.Pod.FromString(replies[2].object.object).spec.nodeName == "n1"

    run(main, timing=JITTER)


def test_requests_for_different_objects_do_not_wait_for_each_other() -> None:
    async def main(cluster: Cluster) -> None:
        start_ns = cluster.clock.now_ns()
        await asyncio.gather(*(cluster.client.create(pod(f"p{number}")) for number in range(100)))
        assert cluster.clock.now_ns() - start_ns == 4_000_000, "one way to the server, one to the store, and back"

    run(main)


def test_replies_of_one_tick_go_in_one_message() -> None:
    async def main(cluster: Cluster) -> None:
        session = cluster.stub(0, "writer").Session()
        calls = [create_call(number, f"p{number}") for number in range(50)]
        bad = api_pb2.Call(id=50)
        await session.write(api_pb2.SessionRequest(calls=[*calls, bad]))
        first = await session.read()
        assert [reply.id for reply in first.replies] == [50]
        assert error_of(first.replies[0].error).reason == "BadRequest"
        second = await session.read()
        assert len(second.replies) == 50

    run(main)


def test_large_answers_are_split_between_messages() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(10):
            big = pod(f"p{number}")
            big.metadata.annotations["text"] = "x" * 100_000
            await cluster.client.create(big)
        await cluster.clock.sleep(1)
        request = api_pb2.SessionRequest()
        for number in range(10):
            call = request.calls.add(id=number)
            call.list.resource.resource = "pods"
            call.list.resource_version = "0"
        session = cluster.stub(0, "reader").Session()
        await session.write(request)
        seen = 0
        while seen < 10:
            response = await session.read()
            assert response.ByteSize() < 3 << 20
            seen += len(response.replies)

    run(main)


def test_a_client_that_says_no_more_still_gets_its_answers() -> None:
    async def main(cluster: Cluster) -> None:
        session = cluster.stub(0, "writer").Session()
        await session.write(api_pb2.SessionRequest(calls=[create_call(number, f"p{number}") for number in range(3)]))
        await session.done_writing()
        assert len(await answers(session, 3)) == 3
        assert await session.read() is grpc.aio.EOF

    run(main)


def test_a_client_that_goes_away_does_not_take_its_requests_back() -> None:
    async def main(cluster: Cluster) -> None:
        session = cluster.stub(0, "writer").Session()
        await session.write(api_pb2.SessionRequest(calls=[create_call(1, "a")]))
        await cluster.clock.sleep(0.0015)
        session.cancel()
        await cluster.clock.sleep(1)
        assert (await cluster.client.get("pods", "a", "default")).metadata.name == "a"

    run(main)


@pytest.mark.parametrize("cancel_after_ms", [1.5, 2.5, 3, 3.5, 5, 6])
def test_unary_calls_that_are_cancelled_hold_up_nobody(cancel_after_ms: float) -> None:
    """While they wait for their turn, in the moment they get it, or while they have it."""

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))

        def patching(number: int) -> Any:
            patch = b'{"metadata": {"labels": {"n": "%d"}}}' % number
            request = api_pb2.PatchRequest(resource={"resource": "nodes"}, name="n1", patch=patch)
            return cluster.stub(0, f"user{number}").Patch(request)

        calls = [patching(number) for number in range(6)]
        await cluster.clock.sleep(cancel_after_ms / 1000)
        for call in calls[:4]:
            call.cancel()
        for call in calls[4:]:
            await call
        patched = core_v1_pb2.Node.FromString((await patching(7)).object)
        assert patched.metadata.labels["n"] == "7"

    run(main)


def test_unary_errors_say_everything() -> None:
    async def main(cluster: Cluster) -> None:
        bad = pod("a", restartPolicy="Sometimes")
        request = api_pb2.CreateRequest(object=bad.SerializeToString())
        request.resource.resource = "pods"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await cluster.stub().Create(request)
        error = caught.value
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert error.details().startswith('Pod "a" is invalid: spec.restartPolicy: Unsupported value')
        raw = dict(error.trailing_metadata())["grpc-status-details-bin"]
        status = status_pb2.Status.FromString(raw)
        assert (status.code, status.message) == (grpc.StatusCode.INVALID_ARGUMENT.value[0], error.details())
        info, request_details, kubernetes = (
            error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), meta_v1_pb2.Status(),
        )  # fmt: skip
        for detail, message in zip(status.details, (info, request_details, kubernetes), strict=True):
            assert detail.Unpack(message)
        assert (info.reason, dict(info.metadata)) == ("Invalid", {"kind": "Pod", "name": "a"})
        assert [one.field for one in request_details.field_violations] == ["spec.restartPolicy"]
        assert (kubernetes.code, kubernetes.reason, kubernetes.status) == (422, "Invalid", "Failure")
        assert kubernetes.details.causes[0].reason == "FieldValueNotSupported"
        assert rpc_status.from_call is not None

    run(main)


@pytest.mark.parametrize(
    ("method", "request_", "code"),
    [
        ("Get", api_pb2.GetRequest(resource={"resource": "pods", "namespace": "default"}, name="a"), "NOT_FOUND"),
        ("Get", api_pb2.GetRequest(resource={"resource": "pods"}, name="a"), "INVALID_ARGUMENT"),
        ("Get", api_pb2.GetRequest(resource={"resource": "pods", "namespace": "default"}), "INVALID_ARGUMENT"),
        ("Get", api_pb2.GetRequest(resource={"resource": "widgets"}, name="a"), "NOT_FOUND"),
        ("Delete", api_pb2.DeleteRequest(resource={"resource": "namespaces"}, name="default"), "PERMISSION_DENIED"),
        ("Bind", api_pb2.BindRequest(namespace="default", name="bound", node="n2"), "ABORTED"),
        (
            "List",
            api_pb2.ListRequest(resource={"resource": "pods"}, resource_version="99999"),
            "DEADLINE_EXCEEDED",
        ),
    ],
)
def test_reasons_map_to_grpc_codes(method: str, request_: Any, code: str) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("bound", nodeName="n1"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await getattr(cluster.stub(), method)(request_)
        assert caught.value.code().name == code

    run(main)


def test_every_verb_works_unary() -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub()
        where = api_pb2.Resource(resource="pods", namespace="default")

        async def call(method: str, request: Any) -> core_v1_pb2.Pod:
            return core_v1_pb2.Pod.FromString((await getattr(stub, method)(request)).object)

        created = await call("Create", api_pb2.CreateRequest(resource=where, object=pod("a").SerializeToString()))
        created.metadata.labels["x"] = "1"
        updated = await call("Update", api_pb2.UpdateRequest(resource=where, object=created.SerializeToString()))
        updated.status.phase = "Running"
        await call("UpdateStatus", api_pb2.UpdateStatusRequest(resource=where, object=updated.SerializeToString()))
        patched = await call(
            "Patch", api_pb2.PatchRequest(resource=where, name="a", patch=b'{"metadata": {"labels": {"y": "2"}}}')
        )
        bound = await call("Bind", api_pb2.BindRequest(namespace="default", name="a", node="n1"))
        assert dict(bound.metadata.labels) == dict(patched.metadata.labels) == {"x": "1", "y": "2"}
        assert await call("Get", api_pb2.GetRequest(resource=where, name="a")) == bound
        assert len((await stub.List(api_pb2.ListRequest(resource=where))).items) == 1
        evicted = await call("Evict", api_pb2.EvictRequest(namespace="default", name="a"))
        assert evicted.metadata.HasField("deletionTimestamp")
        await call("Delete", api_pb2.DeleteRequest(resource=where, name="a", grace_period_seconds=0))
        assert len((await stub.List(api_pb2.ListRequest(resource=where))).items) == 0

    run(main)
