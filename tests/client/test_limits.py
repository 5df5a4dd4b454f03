"""Rate limits of clients: client-go's token bucket by hand-computed times, alone and between client and API server."""

from __future__ import annotations

import asyncio
from typing import Any

import msgpack
import pytest
import yaml

import kemu
from kemu import errors
from kemu.emulated.client import clients, limits
from kemu.runtime.env import SECOND_NS
from tests.client.fake_api import pod
from tests.client.world import World

MS = 1_000_000


def _waits(rate: limits.Rate, asked_ms: list[int]) -> list[float]:
    bucket = limits.TokenBucket(rate)
    return [bucket.reserve(at * MS) / MS for at in asked_ms]


def test_a_burst_goes_at_once_and_the_rest_one_by_one() -> None:
    assert _waits(limits.Rate(10, 3), [0, 0, 0, 0, 0]) == [0, 0, 0, 100, 200]


def test_a_pause_fills_the_bucket_to_its_burst_and_no_further() -> None:
    # At 250 ms there are 2.5 tokens, at 10 s three; the half token of 250 ms is a wait of 50 ms.
    assert _waits(limits.Rate(10, 3), [0, 0, 0, 250, 250, 250]) == [0, 0, 0, 0, 0, 50]
    assert _waits(limits.Rate(10, 3), [0, 0, 0, 10_000, 10_000, 10_000, 10_000]) == [0, 0, 0, 0, 0, 0, 100]


def test_tokens_are_reserved_in_the_order_of_asking() -> None:
    # The fourth waits until 100; who asks at 50 comes after it, although its own wait is shorter than 200.
    assert _waits(limits.Rate(10, 3), [0, 0, 0, 0, 50]) == [0, 0, 0, 100, 150]


@pytest.mark.parametrize("rate", [limits.Rate(50, 100), limits.Rate(20, 30), limits.Rate(3, 7)])
def test_agrees_with_the_arithmetic_of_client_go(rate: limits.Rate) -> None:
    """``golang.org/x/time/rate``: ``tokens = min(burst, tokens + elapsed · limit) - 1``, wait ``-tokens / limit``."""
    bucket, tokens, last = limits.TokenBucket(rate), float(rate.burst), 0.0
    state = 12345
    now = 0.0
    for _ in range(3000):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        now += state / 0x7FFFFFFF * 2 / rate.qps
        tokens = min(rate.burst, tokens + (now - last) * rate.qps) - 1
        last = now
        assert bucket.reserve(round(now * 1e9)) / 1e9 == pytest.approx(max(0.0, -tokens / rate.qps), abs=1e-5)


def test_a_bucket_that_lets_nothing_through_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        limits.TokenBucket(limits.Rate(0, 10))


def test_each_bucket_counts_what_is_its_own() -> None:
    buckets = limits.Buckets(limits.of_scheduler(limits.Rate(10, 1)))
    assert [buckets.reserve(one, 0) for one in ("pods", "events", "leases", "nodes")] == [0, 0, 0, 100 * MS]
    of_kubelet = limits.Buckets(limits.of_kubelet(limits.Rate(10, 1), limits.Rate(10, 1)))
    assert [of_kubelet.reserve(one, 0) for one in ("pods", "nodes", "nodes", "leases", "leases")] == [0] * 5
    of_controller = limits.Buckets(limits.of_controller(limits.Rate(10, 1)))
    assert [of_controller.reserve("pods", 0, lists=bool(lists)) for lists in (True, True, False, False)] == [
        0,
        0,
        0,
        100 * MS,
    ]


def test_zero_is_the_default_of_client_go_and_a_negative_rate_none() -> None:
    buckets = limits.Buckets({"": limits.Rate(0, 0), "events": limits.Rate(-1, 0)})
    assert [buckets.reserve("pods", 0) for _ in range(12)] == [0] * 10 + [200 * MS, 400 * MS]
    assert [buckets.reserve("events", 0) for _ in range(999)] == [0] * 999


async def _limited(world: World, qps: float, burst: int) -> clients.Client:
    """After the set-up, in which nothing waits."""
    await world.clock.sleep(1)
    return clients.Client(world.env, "apiserver/0", limits={"": limits.Rate(qps, burst), "leases": None})


def test_requests_leave_when_they_have_their_tokens(world: World) -> None:
    async def main(world: World) -> list[float]:
        client = await _limited(world, 2, 2)
        start_ns = world.clock.now_ns()
        ended: list[float] = []

        async def create(name: str) -> None:
            await client.create(pod(name))
            ended.append(round((world.clock.now_ns() - start_ns) / SECOND_NS, 1))

        await asyncio.gather(*(create(f"p{n}") for n in range(6)))
        return ended

    assert world.play(main) == [0.0, 0.0, 0.5, 1.0, 1.5, 2.0]
    # As long as client-go warns of.
    assert [(data["request"], data["resource"], data["waited"]) for data in world.logged("client.throttled")] == [
        ("create", "pods", SECOND_NS),
        ("create", "pods", 1500 * MS),
        ("create", "pods", 2 * SECOND_NS),
    ]


