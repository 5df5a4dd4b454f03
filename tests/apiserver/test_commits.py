"""Several bindings in one request, and what ``bindCheck`` refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client.clients import Binding
from kemu.emulated.objects.pods import bind_generations
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run

CAPACITY = ({"bind_check": "capacity"},)
GENERATION = ({"bind_check": "generation"},)
LATENCIES = {name: {"uniform": {"min": 0.001, "max": 0.005}} for name in ("apiLatency", "storeLatency")}


async def create_pods(cluster: Cluster, count: int, cpu: str = "1") -> list[Any]:
    pods = []
    for number in range(count):
        one = pod(f"p{number}")
        one.spec.containers[0].resources.requests["cpu"].string = cpu
        pods.append(await cluster.client.create(one))
    return pods


def bindings(pods: list[Any], target: str = "n1", *generations: int) -> list[Binding]:
    wanted = [*generations, *[None] * (len(pods) - len(generations))]
    return [
        Binding("default", one.metadata.name, one.metadata.uid, target, number)
        for one, number in zip(pods, wanted, strict=True)
    ]


def reasons(commit: Any) -> list[str]:
    """Of each binding that was refused; of the others the node of the pod."""
    return [one.reason if isinstance(one, errors.ApiError) else one.spec.nodeName for one in commit.results]


def test_a_commit_binds_what_it_can_and_says_what_it_could_not() -> None:
    async def main(cluster: Cluster) -> None:
        pods = await create_pods(cluster, 3)
        await cluster.client.bind("default", "p1", "", "n2")
        await cluster.client.delete("pods", "p2", "default")
        commit = await cluster.client.commit(bindings(pods))
        assert reasons(commit) == ["n1", "Conflict", "NotFound"]
        assert commit.refused_by is None
        assert 'already assigned to node "n2"' in str(commit.results[1])
        found = await cluster.client.get("pods", "p0", "default")
        assert found == commit.results[0]
        logged = [one for one in cluster.recorder.of("api.request") if one["verb"] == "bind"]
        assert [one["name"] for one in logged] == ["p1", "p0"]
        assert [(one["verb"], one["name"], one["reason"]) for one in cluster.refused()] == [
            ("bind", "p1", "Conflict"),
            ("bind", "p2", "NotFound"),
        ]

    run(main)


def test_all_or_nothing_changes_nothing_when_one_is_refused() -> None:
    async def main(cluster: Cluster) -> None:
        pods = await create_pods(cluster, 3)
        await cluster.client.bind("default", "p1", "", "n2")
        commit = await cluster.client.commit(bindings(pods), all_or_nothing=True)
        assert commit.refused_by == 1
        assert reasons(commit) == ["Conflict"] * 3
        assert "already assigned" in str(commit.results[1])
        assert str(commit.results[0]).endswith('the commit is refused as a whole because of pod "p1"')
        for name in ("p0", "p2"):
            assert not (await cluster.client.get("pods", name, "default")).spec.nodeName
        commit = await cluster.client.commit(bindings([pods[0], pods[2]]), all_or_nothing=True)
        assert reasons(commit) == ["n1", "n1"]
        versions = {one.metadata.resourceVersion for one in commit.results}
        assert len(versions) == 2, "a resource version belongs to one object"

    run(main)


def test_with_capacity_each_accepted_binding_counts_for_those_after_it() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1", cpu="2", pods="10"))
        pods = await create_pods(cluster, 3)
        whole = await cluster.client.commit(bindings(pods), all_or_nothing=True)
        assert whole.refused_by == 2
        commit = await cluster.client.commit(bindings(pods))
        assert reasons(commit) == ["n1", "n1", "Conflict"]
        assert str(commit.results[2]).endswith('node "n1" has insufficient cpu')

    run(main, servers=CAPACITY)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("all_or_nothing", [False, True])
def test_commits_that_race_through_two_servers_never_overcommit(seed: int, all_or_nothing: bool) -> None:
    async def main(cluster: Cluster) -> None:
        for name in ("n1", "n2"):
            await cluster.client.create(node(name, cpu="3", pods="10"))
        pods = await create_pods(cluster, 12)
        clients = [cluster.client_of(number % 2, f"scheduler{number}") for number in range(6)]
        commits = await asyncio.gather(
            *(
                client.commit(
                    [*bindings([pods[2 * number]], "n1"), *bindings([pods[2 * number + 1]], "n2")],
                    all_or_nothing=all_or_nothing,
                )
                for number, client in enumerate(clients)
            )
        )
        bound = [where for one in commits for where in reasons(one) if where != "Conflict"]
        assert sorted(bound) == ["n1"] * 3 + ["n2"] * 3

    run(main, servers=CAPACITY * 2, seed=seed, timing=LATENCIES)


def test_generations_are_raised_by_bindings_and_are_their_precondition() -> None:
    async def main(cluster: Cluster) -> None:
        client = cluster.client
        assert bind_generations.of(await client.create(node("n1", cpu="1", pods="1"))) == 0
        pods = await create_pods(cluster, 8)
        commit = await client.commit(bindings(pods[:3], "n1", 0, 1, 1))
        assert reasons(commit) == ["n1", "n1", "Conflict"], "own bindings count, and room is not checked"
        assert str(commit.results[2]).endswith('node "n1" has the bind generation 2, the precondition is 1')
        assert bind_generations.of(await client.get("nodes", "n1")) == 2
        await client.bind("default", "p2", "", "n1", node_generation=2)
        await client.bind("default", "p3", "", "n1")
        await refusal(errors.Conflict, client.bind("default", "p4", "", "n1", node_generation=3), cluster)
        assert bind_generations.of(await client.get("nodes", "n1")) == 4
        bound = await client.get("pods", "p0", "default")
        bound.status.phase = "Succeeded"
        await client.update_status(bound)
        assert bind_generations.of(await client.get("nodes", "n1")) == 4, "only bindings raise it"
        await refusal(errors.Conflict, client.bind("default", "p4", "", "elsewhere"), cluster)

    run(main, servers=GENERATION)


def test_a_refused_commit_raises_the_generations_of_what_it_had_accepted() -> None:
    """As in Omega's simulator: the counts of a transaction that is given up are not set back."""

    async def main(cluster: Cluster) -> None:
        for name in ("n1", "n2", "n3"):
            await cluster.client.create(node(name))
        pods = await create_pods(cluster, 3)
        tried = [*bindings(pods[:1], "n1", 0), *bindings(pods[1:2], "n2", 7), *bindings(pods[2:], "n3", 0)]
        commit = await cluster.client.commit(tried, all_or_nothing=True)
        assert commit.refused_by == 1
        counts = [bind_generations.of(await cluster.client.get("nodes", name)) for name in ("n1", "n2", "n3")]
        assert counts == [1, 0, 0], "n3 was not judged"
        assert not (await cluster.client.get("pods", "p0", "default")).spec.nodeName

    run(main, servers=GENERATION)


