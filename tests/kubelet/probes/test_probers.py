"""Probes in kubelets: readiness, restarts, start-up, hooks, gates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, pod


def probed(name: str, rules: dict[str, Any] | None = None, **probes: dict[str, Any]) -> core_v1_pb2.Pod:
    """``probes``: by kind, fields of the Probe. ``rules``: of its container, for the annotation."""
    found = pod(name)
    container = found.spec.containers[0]
    for kind, fields in probes.items():
        spec = getattr(container, f"{kind}Probe")
        spec.handler.httpGet.path = "/healthz"
        spec.handler.httpGet.port.intVal = 8080
        for key, value in fields.items():
            setattr(spec, key, value)
    if rules is not None:
        found.metadata.annotations["kemu.dev/probes"] = json.dumps({"main": rules})
    return found


def condition(found: core_v1_pb2.Pod | None, name: str = "Ready") -> tuple[str, str, str]:
    assert found is not None
    return next((one.status, one.reason, one.message) for one in found.status.conditions if one.type == name)


def probings(cluster: Cluster) -> list[tuple[float, str, bool]]:
    return [
        (round(ns / 1e9, 3), data["probe"], data["ok"])
        for ns, _, kind, data in cluster.recorder.events
        if kind == "kubelet.probed"
    ]


async def events(cluster: Cluster) -> list[tuple[str, str]]:
    found = await cluster.client.list("events", "default")
    return [(one.reason, one.message) for one in found.items]


def test_a_pod_is_ready_after_its_first_success(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(probed("a", readiness={"initialDelaySeconds": 12, "periodSeconds": 5}))
        await cluster.at(1)
        assert condition(await cluster.get("a")) == (
            "False", "ContainersNotReady", "containers with unready status: [main]",
        )  # fmt: skip
        await cluster.at(30)
        assert condition(await cluster.get("a"))[0] == "True"

    cluster.play(main)
    ((when_s, kind, ok),) = probings(cluster)
    assert kind == "readiness"
    assert ok
    # A tick of the period after the delay.
    assert 12 <= when_s <= 17


def test_a_probe_without_delay_is_asked_at_once(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(probed("a", readiness={"periodSeconds": 50}))
        await cluster.at(1)
        assert condition(await cluster.get("a"))[0] == "True"

    cluster.play(main)


def test_readiness_flaps(cluster: Cluster) -> None:
    rules = {"readiness": {"failsFrom": "20s", "failsFor": "12s"}}

    async def main(cluster: Cluster) -> None:
        await cluster.create(probed("a", rules, readiness={"periodSeconds": 2, "failureThreshold": 3}))
        await cluster.at(60)
        found = await cluster.get("a")
        assert condition(found)[0] == "True"
        assert found is not None
        assert found.status.containerStatuses[0].restartCount == 0
        assert set(await events(cluster)) == {
            ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"),
        }  # fmt: skip

    cluster.play(main)
    (_, _, first), (down_s, _, down), (up_s, _, up) = probings(cluster)
    assert (first, down, up) == (True, False, True)
    # The third failure in a row; one success is enough.
    assert 24 <= down_s <= 26
    assert 32 <= up_s <= 34


def test_a_liveness_probe_restarts_its_container_with_back_off(cluster: Cluster) -> None:
    rules = {"liveness": {"failsFrom": "5s"}}

    async def main(cluster: Cluster) -> None:
        await cluster.create(probed("a", rules, liveness={"periodSeconds": 1, "failureThreshold": 2}))
        await cluster.at(120)
        found = await cluster.pod("a")
        status = found.status.containerStatuses[0]
        assert status.lastState.terminated.exitCode == 0
        assert status.restartCount == 5
        assert ("Killing", "Container main failed liveness probe, will be restarted") in await events(cluster)

    cluster.play(main)
    delays = [data["delay_s"] for data in cluster.data("restarting", "a")]
    # The first two kills start it anew at once; then its last exit is more recent than the pause.
    assert delays[:5] == [0, 0, 10, 20, 40]


def test_a_liveness_kill_takes_the_grace_period_of_the_probe(cluster: Cluster) -> None:
    rules = {"liveness": {"failsFrom": "5s", "starts": 1}}

    async def main(cluster: Cluster) -> None:
        found = probed("a", rules, liveness={
            "periodSeconds": 1, "failureThreshold": 1, "terminationGracePeriodSeconds": 7,
        })  # fmt: skip
        found.metadata.annotations["kemu.dev/shutdown-seconds"] = "20"
        await cluster.create(found)
        await cluster.at(60)
        now = await cluster.pod("a")
        status = now.status.containerStatuses[0]
        assert (status.restartCount, status.lastState.terminated.exitCode) == (1, 137)

    cluster.play(main)
    assert [data["grace_s"] for data in cluster.data("killing")] == [7]


@pytest.mark.parametrize(("policy", "restarts"), [("Never", 0), ("OnFailure", 1)])
def test_a_pod_that_never_restarts_ends_with_its_liveness(cluster: Cluster, policy: str, restarts: int) -> None:
    async def main(cluster: Cluster) -> None:
        rules = {"liveness": {"failsFrom": "5s", "starts": 1}}
        found = probed("a", rules, liveness={"periodSeconds": 1, "failureThreshold": 1})
        found.spec.restartPolicy = policy
        await cluster.create(found)
        await cluster.at(60)
        now = await cluster.pod("a")
        assert (now.status.phase == "Succeeded") == (policy == "Never")
        assert now.status.containerStatuses[0].restartCount == restarts

    cluster.play(main)


def test_a_startup_probe_holds_the_others_back(cluster: Cluster) -> None:
    rules = {"startup": {"succeedsAfter": "33s"}, "liveness": {"failsFrom": "0s", "failsFor": "30s"}}

    async def main(cluster: Cluster) -> None:
        await cluster.create(
            probed(
                "a", rules,
                startup={"periodSeconds": 5, "failureThreshold": 20},
                liveness={"periodSeconds": 1, "failureThreshold": 1},
                readiness={"periodSeconds": 30},
            )
        )  # fmt: skip
        await cluster.at(20)
        found = await cluster.pod("a")
        assert condition(found)[0] == "False"
        assert not found.status.containerStatuses[0].started
        await cluster.at(60)
        found = await cluster.pod("a")
        assert condition(found)[0] == "True"
        assert found.status.containerStatuses[0].started
        assert found.status.containerStatuses[0].restartCount == 0

    cluster.play(main)
    (started_s, kind, ok), (ready_s, other, _) = probings(cluster)
    assert (kind, ok, other) == ("startup", True, "readiness")
    # Readiness is asked as soon as the container has started.
    assert 33 <= started_s == ready_s <= 38


def test_a_sidecar_lets_the_others_start_when_its_startup_probe_succeeds(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        found = pod("a")
        sidecar = found.spec.initContainers.add(name="proxy", image="proxy", restartPolicy="Always")
        sidecar.startupProbe.handler.tcpSocket.port.intVal = 80
        sidecar.startupProbe.periodSeconds = 3
        sidecar.startupProbe.failureThreshold = 10
        found.metadata.annotations["kemu.dev/probes"] = json.dumps({"proxy": {"startup": {"succeedsAfter": "10s"}}})
        await cluster.create(found)
        await cluster.at(8)
        now = await cluster.get("a")
        assert condition(now, "Initialized") == (
            "False", "ContainersNotInitialized", "containers with incomplete status: [proxy]",
        )  # fmt: skip
        await cluster.at(20)
        assert condition(await cluster.get("a"))[0] == "True"

    cluster.play(main)
    ((when_s, _, _),) = cluster.told("running")
    assert 10 <= when_s <= 14


def test_a_post_start_hook_keeps_the_container_waiting(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        found = pod("a")
        found.spec.containers[0].lifecycle.postStart.exec.command.append("warm-up")
        found.metadata.annotations["kemu.dev/post-start-seconds"] = "15"
        await cluster.create(found)
        await cluster.at(10)
        assert await cluster.phase("a") == "Pending"
        await cluster.at(20)
        assert await cluster.phase("a") == "Running"

    cluster.play(main)


def test_a_failing_post_start_hook_kills_its_container(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        found = pod("a", shutdown=3)
        found.spec.containers[0].lifecycle.postStart.exec.command.append("warm-up")
        found.metadata.annotations["kemu.dev/post-start-error"] = "exit status 1"
        await cluster.create(found)
        await cluster.at(30)
        now = await cluster.pod("a")
        assert now.status.containerStatuses[0].state.waiting.reason == "CrashLoopBackOff"
        assert [reason for reason, _ in await events(cluster)][:2] == ["FailedPostStartHook", "Killing"]

    cluster.play(main)
    assert not cluster.told("running")


def test_a_pod_is_ready_only_with_its_gates(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        found = pod("a")
        found.spec.readinessGates.add(conditionType="example.com/in-service")
        await cluster.create(found)
        await cluster.at(5)
        now = await cluster.get("a")
        assert condition(now, "ContainersReady")[0] == "True"
        assert condition(now) == (
            "False", "ReadinessGatesNotReady",
            'corresponding condition of pod readiness gate "example.com/in-service" does not exist.',
        )  # fmt: skip
        for status in ("False", "True"):
            patch = {"status": {"conditions": [{"type": "example.com/in-service", "status": status}]}}
            await cluster.client.patch("pods", "a", "default", patch, "status", "strategic")
            await cluster.clock.sleep(5)
            text = "" if status == "True" else (
                'the status of pod readiness gate "example.com/in-service" is not "True", but False'
            )  # fmt: skip
            ready = condition(await cluster.get("a"))
            assert (ready[0], ready[2]) == (status, text)

    cluster.play(main)


def test_a_restarted_kubelet_keeps_containers_ready_that_ran_before(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(probed("a", readiness={"periodSeconds": 30}))
        await cluster.at(60)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.at(62)
        await cluster.runtime.restart("kubelet/n1")
        for _ in range(40):
            await cluster.clock.sleep(1)
            assert condition(await cluster.get("a"))[0] == "True"

    cluster.play(main)
