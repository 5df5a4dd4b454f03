"""no-node-overcommitted: it holds on a sound log and fails on the one thing that it is for, in a changed log and in a
run of a kubelet with a bug."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.sync import pod_workers
from kemu.lab.checks import registry
from kemu.lab.checks.results import Result
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from tests.checks.logs import Log

CHECK = "no-node-overcommitted"


def judged(log: Log) -> Result:
    _, results = registry.judge(log.events)
    return next(result for result in results if result.id == CHECK)


def scene() -> Log:
    """A runs on n1, and takes 6 of its 10 cpu."""
    log = Log()
    log.node(0, "n1")
    log.pod(1, "a", cpu="6", node="n1")
    log.admit(2, "a", "n1")
    log.pod(2, "a", phase="Running")
    return log


def b_comes(log: Log, seconds: float = 10) -> Log:
    """And wants 6, too."""
    log.pod(seconds - 1, "b", cpu="6", node="n1")
    log.admit(seconds, "b", "n1")
    return log


class TestWhenRoomIsFree:
    def test_never_before_something_ended(self) -> None:
        result = judged(b_comes(scene()))
        assert result.holds is False
        assert "default/b on n1 makes 12000 of cpu in use, of 10000 allocatable" in result.detail

    @pytest.mark.parametrize("end", ["kubelet.terminated", "kubelet.finished"])
    def test_when_the_kubelet_says_so(self, end: str) -> None:
        log = scene()
        log.add(3, "kubelet/n1", end, pod="default/a", uid="uid-a", node="n1", start=0)
        assert judged(b_comes(log)).holds is True

    @pytest.mark.parametrize("end", ["Succeeded", "Failed"])
    def test_not_because_the_object_says_so(self, end: str) -> None:
        log = scene()
        log.pod(3, "a", phase=end)
        assert judged(b_comes(log)).holds is False

    def test_when_the_object_is_gone_whatever_still_runs(self) -> None:
        log = scene()
        log.gone(3, "a")
        assert judged(b_comes(log)).holds is True
        log = scene()
        log.gone(3, "a")
        log.terminated(4, "a", "n1")
        assert judged(b_comes(log)).holds is True

    @pytest.mark.parametrize("end", ["gone", "Succeeded", "Failed"])
    def test_where_there_is_no_kubelet_the_object_is_believed(self, end: str) -> None:
        log = Log()
        log.node(0, "n1")
        log.pod(1, "a", cpu="6", node="n1", phase="Running")
        if end == "gone":
            log.gone(3, "a")
        else:
            log.pod(3, "a", phase=end)
        log.pod(4, "b", cpu="6", node="n1", phase="Running")
        assert judged(log).holds is True

    def test_when_the_machine_is_off(self) -> None:
        log = scene()
        log.add(3, "operator", "machine.off", node="n1", why="crash")
        log.pod(4, "a", reason="NodeLost")  # still Running, says the object, but on what?
        log.add(5, "kubelet/n1", "actor.started", incarnation=2)
        assert judged(b_comes(log)).holds is True

    def test_when_the_machine_is_removed(self) -> None:
        log = scene()
        log.add(3, "kubelet/n1", "actor.stopped")
        log.gone(4, "a")
        log.add(5, "kubelet/n1", "actor.started", incarnation=1)
        assert judged(b_comes(log)).holds is True

    def test_what_runs_again_counts_again(self) -> None:
        log = scene()
        log.add(3, "operator", "machine.off", node="n1", why="crash")
        log.add(5, "kubelet/n1", "actor.started", incarnation=2)
        log.add(6, "kubelet/n1", "kubelet.running", pod="default/a", uid="uid-a", node="n1", start=0)
        assert judged(b_comes(log)).holds is False

    def test_the_crash_of_a_kubelet_ends_nothing(self) -> None:
        log = scene()
        log.add(3, "kubelet/n1", "actor.crashed")
        log.add(4, "kubelet/n1", "actor.started", incarnation=2)
        assert judged(b_comes(log)).holds is False

    def test_a_kubelet_that_starts_anew_does_not_know_what_is_over(self) -> None:
        log = scene()
        log.add(3, "kubelet/n1", "actor.crashed")
        log.gone(4, "a")
        log.add(5, "kubelet/n1", "actor.started", incarnation=2)
        assert judged(b_comes(log)).holds is True

    def test_a_kubelet_that_starts_anew_may_refuse_what_runs(self) -> None:
        log = scene()
        log.add(3, "kubelet/n1", "actor.started", incarnation=2)
        log.admit(4, "a", "n1", reason="OutOfcpu")
        log.pod(5, "a", priority=5)  # Running still, says the object
        assert judged(b_comes(log)).holds is True


class TestAllocatable:
    """Shrinks from 10 to 5 at 3 s, when 6 are in use; grows to 20 at 6 s."""

    def scene(self) -> tuple[Log, list[int]]:
        log = Log()
        log.listed(0, "kubelet/n1", 0)
        log.events[-1].data.update(watch="nodes#1", resource="nodes")
        log.node(0, "n1")
        log.pod(1, "a", cpu="6", node="n1")
        log.admit(2, "a", "n1")
        return log, [log.node(3, "n1", cpu="5"), log.node(6, "n1", cpu="20")]

    def kubelet_sees(self, log: Log, seconds: float, revision: int) -> None:
        log.add(seconds, "kubelet/n1", "watch.events", watch="nodes#1", revs=[revision], types="M", digests=[0])

    def test_shrinking_under_what_runs_is_not_the_fault_of_the_kubelet(self) -> None:
        log, _ = self.scene()
        assert judged(log).holds is True

    @pytest.mark.parametrize("saw", [False, True])
    def test_what_the_kubelet_admits_must_fit_as_far_as_it_knows(self, saw: bool) -> None:
        log, (shrunk, _) = self.scene()
        del log.events[-1]
        if saw:
            self.kubelet_sees(log, 4, shrunk)
        log.pod(4, "b", cpu="3", node="n1")
        log.admit(5, "b", "n1")
        assert judged(log).holds is not saw

    def test_growth_counts_at_once(self) -> None:
        log, (shrunk, grown) = self.scene()
        self.kubelet_sees(log, 4, shrunk)
        self.kubelet_sees(log, 7, grown)
        log.pod(8, "b", cpu="13", node="n1")
        log.admit(9, "b", "n1")
        assert judged(log).holds is True

    def test_an_extended_resource_that_the_node_does_not_have_is_overlooked(self) -> None:
        log = Log()
        log.node(0, "n1")
        log.pod(1, "a", cpu="1", node="n1")
        log.pods["a"].spec.containers[0].resources.requests["example.com/gpu"].string = "1"
        log.pod(1, "a")
        log.admit(2, "a", "n1")
        assert judged(log).holds is True


class TestResizes:
    def resized(self, cpu: str) -> Log:
        log = scene()
        log.pod(3, "b", cpu="3", node="n1")
        log.admit(4, "b", "n1")
        status = core_v1_pb2.ContainerStatus(name="main")
        status.resources.requests["cpu"].string = cpu
        log.pods["a"].status.containerStatuses.append(status)
        log.pod(5, "a")
        return log

    @pytest.mark.parametrize(("cpu", "holds"), [("7", True), ("8", False)])
    def test_a_resize_must_fit(self, cpu: str, holds: bool) -> None:
        result = judged(self.resized(cpu))
        assert result.holds is holds
        assert holds or "default/a, resized, on n1 makes 11000 of cpu in use, of 10000 allocatable" in result.detail

    def test_what_has_grown_leaves_less_room(self) -> None:
        log = self.resized("7")
        log.pod(6, "c", cpu="1", node="n1")
        log.admit(7, "c", "n1")
        assert judged(log).holds is False


SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: ends}
spec:
  duration: 1m
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  events:
    - at: 1s
      create:
        apiVersion: v1
        kind: Pod
        metadata: {name: a, annotations: {kemu.dev/shutdown-seconds: "20"}}
        spec: {containers: [{name: main, resources: {requests: {cpu: "3"}}}]}
    - {at: 10s, delete: {pod: a}}
    - at: 12s
      create:
        apiVersion: v1
        kind: Pod
        metadata: {name: b}
        spec: {nodeName: node-1, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}
"""
FORCED = SCENARIO.replace("pod: a}", "pod: a, gracePeriodSeconds: 0}")


