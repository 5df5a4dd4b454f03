"""Priority and fairness. ``fairness.json`` holds what Kubernetes v1.36.3 answers: ``go run ./flows`` in
``tests/conformance/recorder``."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

import kemu
from kemu import errors
from kemu.emulated.apiserver.fairness import fairness, lending, levels
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.kinds import flow_defaults
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s import flowcontrol_v1_pb2 as flow
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS
from tests.apiserver.apiserver_cluster import Cluster, pod, run, watch_request

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("fairness.json").read_text())
QUEUES = [one for one in RECORDED if one["Kind"] == "queues"]
MICROSECOND_NS = 1000


class ByHand:
    """A clock that goes from one event to the next."""

    def __init__(self) -> None:
        self.now = 0
        self._events: list[Any] = []
        self._number = 0

    def now_ns(self) -> int:
        return self.now

    def call_at_ns(self, when_ns: int, do: Callable[..., object], *args: object, background: bool = False) -> Any:
        self._number += 1
        event = [when_ns, self._number, do, args]
        heapq.heappush(self._events, event)

        class Handle:
            def cancel(self) -> None:
                event[2] = lambda *args: None

        return Handle()

    def run(self, until_ns: int) -> None:
        while self._events and self._events[0][0] <= until_ns:
            self.now, _, do, args = heapq.heappop(self._events)
            do(*args)
        self.now = until_ns


def spec_of(case: dict[str, Any]) -> flow.PriorityLevelConfigurationSpec:
    spec = flow.PriorityLevelConfigurationSpec(type="Limited")
    response = spec.limited.limitResponse
    response.type = "Queue" if case.get("Queues") else "Reject"
    if case.get("Queues"):
        queuing = response.queuing
        queuing.queues, queuing.handSize = case["Queues"], case["Hand"]
        queuing.queueLengthLimit = case["QueueLimit"]
    return spec


def begins(case: dict[str, Any]) -> list[int]:
    """When each request begins, in µs; -1: it is refused."""
    clock: Any = ByHand()
    found = [-1] * len(case["Requests"])
    lasting = [one[1] for one in case["Requests"]]

    def begin(ticket: levels.Ticket) -> None:
        found[ticket.work] = clock.now // MICROSECOND_NS
        clock.call_at_ns(clock.now + lasting[ticket.work] * MICROSECOND_NS, level.leave, ticket)

    level = levels.Level("level", clock, begin, lambda ticket, error: None)
    level.configure(spec_of(case))
    level.resize(case["Limit"])
    counts = levels.Counts()

    def arrive(number: int, linger_us: int, hand: int, seats: int, final: int) -> None:
        ticket = levels.Ticket(level, counts, number, seats, final, linger_us * MICROSECOND_NS)
        try:
            level.enter(ticket, levels.hand_of(hand, case["Queues"], case["Hand"]) if case.get("Queues") else ())
        except errors.TooManyRequests:
            return
        if not ticket.is_waiting:
            begin(ticket)

    if "Later" in case:
        clock.call_at_ns(case["LaterUs"] * MICROSECOND_NS, level.resize, case["Later"])
    for number, (at_us, _, linger_us, hand, seats, final, _) in enumerate(case["Requests"]):
        clock.call_at_ns(at_us * MICROSECOND_NS, arrive, number, linger_us, int(hand), seats, final)
    clock.run(14 * 10**9)
    return found


@pytest.mark.parametrize("case", QUEUES, ids=range(len(QUEUES)))
def test_requests_begin_when_they_do_in_kubernetes(case: dict[str, Any]) -> None:
    assert begins(case) == [one[-1] for one in case["Requests"]]


def test_seats_are_shared_as_in_kubernetes() -> None:
    for one in RECORDED:
        if one["Kind"] == "shares":
            claims = [lending.Claim(least, most, target) for target, least, most in one["Claims"]]
            assert lending.shares(one["Limit"], claims) == pytest.approx(one["Shares"], abs=1e-6)


# --- A server ---------------------------------------------------------------------------------------------------------

TEN = {"seats": 10, "service_time": 1.0}


def level_of(name: str, shares: int, **response: Any) -> flow.PriorityLevelConfiguration:
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": 0, "borrowingLimitPercent": 0}
    limit = {"type": "Queue", "queuing": response} if response else {"type": "Reject"}
    spec = {"type": "Limited", "limited": {**limited, "limitResponse": limit}}
    found = {"metadata": {"name": name}, "spec": spec}
    return convert.from_json(flow.PriorityLevelConfiguration, found)


def schema_of(level: str, *users: str, by: str = "") -> flow.FlowSchema:
    subjects = [{"kind": "User", "user": {"name": name}} for name in users]
    all_ = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    rules = [{"subjects": subjects, "resourceRules": [all_]}]
    spec = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": 50, "rules": rules}
    if by:
        spec["distinguisherMethod"] = {"type": by}
    return convert.from_json(flow.FlowSchema, {"metadata": {"name": f"of-{level}"}, "spec": spec})


async def get(cluster: Cluster, user: str) -> int:
    """Returns after how many seconds there is an answer; negative: 429."""
    request = api_pb2.GetRequest(name="none")
    request.resource.resource = "nodes"
    start_ns = cluster.clock.now_ns()
    metadata = (("kemu-as", user),) if user else ()
    try:
        await cluster.stub(0, "gateway").Get(request, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        seconds = round((cluster.clock.now_ns() - start_ns) / SECOND_NS)
        return -1 if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED else seconds
    raise AssertionError("there is no such node")


async def rejects(cluster: Cluster) -> None:
    """Alice's level has two of ten seats, and nobody waits for them."""
    for one in (level_of("small", 1), schema_of("small", "alice")):
        await cluster.client.create(one)
    told = await asyncio.gather(*(get(cluster, "alice") for _ in range(5)), *(get(cluster, "") for _ in range(20)))
    assert sorted(told[:5]) == [-1, -1, -1, 1, 1]
    assert told[5:] == [1] * 20, "the administrator is exempt"
    (small,) = [one for one in (await cluster.stub().Levels(api_pb2.LevelsRequest())).levels if one.name == "small"]
    assert (small.nominal, small.now) == (2, 2)
    assert [(one.dispatched, dict(one.rejected)) for one in small.schemas] == [(2, {"concurrency-limit": 3})]
    assert len(cluster.recorder.of("api.throttled")) == 3


