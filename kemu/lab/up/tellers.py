"""What happens in a cluster, in lines: one for each thing, or one for many that are alike.

Events are told in batches, a few times a second. Of what happened more than a few times in a batch, a line tells how
often. Neighbours: :mod:`kemu.lab.tell.stories` tells a run that is over, with everything that is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import resources
from kemu.runtime.faults.hits import STRUCK
from kemu.runtime.faults.kinds import CLIENT_FAULTS, KINDS

GOOD, BAD, PLAIN = "good", "bad", "plain"

MOST_ALIKE = 4
"""In one batch; more of them share a line."""

_TOLD_KINDS = frozenset(
    (
        "configmaps", "cronjobs", "daemonsets", "deployments", "ingresses", "jobs", "namespaces", "networkpolicies",
        "nodes", "persistentvolumeclaims", "poddisruptionbudgets", "priorityclasses", "secrets", "services",
        "statefulsets", "storageclasses", "pods",
    )
)  # fmt: skip
"""Of whose objects it is told that they come and go."""
_PUT, _DELETE = 0, 1
_DEFAULT = "default/"


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened, or several things that are alike."""

    time_ns: int
    kind: str
    """What is alike has one kind."""
    what: str
    """``web-0 is bound to node-1``"""
    why: str = ""
    tone: str = PLAIN
    count: int = 1

    def data(self) -> dict[str, Any]:
        return {
            "at_s": round(self.time_ns / 1e9, 3),
            "kind": self.kind,
            "what": self.what,
            "why": self.why,
            "count": self.count,
        }


@dataclass(slots=True)
class _Batch:
    lines: list[Line] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


