"""The check that the caches of schedulers agree with the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.wire import fingerprints
from kemu.lab.checks.attention import Attention
from kemu.lab.checks.history import NODE_PREFIX, POD_PREFIX, History, parsed
from kemu.lab.checks.history.stores import Change
from kemu.lab.checks.results import Check, Fold, Result, seconds
from kemu.runtime.runlog.events import CacheAudited, WatchListed
from kemu.runtime.words import counted


@dataclass(slots=True)
class _Report:
    """One ``sched.cache`` event."""

    time_ns: int
    actor: str
    data: CacheAudited

    def __str__(self) -> str:
        return f"{self.actor} at {seconds(self.time_ns)}"


class _Nodes:
    """The nodes of the store at one revision."""

    def __init__(self) -> None:
        self.prints: dict[str, int] = {}

    def change(self, key: str, value: bytes | None) -> None:
        if value is None:
            self.prints.pop(key.removeprefix(NODE_PREFIX), None)
            return
        node = parsed.node(value)
        taints = [(taint.key, taint.value, taint.effect) for taint in node.spec.taints]
        allocatable = requests.resource_list(node.status.allocatable)
        name = node.metadata.name
        self.prints[name] = fingerprints.of_node(
            name, node.metadata.labels, taints, node.spec.unschedulable, allocatable
        )

    def findings(self, report: _Report) -> list[str]:
        data = report.data
        names = sorted(self.prints)
        if data.nodes != len(names):
            return [f"{report} counts {data.nodes} nodes; the store has {len(names)} at {data.nodes_rev}"]
        wanted = fingerprints.packed([self.prints[name] for name in names])
        return [f"{report} {where}" for where in _differences(data.node_prints, wanted, names, "holds another")]


@dataclass(slots=True)
class _Pod:
    uid: str
    node: str
    scheduler: str
    terminating: bool
    requests: Mapping[str, int]
    non_zero: tuple[int, int]


class _Pods:
    """The pods of the store that have not ended, at one revision."""

    def __init__(self) -> None:
        self.pods: dict[str, _Pod] = {}
        self.on: dict[str, dict[str, _Pod]] = {}
        """By node, then by key."""

    def change(self, key: str, value: bytes | None) -> None:
        known = self.pods.pop(key, None)
        if known is not None and known.node:
            there = self.on[known.node]
            del there[key]
            if not there:
                del self.on[known.node]
        if value is None:
            return
        pod = parsed.pod(value)
        if pod_phases.is_terminal(pod):
            return
        node = pod.spec.nodeName
        found = self.pods[key] = _Pod(
            pod.metadata.uid,
            node,
            pod.spec.schedulerName,
            pod.metadata.HasField("deletionTimestamp"),
            requests.pod_requests_on_node(pod) if node else {},
            requests.non_zero_requests_on_node(pod) if node else (0, 0),
        )
        if node:
            self.on.setdefault(node, {})[key] = found

    def findings(self, report: _Report) -> list[str]:
        data = report.data
        revision = data.pods_rev
        found = []
        assigned = sum(len(there) for there in self.on.values())
        if data.pods != assigned:
            found.append(f"{report} counts {data.pods} pods on nodes; the store has {assigned} at {revision}")
        else:
            names = sorted(self.on)
            wanted = fingerprints.packed([self._load(name) for name in names])
            differences = _differences(data.load_prints, wanted, names, "counts other pods or amounts on")
            found += [f"{report} {where}" for where in differences]
        waiting = [
            pod.uid
            for pod in self.pods.values()
            if not pod.node and not pod.terminating and pod.scheduler in data.serves
        ]
        if data.waiting != len(waiting):
            found.append(f"{report} has {data.waiting} pods waiting; the store has {len(waiting)} at {revision}")
        elif data.waiting_print != fingerprints.of_names(waiting):
            found.append(f"{report} has other pods waiting than the store at {revision}")
        return found

    def _load(self, node: str) -> int:
        there = self.on[node].values()
        total: dict[str, int] = {}
        cpu = memory = 0
        for pod in there:
            for resource, amount in pod.requests.items():
                total[resource] = total.get(resource, 0) + amount
            cpu += pod.non_zero[0]
            memory += pod.non_zero[1]
        return fingerprints.of_load(node, [pod.uid for pod in there], total, (cpu, memory))


def _differences(got: bytes, wanted: bytes, names: list[str], what: str) -> list[str]:
    """Which node's fingerprints differ."""
    if len(got) != len(wanted):
        return [f"has {len(got) // fingerprints.BYTES} nodes with pods; the store has {len(names)}"]
    size = fingerprints.BYTES
    return [
        f"{what} {name} than the store"
        for number, name in enumerate(names)
        if got[number * size : (number + 1) * size] != wanted[number * size : (number + 1) * size]
    ]