def test_a_level_rejects_what_finds_no_seat() -> None:
    run(rejects, servers=(TEN,))


@pytest.mark.parametrize("limit", ["_has_room", "is_on"])
def test_a_level_without_limit_is_found(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit == "_has_room":
        monkeypatch.setattr(levels.Level, "_has_room", lambda level, ticket: True)
    else:
        monkeypatch.setattr(fairness.Fairness, "is_on", False)
    with pytest.raises(AssertionError):
        run(rejects, servers=(TEN,))


@pytest.mark.parametrize("by", ["ByUser", ""])
def test_users_wait_in_queues_of_their_own_where_a_schema_tells_them_apart(by: str) -> None:
    async def main(cluster: Cluster) -> None:
        queues = level_of("shared", 1, queues=64, handSize=4, queueLengthLimit=50)
        for one in (queues, schema_of("shared", "alice", "bob", by=by)):
            await cluster.client.create(one)
        many = [asyncio.ensure_future(get(cluster, "bob")) for _ in range(20)]
        await cluster.clock.sleep(0.1)
        seconds = await get(cluster, "alice")
        assert (seconds <= 3) is bool(by), seconds
        assert sorted(await asyncio.gather(*many))[:2] == [1, 1]

    run(main, servers=(TEN,))


def test_who_waits_too_long_is_refused() -> None:
    async def main(cluster: Cluster) -> None:
        for one in (level_of("small", 1, queues=2, handSize=1, queueLengthLimit=50), schema_of("small", "alice")):
            await cluster.client.create(one)
        told = await asyncio.gather(*(get(cluster, "alice") for _ in range(60)))
        # Two seats of a second each for 15 s, and those that have begun then.
        assert sum(one < 0 for one in told) == 60 - 32

    run(main, servers=({**TEN, "service_time": 0.999},))


def test_a_watch_takes_a_seat_until_it_has_begun() -> None:
    async def main(cluster: Cluster) -> None:
        for one in (level_of("small", 1, queues=2, handSize=1, queueLengthLimit=50), schema_of("small", "alice")):
            await cluster.client.create(one)
        await cluster.client.create(pod("p"))
        busy = [asyncio.ensure_future(get(cluster, "alice")) for _ in range(4)]
        await cluster.clock.sleep(0.1)
        start_ns = cluster.clock.now_ns()
        call = cluster.stub(0, "gateway").Watch(metadata=(("kemu-as", "alice"),))
        await call.write(watch_request(1))
        await call.write(watch_request(2))
        cancel = api_pb2.WatchRequest()
        cancel.cancel.watch_id = 2
        await call.write(cancel)
        events = (await call.read()).events
        assert {one.watch_id for one in events} == {1}
        assert round((cluster.clock.now_ns() - start_ns) / SECOND_NS) == 2
        await asyncio.gather(*busy)
        assert await get(cluster, "alice") == 1, "its seat is free"

    run(main, servers=({**TEN, "authorization": ["AlwaysAllow"]},))


def test_lists_are_as_wide_as_their_objects_are_big() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(25):
            found = core_v1_pb2.ConfigMap(data={"text": "x" * 10_000})
            found.metadata.name, found.metadata.namespace = f"c{number}", "default"
            await cluster.client.create(found)
        for one in (level_of("wide", 50, queues=2, handSize=1, queueLengthLimit=50), schema_of("wide", "alice")):
            await cluster.client.create(one)
        request = api_pb2.ListRequest()
        request.resource.resource = "configmaps"

        async def seats(**more: Any) -> int:
            request.limit = 0
            request.MergeFrom(api_pb2.ListRequest(**more))
            call = cluster.stub(0, "gateway").List(request, metadata=(("kemu-as", "alice"),))
            await cluster.clock.sleep(0.5)
            told = (await cluster.stub().Levels(api_pb2.LevelsRequest())).levels
            await call
            return sum(schema.executing_seats for one in told if one.name == "wide" for schema in one.schemas)

        assert await seats() == 3, "250 kB"
        assert await seats(limit=5) == 1
        assert await seats(field_selector="metadata.name=c1") == 1, "whoever listed all of them before"

    run(main, servers=({"seats": 100, "service_time": 1.0, "authorization": ["AlwaysAllow"]},))


def test_levels_lend_what_they_do_not_need_as_in_kubernetes() -> None:
    """The limits that kube-apiserver v1.36.3 told of a cluster that was idle but for four requests of administrators
    at once."""

    async def main(cluster: Cluster) -> None:
        for one in (*flow_defaults.LEVELS, *flow_defaults.SCHEMAS):
            await cluster.client.create(one)
        await cluster.clock.sleep(60)
        await asyncio.gather(*(get(cluster, "") for _ in range(4)))
        await cluster.clock.sleep(10)
        told = (await cluster.stub().Levels(api_pb2.LevelsRequest())).levels
        assert {one.name: one.now for one in told} == {
            "catch-all": 30, "exempt": 4, "global-default": 56, "leader-election": 58, "node-high": 170,
            "system": 117, "workload-high": 114, "workload-low": 56,
        }  # fmt: skip
        assert {one.name: (one.nominal, one.least, one.most) for one in told if one.name.startswith("w")} == {
            "workload-high": (98, 49, 698), "workload-low": (245, 24, 845),
        }  # fmt: skip

    run(main, servers=({"service_time": 0.1},))


def test_a_scenario_brings_schemas_that_slow_its_kubelets() -> None:
    def throttled(*objects: flow.FlowSchema | flow.PriorityLevelConfiguration) -> int:
        containers = [{"name": "main"}]
        events = [
            {"at": "2s", "create": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"},
                                    "spec": {"containers": containers}}}
            for number in range(12)
        ]  # fmt: skip
        spec = {
            "nodes": [{"namePrefix": "node-", "count": 6}],
            "duration": "30s",
            "timing": {"apiService": "500ms"},
            "apiServers": {"maxRequestsInFlight": 6, "maxMutatingRequestsInFlight": 0},
            "manifests": [convert.to_manifest(one) for one in objects],
            "events": events,
        }
        found = kemu.run(spec)
        assert len(found.pods) == 12
        assert all(pod.bound_s is not None for pod in found.pods.values()), "the scheduler is not concerned"
        return int(found.counts["requests_throttled"])

    nodes = schema_of("small", "unused")
    nodes.spec.rules[0].subjects[0].CopyFrom(flow.Subject(kind="Group", group=flow.GroupSubject(name="system:nodes")))
    assert throttled(level_of("small", 1), nodes) > 5
    assert throttled() == 0
