"""How containers end that do not end by themselves: preStop hooks, short graces, deadlines, kills, the OOM killer."""

from __future__ import annotations

import pytest

from kemu.emulated.kubelet.kubelet import Kubelet
from kemu.emulated.kubelet.pods import statuses
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, pod


def hooked(name: str, seconds: int, **kwargs: float) -> core_v1_pb2.Pod:
    """With a preStop hook that sleeps so long; beyond the grace period only a command may."""
    found = pod(name, **kwargs)  # type: ignore[arg-type]
    hook = found.spec.containers[0].lifecycle.preStop
    if seconds <= found.spec.terminationGracePeriodSeconds:
        hook.sleep.seconds = seconds
    else:
        hook.exec.command.append("sleep")
        found.metadata.annotations["kemu.dev/pre-stop-seconds"] = str(seconds)
    return found


@pytest.mark.parametrize(
    ("hook", "shutdown", "grace_s", "takes"),
    [
        (5, 3, 30, 8),  # first the hook, then the shutdown
        (5, 60, 30, 30),  # the hook counts within the grace period
        (50, 0, 10, 10),  # nobody waits for a hook beyond it
        (50, 60, 10, 12),  # and yet the container has two seconds
        (0, 60, 1, 2),
        (0, 0, 1, 0),
    ],
)
def test_hooks_and_the_least_time_to_shut_down(
    cluster: Cluster, hook: int, shutdown: float, grace_s: int, takes: float
) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(hooked("a", hook, grace_s=grace_s, shutdown=shutdown))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(100)
        assert await cluster.phase("a") == "gone"

    cluster.play(main)
    assert cluster.told("terminated") == [(5.0 + takes, "terminated", "a")]


def test_a_hook_that_runs_a_command_takes_what_the_pod_says(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        one = pod("a")
        one.spec.containers[0].lifecycle.preStop.exec.command.append("drain")
        one.metadata.annotations["kemu.dev/pre-stop-seconds"] = "7"
        await cluster.create(one)
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(20)

    cluster.play(main)
    assert cluster.told("terminated") == [(12.0, "terminated", "a")]


def test_a_shorter_grace_counts_from_when_it_is_asked_for(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(hooked("a", 50, grace_s=100, shutdown=90))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(7)
        await cluster.client.delete("pods", "a", "default", grace_period_seconds=4)
        await cluster.at(60)

    cluster.play(main)
    # The hook begins again, takes all of the four seconds, and leaves the container the least of two.
    assert cluster.told("terminated") == [(13.0, "terminated", "a")]


def test_a_pod_has_its_deadline(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        one, early, done = pod("a", cpu="2", shutdown=5), pod("early", start=60), pod("done", run=2, restart="Never")
        for each in (one, early, done):
            each.spec.activeDeadlineSeconds = 20
        await cluster.create(one, early, done)
        await cluster.at(24)
        assert await cluster.phase("a") == "Running"
        await cluster.at(26)
        for name in ("a", "early"):
            found = await cluster.pod(name)
            assert (found.status.phase, found.status.reason) == ("Failed", "DeadlineExceeded")
            assert found.status.message == "Pod was active on the node longer than the specified deadline"
            assert not meta.has_condition(found.status.conditions, "DisruptionTarget")
        assert await cluster.phase("done") == "Succeeded"
        await cluster.create(pod("b", cpu="4"))
        await cluster.at(27)
        assert await cluster.phase("b") == "Running"

    cluster.play(main)
    assert cluster.told("terminated") == [(20.0, "terminated", "early"), (25.0, "terminated", "a")]


def test_a_deadline_can_be_set_while_the_pod_runs_and_outlives_the_kubelet(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a"))
        await cluster.at(5)
        await cluster.client.patch("pods", "a", "default", {"spec": {"activeDeadlineSeconds": 30}})
        await cluster.at(6)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.at(8)
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(31)
        assert await cluster.phase("a") == "Failed"

    cluster.play(main)
    assert cluster.told("terminated") == [(30.0, "terminated", "a")]


def test_a_pod_that_the_kubelet_kills_shows_why_when_its_containers_are_gone(
    cluster: Cluster, kubelets: list[Kubelet]
) -> None:
    gone: list[float] = []

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="4", shutdown=20))
        await cluster.at(5)
        (worker,) = kubelets[0].demand().pods.active()
        failure = statuses.Failure("Evicted", "the node was low", "TerminationByKubelet", "the node was low, therefore")
        kubelets[0].demand().pods.kill(worker, failure, lambda: gone.append(cluster.clock.now_ns() / 1e9), 8)
        await cluster.at(12)
        found = await cluster.pod("a")
        assert (found.status.phase, found.status.reason) == ("Running", "")
        await cluster.at(14)
        found = await cluster.pod("a")
        assert (found.status.phase, found.status.reason, found.status.message) == (
            "Failed", "Evicted", "the node was low",
        )  # fmt: skip
        target = meta.get_condition(found.status.conditions, "DisruptionTarget")
        assert target is not None
        assert (target.reason, target.message) == ("TerminationByKubelet", "the node was low, therefore")
        assert found.status.containerStatuses[0].state.terminated.exitCode == 137
        kubelets[0].demand().pods.kill(worker, failure, lambda: gone.append(-1))

    cluster.play(main)
    assert gone == [13.0, -1]
    assert cluster.told("terminated") == [(13.0, "terminated", "a")]


def test_the_oom_killer_takes_one_container(cluster: Cluster, kubelets: list[Kubelet]) -> None:
    async def main(cluster: Cluster) -> None:
        both, once = pod("both"), pod("once", restart="Never")
        both.spec.containers.add(name="other", image="app")
        await cluster.create(both, once)
        await cluster.at(5)
        workers = {one.key: one for one in kubelets[0].demand().pods.active()}
        for second in (5, 6):
            # It starts again when the kubelet has noticed, a second later; the next time it has to wait longer.
            await cluster.at(second + 0.5)
            assert kubelets[0].demand().pods.oom_kill(workers["default/both"], "main")
            assert not kubelets[0].demand().pods.oom_kill(workers["default/both"], "main")
            await cluster.at(second + 0.9)
            found = await cluster.pod("both")
            ended = found.status.containerStatuses[0]
            assert (ended.state if second == 5 else ended.lastState).terminated.reason == "OOMKilled"
            await cluster.at(second + 1.5)
        assert not kubelets[0].demand().pods.oom_kill(workers["default/both"], "main")
        assert not kubelets[0].demand().pods.oom_kill(workers["default/both"], "nobody")
        assert kubelets[0].demand().pods.oom_kill(workers["default/once"], "main")
        await cluster.at(8)
        found = await cluster.pod("both")
        main_status, other = found.status.containerStatuses
        assert main_status.state.waiting.reason == "CrashLoopBackOff"
        last = main_status.lastState.terminated
        assert (last.reason, last.exitCode, main_status.restartCount) == ("OOMKilled", 137, 1)
        assert other.state.HasField("running")
        found = await cluster.pod("once")
        assert found.status.phase == "Failed"
        assert found.status.containerStatuses[0].state.terminated.reason == "OOMKilled"
        await cluster.at(20)
        found = await cluster.pod("both")
        assert found.status.containerStatuses[0].state.HasField("running")

    cluster.play(main)
    assert [(one["pod"], one["container"]) for one in cluster.data("oom_killed")] == [
        ("default/both", "main"), ("default/both", "main"), ("default/once", "main"),
    ]  # fmt: skip
