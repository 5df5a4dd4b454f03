"""Tests of a controller in a cluster whose clock stands still: pytest examples/controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import kubernetes
import pytest
from workers import Workers

AGENT = "workers/*"
CONFLICT = {"refuse": {"code": 409, "agent": AGENT, "verb": "update", "nth": 1}}
CUT = {"cutStreams": {"agent": AGENT}}
EXPIRED = {"refuse": {"code": 410, "agent": AGENT, "verb": "watch"}}
STALE = {"staleAnswers": {"by": "30s", "agent": AGENT, "verb": "list", "resource": "pods"}}

Start = Callable[[bool], Any]


@pytest.fixture
def start(kemu_up: Any) -> Iterator[Start]:
    """Starts the controller, and gives a client of the test's own."""
    running: list[Any] = []

    def start(careful: bool) -> Any:
        workers = Workers(str(kemu_up.kubeconfig), careful=careful)
        client = kubernetes.config.new_client_from_config(str(kemu_up.kubeconfig))
        running.extend([workers, client])
        workers.start()
        kemu_up.step(1)
        return kubernetes.client.CoreV1Api(client)

    yield start
    for each in running:
        each.close()


def work(api: Any, name: str) -> None:
    api.create_namespaced_config_map("default", {"metadata": {"name": name, "labels": {"work": "yes"}}})


def pods(api: Any, name: str) -> int:
    return len(api.list_namespaced_pod("default", label_selector=f"work-of={name}").items)


@pytest.mark.parametrize("careful", [True, False])
def test_without_faults_both_work(kemu_up: Any, start: Start, careful: bool) -> None:
    api = start(careful)
    work(api, "a")
    kemu_up.step(until="configmap/a .data.pod!=, pod/a-* running")
    assert pods(api, "a") == 1


@pytest.mark.parametrize("careful", [True, False])
def test_an_update_is_not_lost_when_it_meets_a_conflict(kemu_up: Any, start: Start, careful: bool) -> None:
    api = start(careful)
    kemu_up.chaos(CONFLICT)
    work(api, "a")
    assert holds(kemu_up, "configmap/a .data.pod!=") is careful


@pytest.mark.parametrize("careful", [True, False])
def test_what_happens_after_410_is_seen(kemu_up: Any, start: Start, careful: bool) -> None:
    api = start(careful)
    expired = kemu_up.chaos(EXPIRED)
    cut = kemu_up.chaos(CUT)
    kemu_up.step(5)
    kemu_up.heal(cut)
    work(api, "a")
    assert holds(kemu_up, "pod/a-* exists") is careful
    kemu_up.heal(expired)


@pytest.mark.parametrize("careful", [True, False])
def test_an_old_list_makes_no_second_pod(kemu_up: Any, start: Start, careful: bool) -> None:
    api = start(careful)
    kemu_up.chaos(STALE)
    work(api, "a")
    kemu_up.step(1)
    api.patch_namespaced_config_map("a", "default", {"metadata": {"annotations": {"touched": "yes"}}})
    kemu_up.step(5)
    assert (pods(api, "a") == 1) is careful


def holds(cluster: Any, condition: str) -> bool:
    try:
        return bool(cluster.step(30, until=condition))
    except AssertionError:
        return False
