"""Pressure on whole kubelets: what they say of it, whom they refuse, and what a crash leaves of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controllers.test_node_failures import Played, play

HUNGRY = "{memory: {steps: [{at: 0s, value: 1Gi}, {at: 25s, value: 3500Mi}, {at: 200s, value: 1Gi}]}}"


def pod(name: str, usage: str = "", spec: str = "", annotations: str = "") -> str:
    said = ", ".join(part for part in (f"kemu.dev/usage: '{usage}'" if usage else "", annotations) if part)
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, annotations: {{{said}}}}}, "
        f"spec: {{{spec}containers: [{{name: main}}]}}}}"
    )


def conditions(found: Played, node: str = "n1") -> list[tuple[int, str]]:
    """Of its memory pressure, as the API server has it: (second, status), the first one left out."""
    facts = [fact for fact in found.history.nodes[node].facts if fact.what == "condition"]
    return [(round(fact.time_ns / 1e9), fact.status) for fact in facts if fact.reason == "MemoryPressure"][1:]


SOFT = (
    "kubelet: {evictionSoft: {memory.available: 1Gi}, evictionSoftGracePeriod: {memory.available: 10m}, "
    "evictionPressureTransitionPeriod: 1m}"
)


def test_best_effort_pods_are_refused_under_memory_pressure(tmp_path: Path) -> None:
    on = "nodeName: n1, "
    found = play(tmp_path, f"""
        duration: 100s
        nodes: [{{name: n1, capacity: {{cpu: "4", memory: 4Gi}}, {SOFT}}}]
        manifests:
        - {pod("hungry", HUNGRY, on)}
        events:
        - {{at: 20s, create: {pod("before", "", on)}}}
        - {{at: 60s, create: {pod("after", "", on)}}}
        - {{at: 60s, create: {pod("tolerant", "", on + "tolerations: [{operator: Exists}], ")}}}
        - {{at: 60s, create: {pod("critical", "", on + "priorityClassName: system-node-critical, ")}}}
    """)  # fmt: skip
    phases = {one.metadata.name: one.status.phase for one in found.pods.values()}
    assert phases == {
        "hungry": "Running", "before": "Running", "after": "Failed", "tolerant": "Running", "critical": "Running",
    }  # fmt: skip
    after = found.pods["default/after"].status
    assert (after.reason, after.message) == ("Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. ")
    assert found.history.counts["evictions"] == 0


def test_a_kubelet_that_crashes_under_pressure_finds_it_again(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 6m
        nodes: [{{name: n1, capacity: {{cpu: "4", memory: 4Gi}}, {SOFT}}}]
        manifests:
        - {pod("hungry", HUNGRY, "nodeName: n1, ")}
        chaos:
        - {{at: 90s, for: 20s, crash: {{actor: kubelet/n1}}}}
    """)  # fmt: skip
    said = conditions(found)
    assert [status for _, status in said] == ["True", "False", "True", "False"]
    # As the real one it says False when it comes back, and True when its manager has looked.
    assert said[0][0] < 45
    assert said[1][0] == 110
    assert 110 <= said[2][0] <= 122
    # A minute after it was last seen.
    assert 250 <= said[3][0] <= 275


def test_a_grace_period_begins_anew_with_the_kubelet(tmp_path: Path) -> None:
    for crashes, after_s, before_s in ((False, 110, 135), (True, 175, 205)):
        chaos = "chaos: [{at: 70s, for: 20s, crash: {actor: kubelet/n1}}]" if crashes else ""
        found = play(tmp_path / str(crashes), f"""
            duration: 6m
            nodes: [{{name: n1, capacity: {{cpu: "4", memory: 4Gi}}, {SOFT.replace("10m", "85s")}}}]
            manifests:
            - {pod("hungry", HUNGRY, "nodeName: n1, ")}
            {chaos}
        """)  # fmt: skip
        ((at, data),) = found.of("kubelet.evicting")
        assert data["pod"] == "default/hungry"
        assert after_s <= at <= before_s


