"""Run logs made by hand, as the actors would have written them: the stories that traces have to tell."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kemu.lab.telemetry import runs
from kemu.lab.telemetry.builder import SpanBuilder
from kemu.lab.telemetry.runs import Run
from kemu.lab.telemetry.spans import Span
from kemu.runtime.runlog.frames import FILE_NAME, Entry, Writer

EPOCH_UNIX_S = 946_684_800
HEADER = {"kemu": "0", "scenario": "by-hand", "seed": 1, "runtime": "sim", "epoch_unix_s": EPOCH_UNIX_S}
RUN = runs.of_header(HEADER)
MILLISECOND = 1_000_000

SCHEDULER = "scheduler/default-scheduler/0"
OTHER = "scheduler/other/0"
KUBELET = "kubelet/node-1"


def uid_of(name: str) -> str:
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class Log:
    """Builds events. Times are in milliseconds; ``took`` is how long the thing lasted that ends then."""

    def __init__(self) -> None:
        self.events: list[Entry] = []
        self.revision = 0

    def add(self, ms: float, actor: str, kind: str, **data: Any) -> None:
        self.events.append(Entry(round(ms * MILLISECOND), actor, kind, data))

    def pod(self, ms: float, actor: str, kind: str, name: str, took: float = 0, **data: Any) -> None:
        start = round((ms - took) * MILLISECOND)
        self.add(ms, actor, kind, pod=f"default/{name}", uid=uid_of(name), start=start, **data)

    def request(self, ms: float, verb: str, name: str, by: str, took: float = 2) -> None:
        self.revision += 1
        self.add(
            ms, "apiserver/0", "api.request", verb=verb, resource="pods", namespace="default", name=name,
            uid=uid_of(name), by=by, start=round((ms - took) * MILLISECOND), rev=self.revision,
        )  # fmt: skip

    def refused(self, ms: float, verb: str, name: str, by: str, reason: str, uid: str = "") -> None:
        self.add(
            ms, "apiserver/0", "api.refused", verb=verb, resource="pods", namespace="default", name=name,
            uid=uid, by=by, start=round((ms - 1) * MILLISECOND), reason=reason, message=f"refused {name}",
        )  # fmt: skip

    def gone(self, ms: float, name: str) -> None:
        self.revision += 1
        changes = [[1, f"/registry/pods/default/{name}", None, 0, 0]]
        self.add(ms, "store", "store.txn", rev=self.revision, changes=changes)

    def queued(self, ms: float, name: str, queue: str, took: float, by: str = SCHEDULER) -> None:
        self.pod(ms, by, "sched.queued", name, took, queue=queue, event="PodAdd")

    def attempt(self, ms: float, name: str, n: int, result: str, by: str = SCHEDULER, **data: Any) -> None:
        defaults = {
            "node": "node-1" if result == "scheduled" else "",
            "evaluated": 1,
            "feasible": 1 if result == "scheduled" else 0,
            "plugins": {} if result == "scheduled" else {"NodeResourcesFit": 1},
            "message": "" if result == "scheduled" else "0/1 nodes are available: 1 Insufficient cpu.",
        }
        self.pod(ms, by, "sched.attempt", name, 1, n=n, result=result, **{**defaults, **data})

    def bind(self, ms: float, name: str, by: str = SCHEDULER, reason: str = "") -> None:
        self.pod(ms, by, "sched.bind", name, 3, node="node-1", ok=not reason, reason=reason)

    def admit(self, ms: float, name: str, reason: str = "", actor: str = KUBELET) -> None:
        message = f"no room for {name}" if reason else ""
        self.pod(
            ms, actor, "kubelet.admit", name, 1, node=actor.partition("/")[2], ok=not reason, reason=reason,
            message=message,
        )  # fmt: skip

    def running(self, ms: float, name: str, took: float = 4) -> None:
        self.pod(ms, KUBELET, "kubelet.running", name, took, node="node-1")

    def scheduled(self, ms: float, name: str, by: str = SCHEDULER) -> None:
        """From its creation to its containers' start, in 20 ms."""
        self.request(ms + 2, "create", name, "user")
        self.queued(ms + 4, name, "active", 1, by)
        self.attempt(ms + 5, name, 1, "scheduled", by)
        self.request(ms + 7, "bind", name, by, took=1)
        self.bind(ms + 9, name, by)
        self.admit(ms + 10, name)
        self.running(ms + 20, name, took=10)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        writer = Writer(folder / FILE_NAME, HEADER)
        for event in self.events:
            writer.append(*event)
        writer.close()
        return folder


def spans_of(events: Iterable[Entry], epoch_unix_s: int = 0, *, run: Run = RUN, api_calls: bool = False) -> list[Span]:
    builder = SpanBuilder(run, epoch_unix_s * 10**9, api_calls=api_calls)
    found = [span for event in events for span in builder.feed(*event)]
    return found + builder.flush()


def of_pod(found: Iterable[Span], name: str) -> dict[str, Span]:
    """By span name; of several with one name, the last."""
    return {span.name: span for span in found if span.pod == f"default/{name}"}


def preemption() -> Log:
    """c needs the room of a and b: both are preempted, go after some seconds, and c runs. c lives on."""
    log = Log()
    for name in ("a", "b"):
        log.scheduled(0, name)
    log.request(5002, "create", "c", "user")
    log.queued(5004, "c", "active", 1)
    log.attempt(5005, "c", 1, "unschedulable")
    victims = [["default/a", uid_of("a"), 100], ["default/b", uid_of("b"), 100]]
    log.pod(5006, SCHEDULER, "sched.preemption", "c", 1, node="node-1", candidates=1, victims=victims)
    log.pod(5010, SCHEDULER, "sched.nominated", "c", 4, node="node-1")
    for name in ("a", "b"):
        log.request(5011, "delete", name, SCHEDULER)
        log.pod(
            5012, SCHEDULER, "sched.victim", name, 6, by="default/c", by_uid=uid_of("c"), node="node-1", ok=True
        )  # fmt: skip
        log.add(
            5013, KUBELET, "kubelet.terminating", pod=f"default/{name}", uid=uid_of(name), node="node-1", grace_s=30
        )
    for name, end in (("b", 35_000), ("a", 65_000)):
        log.pod(end, KUBELET, "kubelet.terminated", name, end - 5013, node="node-1", forced=name == "a")
        log.gone(end + 1, name)
        log.request(end + 2, "delete", name, KUBELET)
    log.queued(65_010, "c", "unschedulable", 60_000)
    log.attempt(65_011, "c", 2, "scheduled")
    log.request(65_012, "bind", "c", SCHEDULER, took=1)
    log.bind(65_014, "c")
    log.admit(65_016, "c")
    log.pod(65_500, KUBELET, "kubelet.pulled", "c", 484, node="node-1")
    log.running(66_000, "c", took=984)
    log.add(70_000, "user", "user.event", index=1, what="nothing")
    return log