def result_of(folder: Path, text: str = SCENARIO) -> Result:
    runner.run(loader.loads(text), runner.Options(out=folder))
    with Reader(folder / FILE_NAME) as reader:
        history, results = registry.judge(reader)
    ended = history.pods[history.names["default/a"][0]].first("ended")
    assert ended is not None
    assert ended.time_ns >= 29e9
    return next(result for result in results if result.id == CHECK)


@pytest.mark.parametrize("text", [SCENARIO, FORCED])
def test_it_holds_of_a_run_with_a_pod_that_ends(text: str, tmp_path: Path) -> None:
    assert result_of(tmp_path, text).holds is True


def _releases_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubelet that gives room back when it begins to stop a pod, while the containers still shut down."""
    stop = pod_workers.PodWorkers._stop

    def changed(self: Any, worker: Any, *grace: Any, **more: Any) -> None:
        stop(self, worker, *grace, **more)
        self._uncount(worker)

    monkeypatch.setattr(pod_workers.PodWorkers, "_stop", changed)


def _admits_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicates, "failures", lambda node, usage, pod, claim: ())


@pytest.mark.parametrize("bug", [_releases_too_early, _admits_everything])
def test_a_bug_of_the_kubelet_is_found(
    bug: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    result = result_of(tmp_path)
    assert result.holds is False
    assert "default/b on node-1 makes 6000 of cpu in use, of 4000 allocatable" in result.detail


def test_a_cluster_that_stops_does_not_compare_every_node_with_every_pod() -> None:
    """All kubelets stop at the end of a run: with 130,000 of them that took hours."""
    log, many = Log(), 6_000
    for n in range(many):
        log.pod(1, f"a{n}", node=f"n{n}")
        log.admit(2, f"a{n}", f"n{n}")
        log.add(2, f"kubelet/n{n}", "kubelet.running", pod=f"default/a{n}", uid=f"uid-a{n}", node=f"n{n}")
    for n in range(many):
        log.add(3, f"kubelet/n{n}", "actor.stopped")
    begun = time.process_time()
    _, results = registry.judge(log.events)
    assert not [result for result in results if result.holds is False]
    assert time.process_time() - begun < 3  # it takes 0.5 s, and took 8 s more


REJECTS = "rejected-pods-do-not-fit"


def rejection(log: Log) -> Result:
    _, results = registry.judge(log.events)
    return next(result for result in results if result.id == REJECTS)


@pytest.mark.parametrize(("wanted", "holds"), [("4", False), ("5", True)])
def test_a_kubelet_rejects_what_does_not_fit(wanted: str, holds: bool) -> None:
    log = scene()
    log.pod(3, "b", cpu=wanted, node="n1")
    log.admit(4, "b", "n1", reason="OutOfcpu")
    assert rejection(log).holds is holds


@pytest.mark.parametrize(("is_told", "holds"), [(True, True), (False, False)])
def test_what_runs_is_rejected_with_a_word_or_not_at_all(is_told: bool, holds: bool) -> None:
    """A kubelet that starts anew says whom it does not keep; the word stands for a node that has shrunk."""
    log = scene()
    if is_told:
        log.node(3, "n1", cpu="5")
        log.admit(4, "a", "n1", reason="OutOfcpu")
    log.pod(5, "a", phase="Failed", reason="OutOfcpu")
    assert rejection(log).holds is holds


def test_what_has_ended_is_no_reason_to_reject() -> None:
    log = scene()
    log.pod(3, "b", cpu="5", node="n1")
    log.terminated(4, "a", "n1")
    log.admit(5, "b", "n1", reason="OutOfcpu")
    assert (
        rejection(log).detail == "5.000 s: n1 rejects default/b, which wants 5000 of cpu, where 0 of 10000 are in use"
    )


def test_other_reasons_to_reject_are_not_judged() -> None:
    log = scene()
    log.pod(3, "b", cpu="1", node="n1")
    log.admit(4, "b", "n1", reason="NodeAffinity")
    assert rejection(log).holds is None


REBOOT = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: reboot}
spec:
  duration: 40s
  nodes: [{name: n1, allocatable: {cpu: "2", memory: 2Gi, pods: "8"}}]
  manifests:
  - apiVersion: v1
    kind: Pod
    metadata: {name: large, annotations: {kemu.dev/start-seconds: "5"}}
    spec: {nodeName: n1, containers: [{name: m, resources: {requests: {memory: 1600Mi}}}]}
  - apiVersion: v1
    kind: Pod
    metadata: {name: other}
    spec: {nodeName: n1, containers: [{name: m, resources: {requests: {memory: 600Mi}}}]}
  - apiVersion: v1
    kind: Pod
    metadata: {name: vital}
    spec: {nodeName: n1, priorityClassName: system-node-critical,
           containers: [{name: m, resources: {requests: {memory: 600Mi}}}]}
  chaos: [{at: 10s, for: 5s, crash: {node: n1}}]
"""