def test_what_was_collected_stays_so_after_a_crash(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 4m
        nodes:
        - name: n1
          capacity: {{cpu: "4", memory: 4Gi, ephemeral-storage: 10Gi}}
          usage: {{images: 5Gi}}
        manifests:
        - {pod("writer", "{logs: {steps: [{at: 0s, value: 1Gi}, {at: 25s, value: 4600Mi}]}}", "nodeName: n1, ")}
        chaos:
        - {{at: 90s, for: 10s, crash: {{actor: kubelet/n1}}}}
    """)  # fmt: skip
    assert [round(at) for at, _ in found.of("kubelet.collected", what="images")] in ([30], [31])
    assert found.history.counts["evictions"] == 0


def test_a_pod_that_terminates_may_still_be_evicted(tmp_path: Path) -> None:
    """It uses what it uses until it is gone; being evicted cuts its grace period short."""
    spec, slowly = "nodeName: n1, terminationGracePeriodSeconds: 100, ", 'kemu.dev/shutdown-seconds: "90"'
    found = play(tmp_path, f"""
        duration: 3m
        nodes: [{{name: n1, capacity: {{cpu: "4", memory: 4Gi}}, kubelet: {{evictionHard: {{memory.available: 1Gi}}}}}}]
        manifests:
        - {pod("hungry", HUNGRY, spec, slowly)}
        events:
        - {{at: 15s, delete: {{pod: hungry}}}}
    """)  # fmt: skip
    ((evicted, _),) = found.of("kubelet.evicting")
    ((gone, _),) = found.of("kubelet.terminated")
    assert 25 <= evicted <= 31
    assert gone - evicted < 4


SLOW = "timing: {kubeletSync: 3s}"
"""Kubelets that act on what they hear some time after they have started."""


@pytest.mark.parametrize("chaos", ["", "chaos: [{at: 5s, for: 5s, crash: {actor: kubelet/n1}}]"])
def test_a_kubelet_that_adopts_pods_late_sees_what_they_use(tmp_path: Path, chaos: str) -> None:
    found = play(tmp_path, f"""
        duration: 6m
        {SLOW}
        nodes: [{{name: n1, capacity: {{cpu: "4", memory: 4Gi}}, kubelet: {{evictionHard: {{memory.available: 1Gi}}}}}}]
        manifests:
        - {pod("hungry", HUNGRY, "nodeName: n1, ")}
        {chaos}
    """)  # fmt: skip
    ((evicted, data),) = found.of("kubelet.evicting")
    assert data["pod"] == "default/hungry"
    assert 25 <= evicted <= 36


@pytest.mark.parametrize("chaos", ["", "chaos: [{at: 5s, for: 5s, crash: {actor: kubelet/n1}}]"])
def test_a_kubelet_that_adopts_pods_late_hears_of_oom_kills(tmp_path: Path, chaos: str) -> None:
    found = play(tmp_path, f"""
        duration: 6m
        {SLOW}
        nodes: [{{name: n1, capacity: {{cpu: "4", memory: 3Gi}}}}]
        manifests:
        - {pod("hungry", HUNGRY, "nodeName: n1, restartPolicy: Never, ")}
        {chaos}
    """)  # fmt: skip
    assert [round(at) for at, _ in found.of("kubelet.oom_killed")] == [25]


def test_pods_that_ran_before_the_run_are_not_judged_again(tmp_path: Path) -> None:
    """However late their kubelet gets to them: it had admitted them."""
    big = "nodeName: n1, containers: [{name: main, resources: {requests: {cpu: '3'}}}]"
    names = ("a", "b")
    manifests = "".join(
        f"        - {{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{{big}}}}}\n" for name in names
    )
    found = play(tmp_path, f"""
        duration: 60s
        {SLOW}
        nodes: [{{name: n1, capacity: {{cpu: "4", memory: 4Gi}}}}]
        checks: {{disable: [no-node-overcommitted]}}
        manifests:
{manifests}
    """)  # fmt: skip
    assert {one.metadata.name: one.status.phase for one in found.pods.values()} == dict.fromkeys(names, "Running")


def test_a_static_pod_finds_the_pods_that_ran_before_the_run(tmp_path: Path) -> None:
    """A kubelet that acts late on news had heard of them long ago: the static pod preempts one of them."""
    big = "{containers: [{name: main, resources: {requests: {cpu: '3'}}}], priorityClassName: system-node-critical}"
    found = play(tmp_path, f"""
        duration: 60s
        {SLOW}
        nodes:
        - name: n1
          capacity: {{cpu: "4", memory: 4Gi}}
          kubelet:
            staticPods:
            - {{apiVersion: v1, kind: Pod, metadata: {{name: static, namespace: kube-system}}, spec: {big}}}
        manifests:
        - apiVersion: v1
          kind: Pod
          metadata: {{name: a}}
          spec: {{nodeName: n1, containers: [{{name: main, resources: {{requests: {{cpu: "3"}}}}}}]}}
    """)  # fmt: skip
    assert [data["pod"] for _, data in found.of("kubelet.preempting")] == ["default/a"]
