"""Eviction asks the disruption budget."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.objects.conversion import convert
from tests.apiserver.apiserver_cluster import Cluster, budget, pod, refusal, run

VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


async def running(cluster: Cluster, name: str, *, ready: bool = True, phase: str = "Running") -> Any:
    await cluster.client.create(pod(name, nodeName="n1", labels={"app": "web"}))
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return await cluster.client.patch(
        "pods", name, "default", {"status": status}, subresource="status", type="strategic"
    )


async def budget_of(cluster: Cluster, allowed: int, *, healthy: int = 3, desired: int = 2, **spec: Any) -> Any:
    """A budget as the disruption controller would keep it."""
    created = await cluster.client.create(budget("web", {"app": "web"}, minAvailable=desired, **spec))
    created.status.observedGeneration = created.metadata.generation
    created.status.disruptionsAllowed = allowed
    created.status.currentHealthy, created.status.desiredHealthy = healthy, desired
    updated = await cluster.client.update_status(created)
    await cluster.clock.sleep(0.1)
    return updated


def test_an_eviction_costs_one_disruption() -> None:
    async def main(cluster: Cluster) -> None:
        await running(cluster, "a")
        await budget_of(cluster, 2)
        await cluster.clock.sleep(5)
        evicted = await cluster.client.evict("default", "a")
        assert evicted.metadata.deletionGracePeriodSeconds == 30
        conditions = {one["type"]: one for one in convert.to_json(evicted.status)["conditions"]}
        assert conditions["DisruptionTarget"]["reason"] == "EvictionByEvictionAPI"
        status = (await cluster.client.get("poddisruptionbudgets", "web", "default")).status
        assert status.disruptionsAllowed == 1
        assert list(status.disruptedPods) == ["a"]
        (logged,) = [one for one in cluster.recorder.of("api.request") if one["verb"] == "evict"]
        assert (logged["name"], logged["rev"]) == ("a", int(evicted.metadata.resourceVersion))

    run(main)


def test_an_exhausted_budget_refuses() -> None:
    async def main(cluster: Cluster) -> None:
        before = await running(cluster, "a")
        await budget_of(cluster, 0, healthy=2)
        error = await refusal(errors.TooManyRequests, cluster.client.evict("default", "a"), cluster)
        assert str(error) == VIOLATES
        (cause,) = error.causes
        assert cause.reason == "DisruptionBudget"
        assert cause.message == "The disruption budget web needs 2 healthy pods and has 2 currently"
        assert await cluster.client.get("pods", "a", "default") == before
        assert cluster.refused()[-1]["reason"] == "TooManyRequests"

    run(main)


@pytest.mark.parametrize("seed", range(3))
def test_evictions_that_race_do_not_overspend(seed: int) -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(6):
            await running(cluster, f"p{number}")
        await budget_of(cluster, 2, healthy=6, desired=4)
        evicting = [
            cluster.client_of(number % 2, f"user{number}").evict("default", f"p{number}") for number in range(6)
        ]
        results = await asyncio.gather(*evicting, return_exceptions=True)
        assert sum(isinstance(one, errors.TooManyRequests) for one in results) == 4
        status = (await cluster.client.get("poddisruptionbudgets", "web", "default")).status
        assert status.disruptionsAllowed == 0
        assert status.conditions[0].reason == "InsufficientPods"

    timing = {name: {"uniform": {"min": 0.001, "max": 0.005}} for name in ("apiLatency", "storeLatency")}
    run(main, servers=({}, {}), seed=seed, timing=timing)


def test_a_budget_that_the_controller_has_not_seen_refuses() -> None:
    async def main(cluster: Cluster) -> None:
        await running(cluster, "a")
        await cluster.client.create(budget("web", {"app": "web"}, minAvailable=1))
        await cluster.clock.sleep(1)
        error = await refusal(errors.TooManyRequests, cluster.client.evict("default", "a"), cluster)
        assert error.causes[0].message == "The disruption budget web is still being processed by the server."

    run(main)


def test_pods_without_a_budget_are_just_deleted() -> None:
    async def main(cluster: Cluster) -> None:
        await running(cluster, "a")
        other = budget("other", {"app": "other"}, minAvailable=1)
        await cluster.client.create(other)
        empty = budget("empty", {}, minAvailable=1)
        await cluster.client.create(empty)
        await cluster.clock.sleep(1)
        assert (await cluster.client.evict("default", "a", 7)).metadata.deletionGracePeriodSeconds == 7

    run(main)


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_pods_that_disrupt_nobody_need_no_budget(phase: str) -> None:
    async def main(cluster: Cluster) -> None:
        await running(cluster, "a", ready=False, phase=phase)
        await budget_of(cluster, 0)
        await cluster.client.evict("default", "a", 0)
        await refusal(errors.NotFound, cluster.client.get("pods", "a", "default"))

    run(main)


@pytest.mark.parametrize(
    ("healthy", "policy", "allowed"),
    [(2, None, True), (1, None, False), (1, "AlwaysAllow", True), (1, "IfHealthyBudget", False)],
)
def test_pods_that_are_not_ready(healthy: int, policy: str | None, allowed: bool) -> None:
    async def main(cluster: Cluster) -> None:
        await running(cluster, "a", ready=False)
        await budget_of(cluster, 0, healthy=healthy, **({"unhealthyPodEvictionPolicy": policy} if policy else {}))
        if allowed:
            assert (await cluster.client.evict("default", "a")).metadata.HasField("deletionTimestamp")
        else:
            await refusal(errors.TooManyRequests, cluster.client.evict("default", "a"), cluster)

    run(main)


def test_a_pod_that_becomes_ready_meanwhile_is_not_evicted_for_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        await running(cluster, "a", ready=False)
        await budget_of(cluster, 0, healthy=2)
        await cluster.clock.sleep(1)

        async def become_ready() -> None:
            await cluster.clock.sleep(0.001)  # after the eviction has looked at the pod, before it writes
            patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            await cluster.client_of(1, "other").patch("pods", "a", "default", patch, "status", "strategic")

        evicted, _ = await asyncio.gather(cluster.client.evict("default", "a"), become_ready(), return_exceptions=True)
        assert isinstance(evicted, errors.TooManyRequests)
        found = await cluster.client.get("pods", "a", "default")
        assert not found.metadata.HasField("deletionTimestamp")

    run(main, servers=({}, {}))


def test_two_budgets_are_one_too_many() -> None:
    async def main(cluster: Cluster) -> None:
        await running(cluster, "a")
        await budget_of(cluster, 5)
        await cluster.client.create(budget("second", {"app": "web"}, minAvailable=1))
        await cluster.clock.sleep(1)
        error = await refusal(errors.InternalError, cluster.client.evict("default", "a"), cluster)
        assert "more than one PodDisruptionBudget" in str(error)

    run(main)


def test_preconditions_of_an_eviction() -> None:
    async def main(cluster: Cluster) -> None:
        await running(cluster, "a")
        await budget_of(cluster, 2)
        await refusal(errors.Conflict, cluster.client.evict("default", "a", uid="another"), cluster)
        await refusal(errors.Conflict, cluster.client.evict("default", "a", resource_version="1"), cluster)
        await refusal(errors.NotFound, cluster.client.evict("default", "b"), cluster)

    run(main)