def test_a_request_that_waits_for_its_token_survives_a_lost_connection(world: World) -> None:
    async def main(world: World) -> Any:
        client = await _limited(world, 1, 1)
        first = asyncio.ensure_future(client.create(pod("a")))
        second = asyncio.ensure_future(client.create(pod("b")))
        await world.clock.sleep(0.5)
        assert first.done()
        assert not second.done()
        client._session.on_lost("apiserver/0", "a test")
        return (await second).metadata.name

    assert world.play(main) == "b"


def test_a_caller_that_is_cancelled_sends_nothing(world: World) -> None:
    async def main(world: World) -> None:
        client = await _limited(world, 1, 1)
        await client.create(pod("a"))
        waiting = asyncio.ensure_future(client.create(pod("b")))
        await world.clock.sleep(0.2)
        waiting.cancel()
        await world.clock.sleep(3)
        with pytest.raises(errors.NotFound):
            await client.get("pods", "b", "default")

    world.play(main)


def test_rates_survive_a_message(world: World) -> None:
    """On Ray a config reaches its actor in msgpack, which knows no tuples."""
    rates = limits.of_controller(limits.Rate(1, 1))
    config = msgpack.unpackb(msgpack.packb({"apiserver": "apiserver/0", "limits": rates}))

    async def main(world: World) -> float:
        await world.clock.sleep(1)
        client = clients.of_actor(world.env, config)
        await asyncio.gather(*(client.create(pod(f"p{n}")) for n in range(3)))
        return world.clock.now_ns() / SECOND_NS

    assert world.play(main) == pytest.approx(3, abs=0.1)


SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: limited}
spec:
  seed: 1
  duration: 2m
  nodes: [{count: 4, namePrefix: node-, allocatable: {cpu: "64", memory: 64Gi, pods: "110"}}]
  workloads:
    - name: burst
      start: 5s
      arrivals: {every: 1ms, count: 200}
      pods: {spec: {containers: [{name: main, resources: {requests: {cpu: 100m}}}]}}
"""


def _last_bound_s(**more: Any) -> float:
    scenario = yaml.safe_load(SCENARIO)
    scenario["spec"] |= more
    run = kemu.run(scenario)
    run.check()
    return max(pod.bound_s or 0.0 for pod in run.pods.values()) - 5


def test_the_scheduler_of_kubernetes_binds_fifty_a_second_after_its_burst() -> None:
    assert _last_bound_s() < 1
    # 200 bindings less a burst of 100, which has filled up again since the informers listed, at 50 a second.
    assert _last_bound_s(timing={"clientLimits": "kubernetes"}) == pytest.approx(2.0, abs=0.2)
    slow = [{"name": "default-scheduler", "config": {"clientConnection": {"qps": 20, "burst": 10}}}]
    assert _last_bound_s(schedulers=slow) == pytest.approx(9.5, abs=0.1)
    # Fewer tokens than requests of the set-up, in which no time passes that could bring others.
    single = [{"name": "default-scheduler", "config": {"clientConnection": {"qps": 20, "burst": 1}}}]
    assert _last_bound_s(schedulers=single) == pytest.approx(9.95, abs=0.1)


def test_a_scheduler_that_starts_again_has_a_full_bucket() -> None:
    """Killed in the middle: its burst is there again, less what its informers list."""
    slow = [{"name": "default-scheduler", "config": {"clientConnection": {"qps": 10, "burst": 50}}}]
    crash = [{"at": "8s", "for": "1s", "crash": {"actor": "scheduler/default-scheduler/0"}}]
    whole, crashed = _last_bound_s(schedulers=slow), _last_bound_s(schedulers=slow, chaos=crash)
    assert whole == pytest.approx(15, abs=0.1)
    assert crashed < whole - 1


def test_controllers_create_pods_at_their_rate() -> None:
    """20 a second after a burst of 30 (the replica set controller's own; its lists are the shared informers')."""
    web = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 130,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "10m"}}}]},
            },
        },
    }
    sets = {"workloads": [], "controllers": ["replicaset"], "manifests": [web]}
    free, limited = _last_bound_s(**sets), _last_bound_s(**sets, timing={"clientLimits": "kubernetes"})
    # 130 pods less a burst of 30, at 20 a second; what comes before the last one decides.
    assert limited - free == pytest.approx(5.0, abs=0.1)
