"""How pods end when they are deleted."""

from __future__ import annotations

import asyncio

import pytest

from tests.kubelet.cluster import Cluster, pod


@pytest.mark.parametrize(
    ("shutdown", "grace_s", "takes", "forced"),
    [(0, 30, 0, False), (20, 30, 20, False), (60, 30, 30, True), (60, 60, 60, False)],
)
def test_a_pod_stops_by_itself_or_when_its_grace_is_over(
    cluster: Cluster, shutdown: float, grace_s: int, takes: float, forced: bool
) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", grace_s=grace_s, shutdown=shutdown))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        if takes:
            await cluster.at(4.9 + takes)
            assert await cluster.phase("a") == "Running"
        await cluster.at(5.1 + takes)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)
    assert cluster.told("terminating", "terminated") == [(5.0, "terminating", "a"), (5.0 + takes, "terminated", "a")]
    assert cluster.data("terminating")[0]["grace_s"] == grace_s
    (terminated,) = cluster.data("terminated")
    assert terminated["forced"] is forced
    assert terminated["start"] == pytest.approx(5e9, abs=1e7)


def test_a_second_deletion_can_only_shorten(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", grace_s=100, shutdown=90))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(10)
        await cluster.client.delete("pods", "a", "default", grace_period_seconds=20)
        await cluster.at(12)
        await cluster.client.delete("pods", "a", "default", grace_period_seconds=500)
        await cluster.at(100)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)
    assert cluster.told("terminating", "terminated") == [(5.0, "terminating", "a"), (30.0, "terminated", "a")]
    assert cluster.data("terminated")[0]["forced"] is True


def test_other_changes_do_not_prolong_the_grace(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", grace_s=30, shutdown=60))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(20)
        await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"x": "y"}}})
        await cluster.at(60)

    cluster.play(main)
    assert cluster.told("terminated") == [(35.0, "terminated", "a")]


def test_a_pod_that_exits_meanwhile_is_gone_then(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", grace_s=100, shutdown=90, run=20, restart="Never"))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(200)

    cluster.play(main)
    assert cluster.told("terminated", "finished") == [(20.0, "terminated", "a")]


def test_terminating_pods_count_until_their_containers_are_gone(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="4", shutdown=20))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(24)
        await cluster.create(pod("early", cpu="4"))
        await cluster.at(26)
        await cluster.create(pod("late", cpu="4"))
        await cluster.at(30)
        assert await cluster.phase("early") == "Failed"
        assert await cluster.phase("late") == "Running"

    cluster.play(main)


def test_a_pod_deleted_before_it_ran_is_gone_at_once(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="4", start=60, shutdown=20))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(6)
        assert await cluster.phase("a") == "gone"
        await cluster.create(pod("b", cpu="4"))
        await cluster.at(7)
        assert await cluster.phase("b") == "Running"

    cluster.play(main)
    assert cluster.told() == [
        (0.0, "admit", "a"),
        (5.0, "terminating", "a"),
        (5.0, "terminated", "a"),
        (6.0, "admit", "b"),
        (6.0, "running", "b"),
    ]


def test_a_pod_deleted_between_crashes_is_gone_at_once(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("loop", run=1), pod("done", run=1, restart="Never"))
        await cluster.at(5)
        await cluster.client.delete("pods", "loop", "default")
        await cluster.client.delete("pods", "done", "default")
        await cluster.at(5.1)
        assert await cluster.phase("loop") == "gone"
        assert await cluster.phase("done") == "gone"

    cluster.play(main)
    # Of a pod that had finished there is nothing to terminate.
    assert [name for _, _, name in cluster.told("terminated")] == ["loop"]


