"""The taint eviction controller as an actor: what it does when others fail, or think better of it, in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controllers.test_node_failures import Played, play

TAINT = "taint: {node: n1, key: key1, value: x, effect: NoExecute}"
TOLERATION = "{key: key1, operator: Exists, effect: NoExecute, tolerationSeconds: 30}"


def pod(number: int) -> str:
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: p{number}}}, "
        f"spec: {{nodeName: n1, tolerations: [{TOLERATION}], containers: [{{name: main}}]}}}}"
    )


def pods(count: int) -> str:
    return f"[{', '.join(pod(number) for number in range(count))}]"


def evicted(found: Played) -> list[tuple[str, int]]:
    """(pod, second at which the request returned)."""
    return sorted((data["pod"].removeprefix("default/"), round(at)) for at, data in found.of("taint.eviction", ok=True))


def test_a_lag_comes_on_top(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 90s
        nodes: [{{name: n1}}]
        controllers: {{taint-eviction: {{lag: 5s}}}}
        manifests: {pods(1)}
        events:
        - {{at: 20s, {TAINT}}}
    """)  # fmt: skip
    assert evicted(found) == [("p0", 55)]


@pytest.mark.parametrize("what", ["apiserver/0", "store", "controller/taint-eviction"])
def test_a_crash_when_it_is_due_only_delays_it(what: str, tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 3m
        nodes: [{{name: n1}}]
        manifests: {pods(3)}
        events:
        - {{at: 20s, {TAINT}}}
        chaos:
        - {{at: 49s, for: 6s, crash: {{actor: {what}}}}}
    """)  # fmt: skip
    assert [name for name, _ in evicted(found)] == ["p0", "p1", "p2"]
    # A controller that starts anew counts anew from when it finds the taint, as in Kubernetes.
    first = min(at for _, at in evicted(found))
    assert (85 <= first <= 87) if what.startswith("controller") else (55 <= first <= 62)
    assert found.pods == {}


def test_a_taint_that_goes_in_time_spares_them_and_one_that_returns_counts_anew(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 3m
        nodes: [{{name: n1}}]
        manifests: {pods(2)}
        events:
        - {{at: 20s, {TAINT}}}
        - {{at: 45s, untaint: {{node: n1, key: key1}}}}
        - {{at: 60s, {TAINT}}}
    """)  # fmt: skip
    assert evicted(found) == [("p0", 90), ("p1", 90)]


def test_a_pod_of_the_same_name_that_came_later_is_left_alone(tmp_path: Path) -> None:
    """It has a time of its own."""
    found = play(tmp_path, f"""
        duration: 100s
        nodes: [{{name: n1}}]
        manifests: {pods(1)}
        events:
        - {{at: 20s, {TAINT}}}
        - {{at: 40s, delete: {{pod: p0, gracePeriodSeconds: 0}}}}
        - {{at: 42s, create: {pod(0)}}}
    """)  # fmt: skip
    assert evicted(found) == [("p0", 72)]
