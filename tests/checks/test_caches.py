"""cache-agrees-with-store: it holds of what ran, and fails of a log that was changed and of a scheduler that forgot."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.scheduler import audits, feeds
from kemu.emulated.scheduler.cache.columns import ResourceColumns
from kemu.lab.checks import registry
from kemu.lab.checks.results import Result
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog.frames import FILE_NAME, Entry, Reader

CHECK = "cache-agrees-with-store"
SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: caches}
spec:
  duration: 1m
  nodes:
    - {namePrefix: node-, count: 3, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
  events:
    - {at: 20s, cordon: {node: node-1}}
    - {at: 25s, taint: {node: node-2, key: a, value: b, effect: NoSchedule}}
    - {at: 30s, removeNode: {node: node-1}}
  workloads:
    - name: short
      arrivals: {every: 500ms, count: 40}
      pods:
        spec: {restartPolicy: Never, containers: [{name: main, resources: {requests: {cpu: 500m}}}]}
      life: {runSeconds: 3}
    - name: long
      arrivals: {every: 2s, count: 20}
      pods:
        spec: {containers: [{name: main, resources: {requests: {cpu: 700m}}}]}
"""


def ran(folder: Path) -> list[Entry]:
    runner.run(loader.loads(SCENARIO), runner.Options(out=folder))
    with Reader(folder / FILE_NAME) as reader:
        return list(reader)


def judged(events: list[Entry]) -> Result:
    _, results = registry.judge(events)
    return next(result for result in results if result.id == CHECK)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    return ran(tmp_path_factory.mktemp("run"))


def report_of(events: list[Entry]) -> dict[str, Any]:
    """The last report; change it."""
    data: dict[str, Any] = [event for event in events if event.kind == "sched.cache"][-1].data  # type: ignore[assignment]
    return data


def test_it_holds_of_a_run(log: list[Entry]) -> None:
    result = judged(log)
    assert (result.holds, result.detail) == (True, "1 report compared")
    report = report_of(log)
    assert report["nodes"] == 2
    assert report["pods"] > 0
    assert report["waiting"] > 0


def test_reports_come_at_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "EVERY_S", 5)
    result = judged(ran(tmp_path))
    assert result.holds is True
    assert int(result.detail.split()[0]) > 5


def _other_node(report: dict[str, Any]) -> None:
    report["node_prints"] = bytes([report["node_prints"][0] ^ 1]) + report["node_prints"][1:]


def _other_load(report: dict[str, Any]) -> None:
    report["load_prints"] = report["load_prints"][:-1] + bytes([report["load_prints"][-1] ^ 1])


def _one_pod_less(report: dict[str, Any]) -> None:
    report["pods"] -= 1


def _one_more_waits(report: dict[str, Any]) -> None:
    report["waiting"] += 1


def _another_waits(report: dict[str, Any]) -> None:
    report["waiting_print"] ^= 1


def _never_bound(report: dict[str, Any]) -> None:
    report["assumed"] = [["default/short-0", "nobody", "node-0", False]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_other_node, "holds another node-2 than the store"),
        (_other_load, "counts other pods or amounts on node-3 than the store"),
        (_one_pod_less, "pods on nodes; the store has"),
        (_one_more_waits, "pods waiting; the store has"),
        (_another_waits, "has other pods waiting than the store"),
        (_never_bound, "assumes default/short-0 on node-0, where nobody bound it"),
    ],
)
def test_a_report_that_says_something_else_is_found(
    log: list[Entry], change: Callable[[dict[str, Any]], None], says: str
) -> None:
    tampered = copy.deepcopy(log)
    change(report_of(tampered))
    result = judged(tampered)
    assert result.holds is False
    assert says in result.detail


def test_a_transaction_that_is_missing_is_found(log: list[Entry]) -> None:
    """Any change of a pod's node, or of a node, that counts at the end."""
    last: dict[str, int] = {}
    for number, event in enumerate(log):
        if event.kind == "store.txn":
            for _op, key, _value, _create, _version in event.data["changes"]:
                if key.startswith("/registry/pods/"):
                    last[key] = number
    deleted = [number for key, number in last.items() if log[number].data["changes"][0][0] == 1]
    ended = [number for key, number in last.items() if "short" in key]
    for number in (deleted or ended)[:5]:
        assert judged(log[:number] + log[number + 1 :]).holds is False


def test_a_scheduler_that_loses_an_event_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = feeds.PodFeed.on_delete
    ended = 0

    def forgetful(self: feeds.PodFeed, pod: Any) -> None:
        nonlocal ended
        ended += 1
        if ended != 3:
            heard(self, pod)

    monkeypatch.setattr(feeds.PodFeed, "on_delete", forgetful)
    result = judged(ran(tmp_path))
    assert result.holds is False
    assert "pods on nodes; the store has" in result.detail


def test_a_scheduler_that_misses_a_taint_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = feeds.NodeFeed.on_update

    def blind(self: feeds.NodeFeed, old: Any, new: Any) -> None:
        if not new.spec.taints:
            heard(self, old, new)

    monkeypatch.setattr(feeds.NodeFeed, "on_update", blind)
    result = judged(ran(tmp_path))
    assert result.holds is False
    assert "holds another node-2 than the store" in result.detail


def test_a_column_that_is_not_brought_up_to_date_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResourceColumns, "write", lambda self, node: None)
    assert judged(ran(tmp_path)).holds is False