def test_a_pod_that_is_forced_out_of_the_api_no_longer_counts(cluster: Cluster) -> None:
    """``GetActivePods`` leaves it out, although its containers still run."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="4", grace_s=30, shutdown=60))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default", grace_period_seconds=0)
        assert await cluster.phase("a") == "gone"
        await cluster.at(20)
        await cluster.create(pod("a", cpu="4"))
        await cluster.at(21)
        assert await cluster.phase("a") == "Running"
        await cluster.at(40)

    cluster.play(main)
    assert cluster.told("terminated") == [(35.0, "terminated", "a")]
    assert len({data["uid"] for data in cluster.data("admit", "a")}) == 2


def test_forcing_out_a_terminating_pod_changes_nothing_on_the_node(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", grace_s=30, shutdown=20))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(10)
        await cluster.client.delete("pods", "a", "default", grace_period_seconds=0)
        await cluster.at(60)

    cluster.play(main)
    assert cluster.told("terminating", "terminated") == [(5.0, "terminating", "a"), (25.0, "terminated", "a")]


def test_an_answer_that_comes_after_the_pod_has_gone_does_not_revive_it() -> None:
    cluster = Cluster(network={"apiLatency": 0.5, "watchLatency": 0.001})

    async def main(cluster: Cluster) -> None:
        await cluster.at(2)
        # The server hears of it at 2.5 and so does the kubelet, whose report arrives at 3.0, and the answer at 3.5.
        creating = asyncio.ensure_future(cluster.create(pod("a", cpu="4")))
        await cluster.at(2.7)
        deleted = await cluster.client.delete("pods", "a", "default", grace_period_seconds=0)
        assert deleted.status.phase == "Running"
        await creating
        await cluster.at(10)
        await cluster.create(pod("b", cpu="4"))
        await cluster.at(20)
        assert await cluster.phase("b") == "Running"

    cluster.play(main, podStatuses="sparing")
    assert cluster.told("running", "terminated") == [
        (2.5, "running", "a"),
        (3.2, "terminated", "a"),
        (10.5, "running", "b"),
    ]


def test_the_last_deletion_outlasts_a_server_that_is_away(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", shutdown=10))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(10)
        await cluster.runtime.crash("apiserver/0")
        await cluster.at(30)
        await cluster.runtime.restart("apiserver/0")
        await cluster.at(90)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)
    assert cluster.told("terminated") == [(15.0, "terminated", "a")]


def test_a_finalizer_keeps_the_object_but_not_the_containers(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        guarded = pod("a", cpu="4")
        guarded.metadata.finalizers.append("example.com/guard")
        await cluster.create(guarded)
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(10)
        assert await cluster.phase("a") == "Succeeded"
        await cluster.create(pod("b", cpu="4"))
        await cluster.at(11)
        assert await cluster.phase("b") == "Running"
        await cluster.client.patch("pods", "a", "default", {"metadata": {"finalizers": None}})
        await cluster.at(12)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)


def test_containers_go_when_somebody_else_declares_the_pod_finished(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="4", shutdown=10))
        await cluster.at(5)
        found = await cluster.pod("a")
        found.status.phase = "Failed"
        found.status.reason = "NodeLost"
        await cluster.client.update_status(found)
        await cluster.at(20)
        found = await cluster.pod("a")
        assert (found.status.phase, found.status.reason) == ("Failed", "NodeLost")
        await cluster.create(pod("b", cpu="4"))
        await cluster.at(21)
        assert await cluster.phase("b") == "Running"

    cluster.play(main)
    assert cluster.told("terminated") == [(15.0, "terminated", "a")]


def test_a_final_phase_of_others_comes_back_if_the_kubelet_writes_before_it_hears_of_it() -> None:
    """A patch of the status knows no version, and the kubelet's own phase is part of it (``mergePodStatus``)."""
    cluster = Cluster(network={"watchLatency": 0.5})

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a", start=1, shutdown=10))
        await cluster.at(1.2)
        created = await cluster.pod("a")
        created.status.phase = "Failed"
        created.status.reason = "NodeLost"
        await cluster.client.update_status(created)
        await cluster.at(1.6)
        assert await cluster.phase("a") == "Running"
        await cluster.at(20)
        found = await cluster.pod("a")
        assert (found.status.phase, found.status.reason) == ("Failed", "NodeLost")
        assert found.status.containerStatuses[0].state.HasField("terminated")

    cluster.play(main)
    assert cluster.told("running", "terminated") == [(1.5, "running", "a"), (11.7, "terminated", "a")]
    assert not cluster.recorder.of("api.refused")


def test_a_final_phase_of_others_is_not_written_over_while_containers_end(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        both = pod("a", shutdown=10)
        both.metadata.annotations["kemu.dev/shutdown-seconds.second"] = "3"
        both.spec.containers.add(name="second", image="app")
        await cluster.create(both)
        await cluster.at(5)
        await cluster.client.patch("pods", "a", "default", {"status": {"phase": "Succeeded"}}, "status")
        for seconds, ends in ((9, ["second"]), (20, ["main", "second"])):
            await cluster.at(seconds)
            found = await cluster.pod("a")
            assert found.status.phase == "Succeeded"
            statuses = found.status.containerStatuses
            assert [one.name for one in statuses if one.state.HasField("terminated")] == ends

    cluster.play(main)