@pytest.mark.parametrize("seed", range(3))
def test_of_many_that_expect_the_same_generation_one_wins(seed: int) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        pods = await create_pods(cluster, 6)
        clients = [cluster.client_of(number % 2, f"scheduler{number}") for number in range(6)]
        commits = await asyncio.gather(
            *(client.commit(bindings([one], "n1", 0)) for client, one in zip(clients, pods, strict=True))
        )
        assert sorted(reasons(one)[0] for one in commits) == ["Conflict"] * 5 + ["n1"]
        assert bind_generations.of(await cluster.client.get("nodes", "n1")) == 1

    run(main, servers=GENERATION * 2, seed=seed, timing=LATENCIES)


@pytest.mark.parametrize("check", ["none", "capacity"])
def test_a_generation_needs_a_server_that_counts(check: str) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        (one,) = await create_pods(cluster, 1)
        binding = cluster.client.bind("default", "p0", "", "n1", node_generation=0)
        error = await refusal(errors.BadRequest, binding, cluster)
        assert str(error).endswith("it needs bindCheck: generation")
        commit = await cluster.client.commit(bindings([one], "n1", 0))
        assert reasons(commit) == ["BadRequest"]

    run(main, servers=({"bind_check": check},))


@pytest.mark.parametrize("servers", [({},), CAPACITY])
def test_a_commit_may_be_long(servers: Any) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1", cpu="1000", memory="1000Gi", pods="1000"))
        pods = await create_pods(cluster, 150, "1m")
        assert reasons(await cluster.client.commit(bindings(pods))) == ["n1"] * 150

    run(main, servers=servers)


def test_a_commit_is_refused_as_a_whole_where_it_makes_no_sense() -> None:
    async def main(cluster: Cluster) -> None:
        pods = await create_pods(cluster, 1)
        await refusal(errors.BadRequest, cluster.client.commit(bindings(pods * 2)), cluster)
        await refusal(errors.Invalid, cluster.client.commit(bindings(pods, "")), cluster)
        assert (await cluster.client.commit([])).results == []

    run(main)
