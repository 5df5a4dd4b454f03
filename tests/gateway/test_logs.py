"""What simulated containers say: the lines, and the subresource ``log``."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kemu.emulated.kubelet.logs import lines as logs
from kemu.emulated.kubelet.logs import streams
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2
from tests.gateway.gateway_cluster import Cluster, run

START_S = 1_000_000


def _pod(**more: Any) -> core_v1_pb2.Pod:
    container = {"name": "main", "image": "web:1", **more.pop("container", {})}
    status = more.pop("status", {"state": {"running": {"startedAt": "1970-01-12T13:46:40Z"}}, "restartCount": 0})
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "uid": "u1", **more},
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"containerStatuses": [{"name": "main", "image": "web:1", **status}]},
    }
    return convert.from_json(core_v1_pb2.Pod, document)


def _said(pod: Any, first_s: int = 0, last_s: int = 10**10, *, previous: bool = False) -> list[tuple[int, str]]:
    find = logs.previous if previous else logs.current
    found = find(pod, pod.spec.containers[0])
    assert found is not None
    return [(at_s - START_S, text) for at_s, text in found.lines(first_s, last_s)]


def test_a_container_tells_of_its_start_its_probes_and_what_it_uses() -> None:
    probe = {"httpGet": {"path": "/ready", "port": 80}, "periodSeconds": 20, "initialDelaySeconds": 5}
    annotations = {
        "kemu.dev/probes": json.dumps({"main": {"readiness": {"succeedsAfter": "10s"}}}),
        "kemu.dev/usage": json.dumps({"cpu": "250m", "memory": {"ramp": {"from": "0", "to": "120Mi", "over": "120s"}}}),
    }
    pod = _pod(container={"readinessProbe": probe}, annotations=annotations)
    assert _said(pod, 0, START_S + 70) == [
        (0, "main starts: image web:1 (simulated by kemu)"),
        (5, "GET /ready 503 (readiness probe)"),
        (25, "GET /ready 200 (readiness probe)"),
        (45, "GET /ready 200 (readiness probe)"),
        (60, "usage: cpu 250m, memory 60Mi"),
        (65, "GET /ready 200 (readiness probe)"),
    ]
    assert _said(pod, START_S + 50, START_S + 65) == [(60, "usage: cpu 250m, memory 60Mi")]


def test_the_log_of_a_container_that_was_killed_is_the_previous_one() -> None:
    killed = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": "1970-01-12T13:46:40Z",
        "finishedAt": "1970-01-12T13:46:50Z",
    }
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    running = {"state": {"running": {"startedAt": "1970-01-12T13:47:00Z"}}, "lastState": {"terminated": killed}}
    pod = _pod(container=limits, status={**running, "restartCount": 1})
    assert _said(pod) == [(20, "main starts: image web:1, restart 1 (simulated by kemu)")]
    assert _said(pod, previous=True) == [
        (0, "main starts: image web:1 (simulated by kemu)"),
        (10, "out of memory: the limit of 64Mi is reached, exit 137"),
    ]
    waits = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": killed}}
    waiting = _pod(container=limits, status={**waits, "restartCount": 1})
    assert _said(waiting) == _said(waiting, previous=True), "as the kubelet does while it waits"


def test_a_container_that_is_asked_to_stop_says_so() -> None:
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": "1970-01-12T13:46:40Z"}
    deleted = {"deletionTimestamp": "1970-01-12T13:47:30Z", "deletionGracePeriodSeconds": 30}
    assert _said(_pod(**deleted))[1:] == [(20, "SIGTERM: 30 s to stop")]
    pod = _pod(status={"state": {"terminated": {**ended, "finishedAt": "1970-01-12T13:47:05Z"}}}, **deleted)
    assert _said(pod)[1:] == [(20, "SIGTERM: 30 s to stop"), (25, "main exits with 0: Completed")]


# Over HTTP ----------------------------------------------------------------------------------------------------------

PODS = "/api/v1/namespaces/default/pods"


def _manifest(name: str, *containers: str, node: str = "n1") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": one, "image": "web:1"} for one in containers]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def _tell(cluster: Cluster, name: str, *statuses: dict[str, Any]) -> None:
    pod = (await cluster.http.get(f"{PODS}/{name}")).json()
    pod["status"] = {
        "phase": "Running",
        "containerStatuses": [{"name": "main", "image": "web:1", "ready": True, **one} for one in statuses],
    }
    answer = await cluster.http.put(f"{PODS}/{name}/status", json=pod)
    assert answer.status_code == 200, answer.text


async def _create(cluster: Cluster, *manifests: dict[str, Any]) -> None:
    await cluster.http.post("/api/v1/nodes", json={"metadata": {"name": "n1"}})
    for one in manifests:
        answer = await cluster.http.post(PODS, json=one)
        assert answer.status_code == 201, answer.text


STARTED = {"state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}, "restartCount": 0}


def test_refusals_are_those_of_kubernetes() -> None:
    async def main(cluster: Cluster) -> None:
        await _create(
            cluster, _manifest("one", "main"), _manifest("two", "main", "side"), _manifest("far", "main", node="")
        )

        async def refused(path: str) -> tuple[int, str]:
            answer = await cluster.http.get(f"{PODS}/{path}")
            return answer.status_code, answer.json()["message"]

        assert await refused("one/log") == (
            400,
            'container "main" in pod "one" is waiting to start: ContainerCreating',
        )
        assert await refused("one/log?container=x") == (400, "container x is not valid for pod one")
        assert await refused("two/log") == (
            400,
            "a container name must be specified for pod two, choose one of: [main side]",
        )
        assert await refused("none/log") == (404, 'pods "none" not found')
        assert (await refused("one/log?tailLines=-1"))[0] == 422
        assert (await cluster.http.get(f"{PODS}/far/log")).text == "", "nobody runs it yet"
        await _tell(cluster, "one", STARTED)
        assert await refused("one/log?previous=true") == (
            400,
            'previous terminated container "main" in pod "one" not found',
        )
        assert (await cluster.http.post(f"{PODS}/one/log")).status_code == 405

    run(main)


def test_lines_can_be_cut_and_dated() -> None:
    async def main(cluster: Cluster) -> None:
        await _create(cluster, _manifest("one", "main"))
        await _tell(cluster, "one", STARTED)

        async def log(query: str) -> str:
            answer = await cluster.http.get(f"{PODS}/one/log?{query}")
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/plain"
            return answer.text

        line = "main starts: image web:1 (simulated by kemu)\n"
        assert await log("") == line
        assert await log("timestamps=true") == f"2020-01-01T00:00:00.000000000Z {line}"
        assert await log("tailLines=0") == ""
        assert await log("tailLines=5") == line
        assert await log("sinceSeconds=60") == ""
        assert await log("sinceTime=2019-12-31T23:59:59Z") == line
        assert await log("limitBytes=4") == "main"

    run(main)


def test_a_log_is_followed_to_the_end_of_the_container() -> None:
    async def main(cluster: Cluster) -> None:
        await _create(cluster, _manifest("one", "main"))
        await _tell(cluster, "one", STARTED)
        following = asyncio.create_task(cluster.http.get(f"{PODS}/one/log?follow=true&tailLines=0"))
        await asyncio.sleep(0.2)
        assert not following.done()
        now = (await cluster.http.get(f"{PODS}/one")).json()["metadata"]["creationTimestamp"]
        ended = {"exitCode": 3, "reason": "Error", "startedAt": "2020-01-01T00:00:00Z", "finishedAt": now}
        await _tell(cluster, "one", {"state": {"terminated": ended}, "restartCount": 0})
        answer = await asyncio.wait_for(following, 10)
        assert answer.text == "main exits with 3: Error\n"

    run(main)


def test_a_gateway_that_ends_ends_what_is_followed() -> None:
    async def main(cluster: Cluster) -> None:
        await _create(cluster, _manifest("one", "main"))
        await _tell(cluster, "one", STARTED)
        following = asyncio.create_task(cluster.http.get(f"{PODS}/one/log?follow=true"))
        await asyncio.sleep(0.2)
        assert not following.done()
        cluster.gateway.close()
        assert (await asyncio.wait_for(following, 5)).status_code == 200

    run(main)


def test_who_may_not_read_logs_is_told_so() -> None:
    async def main(cluster: Cluster) -> None:
        await _create(cluster, _manifest("one", "main"))
        answer = await cluster.http.get(f"{PODS}/one/log", headers={"Impersonate-User": "somebody"})
        assert answer.status_code == 403
        text = 'User "somebody" cannot get resource "pods/log" in API group "" in the namespace "default"'
        assert answer.json()["message"] == f'pods "one" is forbidden: {text}'

    run(main)


@pytest.mark.parametrize("count", [1, 3, 50])
def test_the_tail_is_the_end_of_the_whole(count: int) -> None:
    probe = {"exec": {"command": ["check"]}, "periodSeconds": 7}
    pod = _pod(container={"livenessProbe": probe})
    instance = logs.current(pod, pod.spec.containers[0])
    assert instance is not None
    whole = list(instance.lines(0, START_S + 5000))
    assert streams._tail(instance, START_S, START_S + 5000, count) == whole[-count:]
