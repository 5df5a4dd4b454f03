"""Binding: a node, once."""

from __future__ import annotations

import asyncio

import pytest

from kemu import errors
from kemu.emulated.objects.conversion import convert
from kemu.runtime.env import EPOCH_UNIX_S
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run


def test_binding_sets_the_node_and_what_goes_with_it() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        status = {
            "nominatedNodeName": "n2",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "x"}],
        }
        await cluster.client.patch("pods", "a", "default", {"status": status}, subresource="status")
        await cluster.clock.sleep(10)
        bound = await cluster.client.bind("default", "a", created.metadata.uid, "n1")
        assert bound.spec.nodeName == "n1"
        assert not bound.status.nominatedNodeName
        (condition,) = (convert.to_json(one) for one in bound.status.conditions)
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
        assert "reason" not in condition
        assert bound.status.conditions[0].lastTransitionTime.seconds == EPOCH_UNIX_S + 10
        assert bound.metadata.generation == 1
        assert bound == await cluster.client.get("pods", "a", "default")
        (logged,) = [one for one in cluster.recorder.of("api.request") if one["verb"] == "bind"]
        assert (logged["uid"], logged["rev"]) == (created.metadata.uid, cluster.etcd.revision)

    run(main)


def test_annotations_of_a_binding_become_those_of_the_pod() -> None:
    async def main(cluster: Cluster) -> None:
        made = pod("a")
        made.metadata.annotations.update({"kept": "x", "changed": "y"})
        uid = (await cluster.client.create(made)).metadata.uid
        bound = await cluster.client.bind("default", "a", uid, "n1", {"changed": "z", "new": "1"})
        assert dict(bound.metadata.annotations) == {"kept": "x", "changed": "z", "new": "1"}
        assert bound == await cluster.client.get("pods", "a", "default")
        await refusal(errors.Conflict, cluster.client.bind("default", "a", uid, "n2", {"new": "2"}), cluster)
        assert (await cluster.client.get("pods", "a", "default")).metadata.annotations["new"] == "1"

    run(main)


def test_a_pod_is_bound_once() -> None:
    async def main(cluster: Cluster) -> None:
        uid = (await cluster.client.create(pod("x"))).metadata.uid
        await cluster.client.bind("default", "x", uid, "y")
        for target in ("z", "y"):
            error = await refusal(errors.Conflict, cluster.client.bind("default", "x", uid, target), cluster)
            assert str(error) == (
                'Operation cannot be fulfilled on pods/binding "x": pod x is already assigned to node "y"'
            )
        logged = cluster.refused()[-1]
        assert (logged["verb"], logged["uid"], logged["reason"]) == ("bind", uid, "Conflict")

    run(main)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_of_many_that_bind_the_same_pod_one_wins(servers: int, seed: int) -> None:
    async def main(cluster: Cluster) -> None:
        uid = (await cluster.client.create(pod("a"))).metadata.uid
        clients = [cluster.client_of(number % servers, f"scheduler{number}") for number in range(9)]
        binding = [client.bind("default", "a", uid, f"n{number}") for number, client in enumerate(clients)]
        results = await asyncio.gather(*binding, return_exceptions=True)
        winners = [one for one in results if not isinstance(one, BaseException)]
        assert len(winners) == 1
        assert sum(isinstance(one, errors.Conflict) for one in results) == 8
        found = await cluster.client.get("pods", "a", "default")
        assert found.spec.nodeName == winners[0].spec.nodeName

    timing = {name: {"uniform": {"min": 0.001, "max": 0.005}} for name in ("apiLatency", "storeLatency")}
    run(main, servers=[{}] * servers, seed=seed, timing=timing)


def test_the_ablation_binds_again() -> None:
    async def main(cluster: Cluster) -> None:
        uid = (await cluster.client.create(pod("a"))).metadata.uid
        await cluster.client.bind("default", "a", uid, "n1")
        assert (await cluster.client.bind("default", "a", uid, "n2")).spec.nodeName == "n2"

    run(main, servers=({"ablate": ["bind-once"]},))