def test_what_a_kubelet_takes_again_counts_before_it_has_started_again(tmp_path: Path) -> None:
    """After the reboot the oldest pod is taken again, the next one does not fit, and the critical one stays."""
    runner.run(loader.loads(REBOOT), runner.Options(out=tmp_path / "run"))
    with Reader(tmp_path / "run" / FILE_NAME) as log:
        _, results = registry.judge(log)
    found = {one.id: one for one in results}
    assert found[REJECTS].detail == "1 pod rejected"
    assert found[CHECK].holds is True


def came_back(log: Log) -> Log:
    """The machine of n1 was off, and A starts again, but does not run yet."""
    log.add(3, "operator", "machine.off", node="n1", why="crash")
    log.add(5, "kubelet/n1", "actor.started", incarnation=2)
    log.add(
        5, "kubelet/n1", "watch.listed", watch="pods#1", resource="pods", namespace="", label_selector="",
        field_selector="spec.nodeName=n1", rev=log.revision, objects=1, digest=None,
    )  # fmt: skip
    return log


@pytest.mark.parametrize(("wanted", "holds"), [("4", False), ("5", True)])
def test_what_starts_again_is_a_reason_to_reject(wanted: str, holds: bool) -> None:
    log = came_back(scene())
    log.pod(6, "b", cpu=wanted, node="n1")
    log.admit(7, "b", "n1", reason="OutOfcpu")
    assert rejection(log).holds is holds


def test_what_starts_again_must_fit_beside_what_was_admitted_meanwhile() -> None:
    log = b_comes(came_back(scene()), 7)
    assert judged(log).holds is True
    log.add(8, "kubelet/n1", "kubelet.running", pod="default/a", uid="uid-a", node="n1", start=0)
    assert judged(log).holds is False
