"""An API server that cannot keep up: bounded, fair, and its clients come again when it says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

import kemu
from kemu import errors
from kemu.emulated.apiserver import flows
from kemu.emulated.client.clients import Client
from kemu.lab.checks.history import History
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim
from tests.apiserver.apiserver_cluster import Cluster, node, pod, run

SLOW = {"seats": 1, "queue_limit": 3, "service_time": 1.0}


def get_calls(first: int, count: int) -> api_pb2.SessionRequest:
    request = api_pb2.SessionRequest()
    for number in range(first, first + count):
        call = request.calls.add(id=number)
        call.get.resource.resource, call.get.name = "nodes", "n1"
    return request


# --- The queues -------------------------------------------------------------------------------------------------------


def of_flows(seats: int, queue_limit: int, play: Callable[[flows.Flows, SimRuntime, list[Any]], Any]) -> None:
    async def main(runtime: SimRuntime) -> None:
        expired: list[Any] = []
        found = flows.Flows(runtime.env("server"), seats, queue_limit, lambda one, _: expired.append(one.work))
        await play(found, runtime, expired)

    sim(main)


def test_clients_that_wait_get_seats_in_turn() -> None:
    async def play(found: flows.Flows, runtime: SimRuntime, expired: list[Any]) -> None:
        assert found.enter("a", "a0")
        assert not found.enter("a", "a1")
        for work in ("a2", "a3", "b1", "b2", "c1"):
            assert not found.enter(work[0], work)
        assert [found.leave() for _ in range(7)] == ["a1", "b1", "c1", "a2", "b2", "a3", None]
        assert found.enter("d", "d0"), "the seat is free again"

    of_flows(1, 10, play)


def test_a_queue_is_bounded_and_those_of_others_are_not_concerned() -> None:
    async def play(found: flows.Flows, runtime: SimRuntime, expired: list[Any]) -> None:
        found.enter("a", 0)
        for number in range(2):
            found.enter("a", number)
        with pytest.raises(errors.TooManyRequests, match="Too many requests") as refused:
            found.enter("a", 3)
        assert refused.value.retry_after_s == 1
        assert not found.enter("b", 1)

    of_flows(1, 2, play)


def test_who_waits_too_long_is_refused_and_takes_no_seat() -> None:
    async def play(found: flows.Flows, runtime: SimRuntime, expired: list[Any]) -> None:
        found.enter("a", 0)
        found.enter("a", 1)
        waiting = asyncio.ensure_future(found.seat("b"))
        await runtime.clock.sleep(10)
        found.enter("c", 2)
        await runtime.clock.sleep(6)
        assert expired == [1]
        with pytest.raises(errors.TooManyRequests):
            await waiting
        assert found.leave() == 2
        await runtime.clock.sleep(20)
        assert expired == [1]
        assert found.leave() is None

    of_flows(1, 10, play)


def test_a_seat_that_is_given_to_somebody_who_gives_up_goes_on() -> None:
    async def play(found: flows.Flows, runtime: SimRuntime, expired: list[Any]) -> None:
        found.enter("a", 0)
        first, second = (runtime.env("x").spawn(found.seat(by), by) for by in "bc")
        await runtime.clock.sleep(1)
        found.leave()  # the seat is the first one's, which does not know yet
        first.cancel()
        await second

    of_flows(1, 10, play)


def test_the_pace_doubles_while_many_are_refused_and_falls_by_one_a_second() -> None:
    pace = flows.Pace()
    told = [[pace.refused(second) for _ in range(50)][-1] for second in range(40)]
    assert told[:8] == [1, 2, 2, 4, 4, 4, 4, 8]
    assert told[14:16] == [8, 16]
    assert told[30:] == [16] + [flows.LONGEST_RETRY_AFTER_S] * 9
    assert [pace.refused(200 + second) for second in range(3)] == [31, 30, 29]


# --- The server and its clients ---------------------------------------------------------------------------------------


def test_refused_requests_are_sent_again_when_the_server_said() -> None:
    async def main(cluster: Cluster) -> None:
        start_ns = cluster.clock.now_ns()
        created = await asyncio.gather(*(cluster.client.create(pod(f"p{number}")) for number in range(8)))
        assert [one.metadata.name for one in created] == [f"p{number}" for number in range(8)]
        assert cluster.clock.now_ns() - start_ns >= 8 * SECOND_NS, "one after the other, a second each"
        throttled = cluster.recorder.of("api.throttled")
        assert len(throttled) >= 4
        assert throttled[0] == {"by": "user", "verb": "create", "retry_after_s": 1}
        assert not cluster.refused()
        history = History()
        for event in cluster.recorder.events:
            history.feed(*event)
        assert history.counts["requests_throttled"] == len(throttled)

    run(main, servers=(SLOW,))


def test_a_client_gives_up_after_ten_attempts() -> None:
    async def main(cluster: Cluster) -> None:
        hog = cluster.stub(0, "hog").Session()
        await hog.write(get_calls(0, 1))
        await cluster.clock.sleep(0.1)
        with pytest.raises(errors.TooManyRequests) as refused:
            await cluster.client.get("nodes", "n1")
        assert refused.value.retry_after_s
        assert len(cluster.recorder.of("api.throttled")) == 11

    run(main, servers=({"seats": 1, "queue_limit": 0, "service_time": 1000.0},))


def test_a_client_without_patience_gives_up_when_the_next_attempt_would_come_too_late() -> None:
    async def main(cluster: Cluster) -> None:
        hog = cluster.stub(0, "hog").Session()
        await hog.write(get_calls(0, 1))
        await cluster.clock.sleep(0.1)
        cluster.client.be_impatient((core_v1_pb2.Node,), round(2.5 * SECOND_NS))
        start_ns = cluster.clock.now_ns()
        with pytest.raises(errors.TooManyRequests):
            await cluster.client.get("nodes", "n1")
        assert cluster.clock.now_ns() - start_ns == round(2.5 * SECOND_NS)
        assert [entry["retry_after_s"] for entry in cluster.recorder.of("api.throttled")] == [1, 1, 1]
        other = asyncio.ensure_future(cluster.client.get("pods", "p"))
        await cluster.clock.sleep(5)
        assert not other.done(), "that is of other objects"
        other.cancel()

    run(main, servers=({"seats": 1, "queue_limit": 0, "service_time": 1000.0},))


def test_unary_callers_learn_when_to_try_again() -> None:
    async def main(cluster: Cluster) -> None:
        session = cluster.stub(0, "writer").Session()
        await session.write(get_calls(0, 1))
        await cluster.clock.sleep(0.1)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await cluster.stub(0, "other").Get(api_pb2.GetRequest(name="n1"))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        details = {one.type_url.rpartition(".")[2]: one for one in rpc_status.from_call(refused.value).details}
        retry = error_details_pb2.RetryInfo()
        details["RetryInfo"].Unpack(retry)
        assert retry.retry_delay.seconds == 1

    run(main, servers=({**SLOW, "queue_limit": 0},))


def test_unary_calls_and_sessions_share_the_seats() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        get = api_pb2.GetRequest(name="n1")
        get.resource.resource = "nodes"
        start_ns = cluster.clock.now_ns()
        session = cluster.stub(0, "writer").Session()
        await session.write(get_calls(0, 2))
        answers = asyncio.gather(*(cluster.stub(0, f"other{number}").Get(get) for number in range(2)))
        replies = [reply for _ in range(2) for reply in (await session.read()).replies]
        for found in await answers:
            assert core_v1_pb2.Node.FromString(found.object).metadata.name == "n1"
        assert [reply.id for reply in replies] == [0, 1]
        assert cluster.clock.now_ns() - start_ns >= 4 * SECOND_NS

    run(main, servers=(SLOW,))


def test_a_greedy_client_does_not_starve_the_others() -> None:
    async def main(cluster: Cluster) -> None:
        greedy = Client(cluster.runtime.env("greedy"), "apiserver/0")
        many = [asyncio.ensure_future(greedy.list("pods")) for _ in range(900)]
        await cluster.clock.sleep(1)
        start_ns = cluster.clock.now_ns()
        await cluster.client.create(pod("p"))
        assert cluster.clock.now_ns() - start_ns < SECOND_NS / 10, "it is next, before the 900"
        await asyncio.gather(*many)

    run(main, servers=({"seats": 5, "service_time": 0.05},))


def test_watches_take_no_seat() -> None:
    async def main(cluster: Cluster) -> None:
        watches = [await cluster.watch(name=f"w{number}").start() for number in range(10)]
        await cluster.client.create(pod("p"))
        for watch in watches:
            assert (await watch.take(2))[1] == ("ADDED", "p")
        assert not cluster.recorder.of("api.throttled")

    run(main, servers=({**SLOW, "queue_limit": 0},))


def test_what_a_client_has_asked_is_forgotten_when_it_goes() -> None:
    async def main(cluster: Cluster) -> None:
        session = cluster.stub(0, "gone").Session()
        await session.write(get_calls(0, 4))
        await cluster.clock.sleep(0.5)
        session.cancel()
        start_ns = cluster.clock.now_ns()
        await cluster.client.create(pod("p"))
        assert cluster.clock.now_ns() - start_ns < 2 * SECOND_NS, "after the request in service, no other"

    run(main, servers=(SLOW,))


def test_a_burst_of_one_client_is_no_overload_by_default() -> None:
    async def main(cluster: Cluster) -> None:
        await asyncio.gather(*(cluster.client.list("pods") for _ in range(20_000)))
        assert not cluster.recorder.of("api.throttled")

    run(main)


def test_requests_take_the_time_of_the_scenario_and_those_of_the_set_up_none() -> None:
    spec = {
        "nodes": [{"name": "node-1"}],
        "timing": {"apiService": "100ms"},
        "manifests": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}],
        "events": [
            {"at": "5s", "create": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                                    "spec": {"containers": [{"name": "main"}]}}}
        ],
    }  # fmt: skip
    (pod,) = kemu.run(spec).pods.values()
    # The creation, then the binding.
    assert pod.bound_s is not None
    assert pod.bound_s >= 5.2