class CacheAgreesWithStore(Check):
    """What a scheduler counts is what the store held at the revisions that the scheduler had seen.

    Nodes: labels, taints, whether they take pods, allocatable. Pods: which are on which node, the sums of their
    requests, and who waits. A pod that is merely assumed on a node must be in its binding, or bound there later.
    """

    id: ClassVar[str] = "cache-agrees-with-store"
    folds: ClassVar[tuple[type[Fold], ...]] = (Attention,)

    def given(self, *folds: Attention) -> None:
        self._history = folds[0].history

    def __init__(self) -> None:
        self._reports: list[_Report] = []
        self._stale: dict[str, set[str]] = {}
        """Schedulers that hold what the store has forgotten, with the kinds that they have not listed anew."""
        self._actors: dict[str, None] = {}
        self._compared = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: WatchListed | CacheAudited) -> None:
        if isinstance(event, WatchListed):
            if actor.startswith("scheduler/"):
                self._actors[actor] = None
                self._stale.get(actor, set()).discard(event.resource)
        elif not self._stale.get(actor):
            self._reports.append(_Report(time_ns, actor, event))

    def rolled_back(self, time_ns: int, history: History) -> None:
        """The store lost its latest writes. A scheduler that saw them must list anew before it is compared again."""
        self._settle([*history.changes, *history.rollbacks[-1].changes])
        self._stale = {actor: {"nodes", "pods"} for actor in self._actors}

    def _settle(self, changes: Sequence[Change]) -> None:
        """Compare the reports so far with the history up to now."""
        revision = changes[-1].revision if changes else 0
        known = [report for report in self._reports if max(report.data.nodes_rev, report.data.pods_rev) <= revision]
        of_nodes = [change for change in changes if change.key.startswith(NODE_PREFIX)]
        of_pods = [change for change in changes if change.key.startswith(POD_PREFIX)]
        self._reports = []
        self._compared += len(known)
        nodes, pods = _Nodes(), _Pods()
        self._walk(of_nodes, lambda data: data.nodes_rev, known, nodes.change, nodes.findings)
        self._walk(of_pods, lambda data: data.pods_rev, known, pods.change, pods.findings)
        for report in known:
            self._findings += self._lost(report, of_pods)

    def _walk(
        self,
        changes: Sequence[Change],
        seen: Callable[[CacheAudited], int],
        reports: list[_Report],
        change: Callable[[str, bytes | None], None],
        findings: Callable[[_Report], list[str]],
    ) -> None:
        """From report to report, by the revision that they had seen; in between only the last value of a key counts."""
        at = 0
        for report in sorted(reports, key=lambda report: seen(report.data)):
            latest: dict[str, bytes | None] = {}
            while at < len(changes) and changes[at].revision <= seen(report.data):
                latest[changes[at].key] = changes[at].value
                at += 1
            for key, value in latest.items():
                change(key, value)
            self._findings += findings(report)

    def _lost(self, report: _Report, changes: Sequence[Change]) -> list[str]:
        """Pods that the scheduler counts as bound, although they are not, and no binding is in progress."""
        expected = {
            POD_PREFIX + key: (uid, node) for key, uid, node, is_binding in report.data.assumed if not is_binding
        }
        if not expected:
            return []
        for change in changes:
            if change.revision <= report.data.pods_rev or change.key not in expected:
                continue
            if (value := change.value) is not None:
                pod = parsed.pod(value)
                if (pod.metadata.uid, pod.spec.nodeName) == expected[change.key]:
                    del expected[change.key]
        return [
            f"{report} assumes {key.removeprefix(POD_PREFIX)} on {node}, where nobody bound it"
            for key, (_uid, node) in expected.items()
        ]

    def result(self, history: History) -> Result:
        self._settle(history.changes)
        good = f"{counted(self._compared, 'report')} compared"
        return self.concluded(self._findings, self._compared, "no scheduler reported what it counts", good)
