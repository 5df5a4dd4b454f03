"""A store that answers late: requests end in time, and nobody claims to know whether they were carried out."""

from __future__ import annotations

import asyncio

import pytest

from kemu import errors
from kemu.runtime.env import SECOND_NS, ActorSpec
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run


def test_a_write_without_an_answer_ends_after_seven_seconds_and_may_have_happened() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        cluster.etcd.answers_after_s = 20.0
        start_ns = cluster.clock.now_ns()
        error = await refusal(
            errors.ServiceUnavailable, cluster.client.bind("default", "a", created.metadata.uid, "n1")
        )
        assert error.message == "etcdserver: request timed out"
        assert 7 * SECOND_NS <= cluster.clock.now_ns() - start_ns < 7.1 * SECOND_NS
        assert (await cluster.client.get("pods", "a", "default")).spec.nodeName == "n1", "it was carried out"
        cluster.etcd.answers_after_s = 0.0
        await refusal(errors.Conflict, cluster.client.bind("default", "a", created.metadata.uid, "n2"))

    run(main)


def test_each_request_has_its_own_deadline() -> None:
    async def main(cluster: Cluster) -> None:
        cluster.etcd.answers_after_s = 30.0
        ends = []

        async def create(number: int) -> None:
            await cluster.clock.sleep(number)
            with pytest.raises(errors.ServiceUnavailable):
                await cluster.client.create(pod(f"p{number}"))
            ends.append(round(cluster.clock.now_ns() / SECOND_NS, 1) - number)

        await asyncio.gather(*(create(number) for number in range(10)))
        assert ends == [7.0] * 10

    run(main)


def test_answers_in_time_are_not_concerned() -> None:
    async def main(cluster: Cluster) -> None:
        cluster.etcd.answers_after_s = 6.9
        await asyncio.gather(*(cluster.client.create(pod(f"p{number}")) for number in range(10)))
        await cluster.clock.sleep(1)
        assert not cluster.refused()

    run(main)


@pytest.mark.parametrize("late_s", [8.0, 100.0])
def test_a_scheduler_that_does_not_know_whether_it_bound_neither_binds_twice_nor_counts_twice(late_s: float) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1", cpu="2", memory="8Gi", pods="10"))
        cpu = [{"name": "main", "image": "pause:1", "resources": {"requests": {"cpu": "1"}}}]
        await cluster.runtime.launch(
            [
                ActorSpec(
                    "scheduler/default-scheduler/0",
                    "kemu.emulated.scheduler.scheduler:Scheduler",
                    {"name": "default-scheduler"},
                )
            ]
        )
        created = await cluster.client.create(pod("a", containers=cpu))
        cluster.etcd.answers_after_s = late_s
        await cluster.clock.sleep(7.5)
        cluster.etcd.answers_after_s = 0.0
        await cluster.clock.sleep(30)
        found = await cluster.client.get("pods", "a", "default")
        assert found.spec.nodeName == "n1"
        assert found.metadata.uid == created.metadata.uid
        binds = cluster.recorder.of("sched.bind")
        assert [one["ok"] for one in binds] == [False], (
            "it failed as far as the scheduler knows, and was not tried again"
        )
        await cluster.client.create(pod("b", containers=cpu))
        await cluster.client.create(pod("c", containers=cpu))
        await cluster.clock.sleep(30)
        bound = [(await cluster.client.get("pods", name, "default")).spec.nodeName for name in "bc"]
        assert sorted(bound) == ["", "n1"], "the node has room for one more, and for one only"

    run(main)