def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", metadata={"finalizers": ["kemu.dev/held"]}))
        await cluster.client.delete("pods", "a", "default")
        error = await refusal(errors.Conflict, cluster.client.bind("default", "a", "", "n1"), cluster)
        assert str(error) == (
            'Operation cannot be fulfilled on pods/binding "a": pod a is being deleted, cannot be assigned to a host'
        )

    run(main)


def test_a_gated_pod_is_not_bound() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a", schedulingGates=[{"name": "kemu.dev/wait"}]))
        assert created.status.conditions[0].reason == "SchedulingGated"
        error = await refusal(errors.Conflict, cluster.client.bind("default", "a", "", "n1"), cluster)
        assert str(error).endswith("pod a has non-empty .spec.schedulingGates")

    run(main)


def test_the_uid_must_be_right() -> None:
    async def main(cluster: Cluster) -> None:
        first = await cluster.client.create(pod("a"))
        await cluster.client.delete("pods", "a", "default")
        second = await cluster.client.create(pod("a"))
        error = await refusal(errors.Conflict, cluster.client.bind("default", "a", first.metadata.uid, "n1"), cluster)
        assert str(error) == (
            'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, '
            "Key: /registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {first.metadata.uid}, UID in object meta: {second.metadata.uid}"
        )

    run(main)


def test_a_binding_must_say_what_and_where() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        await refusal(errors.NotFound, cluster.client.bind("default", "b", "", "n1"), cluster)
        error = await refusal(errors.Invalid, cluster.client.bind("default", "a", "", ""), cluster)
        assert error.causes[0].field == "target.name"
        await refusal(errors.BadRequest, cluster.client.bind("", "a", "", "n1"), cluster)

    run(main)


def test_capacity_is_not_checked() -> None:
    """Kubernetes' own race: the kubelet is the one that refuses."""

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1", cpu="1", pods="1"))
        for name in ("a", "b", "c"):
            big = pod(name)
            big.spec.containers[0].resources.requests["cpu"].string = "1"
            await cluster.client.create(big)
            await cluster.client.bind("default", name, "", "n1")

    run(main)


@pytest.mark.parametrize("seed", range(3))
def test_with_bind_check_capacity_a_node_is_never_overcommitted(seed: int) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1", cpu="2", memory="1Gi", pods="10"))
        for number in range(6):
            half = pod(f"p{number}")
            half.spec.containers[0].resources.requests["cpu"].string = "800m"
            await cluster.client.create(half)
        clients = [cluster.client_of(number % 2, f"scheduler{number}") for number in range(6)]
        binding = [client.bind("default", f"p{number}", "", "n1") for number, client in enumerate(clients)]
        results = await asyncio.gather(*binding, return_exceptions=True)
        refused = [one for one in results if isinstance(one, errors.Conflict)]
        assert len(refused) == 4, "2 cpu hold two pods of 0.8"
        assert str(refused[0]).endswith('node "n1" has insufficient cpu')
        error = await refusal(errors.Conflict, cluster.client.bind("default", "p0", "", "n1"), cluster)
        assert "is already assigned" in str(error) or "insufficient" in str(error)

    timing = {name: {"uniform": {"min": 0.001, "max": 0.005}} for name in ("apiLatency", "storeLatency")}
    run(main, servers=[{"bind_check": "capacity"}] * 2, seed=seed, timing=timing)


def test_bind_check_capacity_knows_pods_that_are_over_and_nodes_that_are_not() -> None:
    async def main(cluster: Cluster) -> None:
        error = None
        await cluster.client.create(pod("a"))
        error = await refusal(errors.Conflict, cluster.client.bind("default", "a", "", "n1"), cluster)
        assert str(error).endswith('node "n1" not found')
        await cluster.client.create(node("n1", cpu="1", pods="1"))
        bound = await cluster.client.bind("default", "a", "", "n1")
        await cluster.client.create(pod("b"))
        error = await refusal(errors.Conflict, cluster.client.bind("default", "b", "", "n1"), cluster)
        assert str(error).endswith("insufficient pods")
        bound.status.phase = "Succeeded"
        await cluster.client.update_status(bound)
        await cluster.client.bind("default", "b", "", "n1")

    run(main, servers=({"bind_check": "capacity"},))