class Teller:
    """A listener of the run log."""

    def __init__(self) -> None:
        self._batch = _Batch()
        self.quiet = True
        """Set-up is told by nobody."""
        self._tell: dict[str, Callable[[int, str, Mapping[str, Any]], None]] = {
            "store.txn": self._on_txn,
            "sched.attempt": self._on_attempt,
            "sched.bind": self._on_bind,
            "sched.nominated": self._pod("nominated", "is nominated to {node}", "are nominated"),
            "sched.victim": self._pod("preempted", "is preempted", "are preempted", BAD),
            "kubelet.admit": self._on_admit,
            "kubelet.running": self._pod("running", "runs on {node}", "run", GOOD),
            "kubelet.finished": self._pod("finished", "has ended: {phase}", "have ended"),
            "kubelet.restarting": self._pod("restarting", "starts again", "start again", BAD),
            "kubelet.oom_killed": self._pod("oom", "is out of memory", "are out of memory", BAD),
            "kubelet.evicting": self._pod("evicted", "is evicted from {node}", "are evicted", BAD),
            "taint.eviction": self._pod("evicted", "is evicted from {node}", "are evicted", BAD),
            "affinity.eviction": self._pod("evicted", "is evicted from {node}", "are evicted", BAD),
            "kubelet.terminated": self._pod("terminated", "has left {node}", "have left their nodes"),
            "kubelet.pressure": self._on_pressure,
            "node.unknown": self._node("lost", "is silent", "nodes are silent", BAD),
            "machine.off": self._node("machine", "goes off", "machines go off", BAD),
            "machine.on": self._node("machine", "boots", "machines boot", GOOD),
            "chaos.begin": self._on_chaos,
            "chaos.end": lambda time_ns, actor, data: self._add(
                time_ns, "chaos", f"the fault {data['id']} is over", "faults are over", GOOD
            ),
            STRUCK: self._on_struck,
            "actor.crashed": lambda time_ns, actor, data: self._add(
                time_ns, "crashed", f"{actor} crashes", "actors crash", BAD
            ),
            "actor.started": self._on_started,
            "actor.exited": lambda time_ns, actor, data: self._add(
                time_ns, "exited", f"{actor} ends itself", "actors end themselves", BAD, data["why"]
            ),
            "process.stalled": self._on_stalled,
            "controller.scaled": self._on_scaled,
            "controller.rollout": self._on_rollout,
        }

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        tell = self._tell.get(kind)
        if tell is not None and not self.quiet and time_ns > 0:
            tell(time_ns, actor, data)

    def take(self) -> list[Line]:
        """What has happened since it was last asked."""
        batch, self._batch = self._batch, _Batch()
        told = []
        for line in batch.lines:
            count = batch.counts[line.kind]
            if count <= MOST_ALIKE:
                told.append(line)
            elif line.count > 1:
                told.append(Line(line.time_ns, line.kind, f"{count} {line.what}", "", line.tone, count))
        return told

    def _add(self, time_ns: int, kind: str, what: str, many: str, tone: str = PLAIN, why: str = "") -> None:
        """``many``: what to say of several, without their number."""
        counts = self._batch.counts
        counts[kind] = count = counts.get(kind, 0) + 1
        if count <= MOST_ALIKE:
            self._batch.lines.append(Line(time_ns, kind, what, why, tone))
        elif count == MOST_ALIKE + 1:
            self._batch.lines.append(Line(time_ns, kind, many, "", tone, count))

    def _pod(self, kind: str, says: str, many: str, tone: str = PLAIN) -> Callable[[int, str, Mapping[str, Any]], None]:
        def tell(time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
            what = f"{short(data['pod'])} {says.format_map(_Blank(data))}"
            self._add(time_ns, kind, what, f"pods {many}", tone, str(data.get("message") or data.get("why") or ""))

        return tell

    def _node(
        self, kind: str, says: str, many: str, tone: str = PLAIN
    ) -> Callable[[int, str, Mapping[str, Any]], None]:
        return lambda time_ns, actor, data: self._add(time_ns, kind, f"{data['node']} {says}", many, tone)

    def _on_txn(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        for operation, key, _, _, version in data["changes"]:
            if operation == _PUT and version != 1:
                continue
            _, _, rest = key.partition("/registry/")
            plural, _, name = rest.partition("/")
            if plural not in _TOLD_KINDS:
                continue
            says = "is created" if operation == _PUT else "is gone"
            one = resources.BY_PLURAL[plural].kind.lower()
            self._add(
                time_ns,
                f"{plural} {says}",
                f"{one} {short(name)} {says}" if plural != "pods" else f"{short(name)} {says}",
                f"{plural} {says.replace('is', 'are', 1)}",
            )

    def _on_attempt(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        if data["result"] == "unschedulable" and data["n"] == 1:
            self._add(
                time_ns, "unschedulable", f"{short(data['pod'])} fits on no node", "pods fit on no node", BAD,
                data["message"],
            )  # fmt: skip

    def _on_bind(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = short(data["pod"])
        if not data["ok"]:
            self._add(
                time_ns, "not bound", f"{pod} is not bound to {data['node']}", "pods are not bound", BAD,
                data["message"] or data["reason"],
            )  # fmt: skip

    def _on_admit(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        if data["ok"]:
            # Here and not where a scheduler says so: schedulers of other programs say nothing.
            self._add(time_ns, "bound", f"{short(data['pod'])} comes to {data['node']}", "pods come to their nodes")
        else:
            what = f"{data['node']} does not take {short(data['pod'])}"
            self._add(time_ns, "refused", what, "pods are not taken by their nodes", BAD, data["message"])

    def _on_pressure(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        conditions = ", ".join(data["conditions"])
        says = f"has {conditions}" if conditions else "has no pressure any more"
        self._add(time_ns, "pressure", f"{data['node']} {says}", "nodes change their pressure", BAD)

    def _on_chaos(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        if data["what"] in CLIENT_FAULTS:
            self._add(time_ns, "chaos", KINDS[data["what"]].begins, "faults of clients begin", BAD, data["id"])
            return
        concerned = next((data[key] for key in ("actors", "actor", "nodes", "between", "process") if key in data), ())
        names = [name for one in concerned for name in ([one] if isinstance(one, str) else one)]
        whom = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        self._add(time_ns, "chaos", f"{data['what']} strikes {whom or 'nobody'}", "faults strike", BAD, data["id"])

    def _on_struck(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        name = f"{data['namespace']}/{data['name']}" if data.get("namespace") and data.get("name") else data.get("name")
        asked = " ".join(filter(None, (data.get("verb"), data.get("resource"), short(name or ""))))
        what = f"{data['what']} strikes {data.get('agent') or 'a client'}: {asked}"
        self._add(time_ns, "struck", what, "requests are struck", BAD, data["id"])

    def _on_started(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        if data["incarnation"] > 1:
            self._add(time_ns, "started", f"{actor} is back", "actors are back", GOOD)

    def _on_stalled(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        what = f"{actor} {'stood still' if data['what'] == 'stopped' else 'lagged'} for {data['real_ns'] / 1e9:.1f} s"
        self._add(time_ns, "stalled", what, "times a process stalled", BAD)

    def _on_scaled(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        what = f"{data['replica_set']} of deployment {short(data['deployment'])} goes from {data['before']}"
        self._add(time_ns, "scaled", f"{what} to {data['replicas']}", "replica sets get another size")

    def _on_rollout(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        says, tone = ("is rolled out", GOOD) if data["outcome"] == "complete" else ("is stuck", BAD)
        what = f"revision {data['revision']} of deployment {short(data['deployment'])} {says}"
        self._add(time_ns, f"rollout {tone}", what, "rollouts end", tone)


def short(name: str) -> str:
    """Without the namespace ``default``."""
    return name.removeprefix(_DEFAULT)


class _Blank(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""
