"""A check is shown the changes of pods that it asks for, and no others."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kemu.lab.checks import registry
from kemu.lab.checks.history import DEFINITION, PHASE, STATUS, History, parsed
from kemu.lab.checks.results import Check, Result
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import PodBound
from tests.checks.logs import Log

ALL = ["create", "nominate", "bind", "start", "succeed", "label", "go"]


def log_of_a_pod() -> Log:
    log = Log()
    log.pod(0, "a", cpu="1", phase="Pending")
    log.pod(1, "a", nominated="n1")
    log.pod(2, "a", node="n1", nominated="")
    log.pod(3, "a", phase="Running")
    log.pod(4, "a", phase="Succeeded", reason="Done")
    log.pod(5, "a", labels={"x": "y"})
    log.gone(6, "a")
    return log


class Listening(Check):
    id: ClassVar[str] = "listening"
    most: ClassVar[int | None] = STATUS

    def __init__(self) -> None:
        self.heard: list[str] = []

    def pod_changes(self) -> int | None:
        return self.most

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        assert time_ns == (revision - 1) * 1_000_000_000
        assert key == "/registry/pods/default/a"
        assert (pod is None) == (revision == len(ALL))
        self.heard.append(ALL[revision - 1])

    def result(self, history: History) -> Result:
        return Result(self.id, True, " ".join(self.heard))


class Late(Listening):
    """Asks for pods when it sees the first binding."""

    id: ClassVar[str] = "late"
    most = None

    def on_event(self, time_ns: int, actor: str, event: PodBound) -> None:
        self.most = STATUS  # type: ignore[misc]
        self.ask_again()


def heard(monkeypatch: pytest.MonkeyPatch, kind: type[Listening], most: int | None, log: Log) -> list[str]:
    monkeypatch.setattr(kind, "most", most)
    monkeypatch.setattr(registry, "ALL", (kind,))
    _, (result,) = registry.judge(log.events)
    return result.detail.split()


def test_by_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of_a_pod()
    assert heard(monkeypatch, Listening, STATUS, log) == ALL
    assert heard(monkeypatch, Listening, PHASE, log) == ["create", "bind", "start", "succeed", "label", "go"]
    assert heard(monkeypatch, Listening, DEFINITION, log) == ["create", "bind", "label", "go"]
    assert heard(monkeypatch, Listening, None, log) == []


def test_from_when_it_asks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of_a_pod()
    data = {"pod": "default/a", "uid": "uid-a", "node": "n1", "start": 0, "ok": True, "reason": "", "message": ""}
    log.add(2.5, "scheduler/red/0", "sched.bind", **data)
    log.events.sort(key=lambda event: event[0])
    assert heard(monkeypatch, Late, None, log) == ["start", "succeed", "label", "go"]


def test_after_a_loss_all_counts_as_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    log.pod(0, "a", cpu="1", phase="Pending")
    log.pod(1, "a", nominated="n1")
    log.add(1.5, "store", "store.recovered", rev=1, replayed=1, torn_bytes=0, keys=1, digest=0)
    log.revision = 1
    log.pod(1, "a", nominated="n1")
    assert heard(monkeypatch, Listening, DEFINITION, log) == ["create", "nominate"]


def test_where_a_status_begins() -> None:
    pod = core_v1_pb2.Pod()
    assert parsed.status_at(pod.SerializeToString()) == 0
    for labels in range(0, 40, 3):  # lengths of one, two and three bytes
        pod.metadata.labels[f"key-{labels}"] = "v" * 60 * labels
        pod.spec.nodeSelector[f"key-{labels}"] = "v" * 7 * labels
        definition = core_v1_pb2.Pod(metadata=pod.metadata, spec=pod.spec).SerializeToString(deterministic=True)
        assert parsed.status_at(definition) == 0
        pod.status.phase = "Running"
        assert parsed.status_at(pod.SerializeToString(deterministic=True)) == len(definition)
