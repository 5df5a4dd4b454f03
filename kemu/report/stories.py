"""The story of a run: who did what to whom, when and why, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.checks.history import LOST, History
from kemu.checks.history.facts import Fact, Fault, NodeHistory, PodHistory
from kemu.faults.kinds import KINDS
from kemu.objects import quantities


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened."""

    time_ns: int
    who: str
    """The actor."""
    what: str
    """A phrase about the pod: ``red-0 is bound to node-1``."""
    why: str
    tone: str
    """``good bad plain``."""
    weight: int
    """Its weight: 4 a fault, 3 a refusal or a preemption, 2 what led to it, 1 the usual life of a pod."""


def tell(history: History, limit: int) -> tuple[list[Line], int]:
    """All lines in their order if they are no more than ``limit``, else the most telling; and how many are left out.

    Of lines that weigh the same the earliest stay. What every pod goes through is left out of a long story altogether.
    """
    lines = [
        line
        for pod in history.pods.values()
        for fact in _notable(pod)
        if (line := _line(history, pod, fact)) is not None
    ]
    lines += _of_faults(history.faults)
    lines += [Line(time_ns, actor, f"{actor} ends itself", why, "bad", 3) for time_ns, actor, why in history.exits]
    for time_ns, node, is_off in history.shutdowns:
        phrase, tone = ("is off, shut down", "bad") if is_off else ("boots", "good")
        lines.append(Line(time_ns, "user", f"the machine of {node} {phrase}", "", tone, 3))
    lines += [line for one in history.nodes.values() for line in _of_node(one)]
    lines += [_of_denial(time_ns, data) for time_ns, data in history.denials]
    order = sorted(range(len(lines)), key=lambda i: lines[i].time_ns)
    lines = [lines[i] for i in order]
    if len(lines) <= limit:
        return lines, 0
    telling = [i for i, line in enumerate(lines) if line.weight > 1]
    ranked = sorted(telling, key=lambda i: (-lines[i].weight, i))[: limit // 2]
    return [lines[i] for i in sorted(ranked)], len(lines) - len(ranked)


def _of_faults(faults: Sequence[Fault]) -> list[Line]:
    """What crashes in one instant in the same way is told in one line, and so is what comes back in one."""
    lines = []
    begun: dict[tuple[int, str], list[Fault]] = {}
    ended: dict[tuple[int, str], list[Fault]] = {}
    for fault in faults:
        if fault.what == "crash":
            begun.setdefault(_crash(fault), []).append(fault)
            if fault.end_ns is not None:
                ended.setdefault((fault.end_ns, ""), []).append(fault)
        else:
            lines += _of_fault(fault)
    endings = ("is started again", "are started again")
    for groups, verbs, tone in ((begun, ("crashes", "crash"), "bad"), (ended, endings, "good")):
        for (time_ns, how), group in groups.items():
            machines = [node for fault in group for node in fault.data.get("nodes", ())]
            actors = [actor for fault in group if not fault.data.get("nodes") for actor in fault.data["actors"]]
            if machines:
                whom = f"the machine{'s' * (len(machines) > 1)} of {_some(machines)}"
                lines.append(Line(time_ns, "chaos", f"{whom} {verbs[len(machines) > 1]}", how, tone, 4))
            if actors:
                lines.append(Line(time_ns, "chaos", f"{_some(actors)} {verbs[len(actors) > 1]}", how, tone, 4))
    return lines


def _crash(fault: Fault) -> tuple[int, str]:
    """When, and how. One that waits for a step of the actor comes later than the fault begins, or never."""
    if "step" in fault.data:
        if not fault.hits:
            return fault.begin_ns, f"at its next step {fault.data['step']}, which did not come"
        return min(fault.hits.values()), f"at its step {fault.data['step']}"
    return fault.begin_ns, "its power is cut" if fault.data.get("powerOff") else ""


def _of_fault(fault: Fault) -> list[Line]:
    """When it begins, with whom it hit, and when it ends."""
    kind = KINDS.get(fault.what)
    if kind is None:
        return []  # of a newer kemu
    values = {name: _plain(value) for name, value in fault.data.items()}
    begins = kind.begins.format_map(values)
    if fault.what == "partition" and not fault.data["oneWay"]:
        begins += ", nor the other way"
    hit = [f"{actor} → {peer}" if peer else actor for actor, peer in fault.hits]
    # An actor that is to crash in its next write goes on until that comes.
    begin_ns = min(fault.hits.values(), default=fault.begin_ns) if fault.what == "tornWrite" else fault.begin_ns
    lines = [Line(begin_ns, "chaos", begins, f"hit {_some(hit)}", "bad", 4)]
    if fault.end_ns is not None and kind.ends:
        lines.append(Line(fault.end_ns, "chaos", kind.ends.format_map(values), "", "good", 4))
    return lines


def _plain(value: Any) -> Any:
    """A parameter of a fault in words: names in a row, two sides one by one."""
    if isinstance(value, list):
        return [_plain(side) for side in value] if value and isinstance(value[0], list) else _some(value)
    return f"{value:g}" if isinstance(value, float) else value


def _of_denial(time_ns: int, data: Mapping[str, Any]) -> Line:
    """A request of the user that was refused."""
    what = f"{data['what']} {data.get('name', '')}".rstrip() if "what" in data else f"a pod of {data['workload']}"
    return Line(time_ns, "API server", f"{what} is refused: {data['reason']}", data.get("message", ""), "bad", 3)


NAMED = 3
"""Up to this many actors with the same fate are named one by one."""

_PRESSURES = {"MemoryPressure": "memory", "DiskPressure": "disk", "PIDPressure": "process ids"}
_BUILT_IN_TAINTS = "node.kubernetes.io/"


def _of_node(node: NodeHistory) -> list[Line]:
    """What happened to it after its first state."""
    lines = []
    added_ns = -1
    before: dict[str, str] = {}
    for fact in node.facts:
        if fact.what == "added":
            if added_ns >= 0 or fact.time_ns:
                lines.append(Line(fact.time_ns, f"kubelet {node.name}", f"{node.name} joins", "", "good", 2))
            added_ns = fact.time_ns
        elif fact.what == "removed":
            lines.append(Line(fact.time_ns, "user", f"{node.name} is removed", "", "bad", 3))
        elif fact.time_ns != added_ns:
            if fact.what == "condition":
                line = _of_condition(node.name, fact, before.get(fact.reason, ""))
            else:
                line = _of_taint(node.name, fact)
            lines += [line] if line is not None else []
        if fact.what == "condition":
            before[fact.reason] = fact.status
    return lines


def _of_condition(node: str, fact: Fact, before: str) -> Line | None:
    """``before``: its status until then."""
    short, status = _PRESSURES.get(fact.reason), fact.status
    if short is not None:
        if status == "Unknown" or "True" not in (status, before):
            return None
        phrase = f"{node} runs short of {short}" if status == "True" else f"{node} has enough {short}"
        return Line(fact.time_ns, f"kubelet {node}", phrase, fact.reason, "bad" if status == "True" else "good", 3)
    if fact.reason != "Ready":
        return None
    if status == "Unknown":
        return Line(fact.time_ns, "node-lifecycle", f"nothing is heard of {node} any more", "", "bad", 3)
    phrase, tone = (f"{node} is ready", "good") if status == "True" else (f"{node} is not ready", "bad")
    return Line(fact.time_ns, f"kubelet {node}", phrase, "", tone, 3)


def _of_taint(node: str, fact: Fact) -> Line | None:
    who = "node-lifecycle" if fact.reason.startswith(_BUILT_IN_TAINTS) else "user"
    taint = f"{fact.reason.removeprefix(_BUILT_IN_TAINTS)}:{fact.status}"
    phrase, tone = (f"{node} is tainted", "bad") if fact.what == "tainted" else (f"{node} loses its taint", "good")
    return Line(fact.time_ns, who, f"{phrase} {taint}", "", tone, 2)


def _some(names: Sequence[str]) -> str:
    if len(names) > NAMED:
        return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more"
    return ", ".join(names) or "nobody"


def _notable(pod: PodHistory) -> Sequence[Fact]:
    """Leaves out repeated failures with the same message, and the set-up of pods that ran from the start."""
    kept = []
    last = ""
    for fact in pod.facts:
        if fact.what == "unschedulable":
            if fact.message == last:
                continue
            last = fact.message
        if fact.time_ns == 0 and pod.preset_node and fact.what in ("created", "running", "bound"):
            continue
        kept.append(fact)
    return kept


def _line(history: History, pod: PodHistory, fact: Fact) -> Line | None:
    name = _short(pod.key)
    scheduler = _scheduler(fact.by or pod.scheduler_name)
    what = fact.what
    if what == "created":
        return Line(fact.time_ns, _actor(pod.created_by), f"{name} is created", _wants(pod), "plain", 1)
    if what == "unschedulable":
        return Line(fact.time_ns, scheduler, f"{name} fits nowhere", _reason(fact.message), "plain", 2)
    if what == "nominated":
        return Line(fact.time_ns, scheduler, f"{name} is nominated to {fact.node}", "", "plain", 2)
    if what == "nominationCleared":
        return Line(fact.time_ns, scheduler, f"{name} loses its nomination to {fact.node}", "", "plain", 2)
    if what == "preempted":
        by = _short(fact.by)
        preemptor = history.pod(fact.by)
        why = f"makes room for {by}"
        if preemptor is not None:
            sign = ">" if preemptor.priority > pod.priority else "against"
            why += f" (priority {preemptor.priority} {sign} {pod.priority})"
        phrase = f"{name} is preempted on {fact.node}"
        if fact.reason == "rejected":
            phrase = f"{name} is turned away from {fact.node} while it waits for its permit"
        return Line(fact.time_ns, _preempting(fact), phrase, why, "bad", 3)
    if what == "bound":
        return Line(fact.time_ns, scheduler, f"{name} is bound to {fact.node}", _wants(pod), "good", 1)
    if what == "unbound":
        return Line(fact.time_ns, "store", f"{name} is not bound to {fact.node} any more", "lost in a crash", "bad", 2)
    if what == "rejected":
        why = fact.message or fact.reason
        return Line(fact.time_ns, f"kubelet {fact.node}", f"{name} is rejected: {fact.reason}", why, "bad", 3)
    if what == "running":
        return Line(fact.time_ns, f"kubelet {fact.node}", f"{name} runs", "", "good", 1)
    if what == "evicted":
        return Line(fact.time_ns, _evicting(fact), f"{name} is evicted from {fact.node}", _low(fact.message), "bad", 3)
    if what == "oomKilled":
        whom = f"{fact.reason} of {name}" if fact.reason else name
        why = fact.message or "memory ran out"
        return Line(fact.time_ns, f"kernel of {fact.node}", f"{whom} is killed", why, "bad", 3)
    if what == "finished":
        evicted = pod.first("evicted")
        if pod.first("rejected") is not None or (evicted is not None and evicted.time_ns == fact.time_ns):
            return None
        tone = "plain" if fact.reason == "Succeeded" else "bad"
        return Line(fact.time_ns, f"kubelet {fact.node}", f"{name} ends: {fact.reason}", fact.message, tone, 1)
    if what == "terminating":
        if any(one.what == "preempted" and one.reason != "rejected" for one in pod.facts):
            return None
        if pod.first("evicted") is not None:
            return None
        who = _actor(pod.deleted_by[0] if pod.deleted_by else "")
        return Line(fact.time_ns, who, f"{name} is deleted, and shuts down", "", "plain", 1)
    if what == "deleted" and fact.reason == LOST:
        return Line(fact.time_ns, "store", f"{name} is lost", "the store came back without it", "bad", 2)
    if what == "deleted":
        who = _actor(pod.deleted_by[-1]) if pod.deleted_by else f"kubelet {fact.node}" if fact.node else "API server"
        return Line(fact.time_ns, who, f"{name} is gone", "", "plain", 2)
    return None


def _actor(name: str) -> str:
    """``kubelet/node-1`` is kubelet node-1, ``controller/replicaset`` replicaset; if nobody is named, the user."""
    kind, _, rest = name.partition("/")
    return {"kubelet": f"kubelet {rest}", "controller": rest, "scheduler": _scheduler(rest)}.get(kind, kind or "user")


def _preempting(fact: Fact) -> str:
    """Which component made room: a scheduler, the node's kubelet, or the rescheduler."""
    return _actor(fact.actor)


_EVICTORS = {
    "EvictionByEvictionAPI": "API server",
    "DeletionByTaintManager": "taint-eviction",
    "DeletionByPodGC": "pod-gc",
}


def _evicting(fact: Fact) -> str:
    """Which component evicts, by the reason."""
    return _EVICTORS.get(fact.reason, f"kubelet {fact.node}")


def _low(message: str) -> str:
    """A kubelet's message without its first words, which are always the same."""
    return message.strip().replace("The node was low on resource: ", "low on ").removesuffix(".")


def _short(key: str) -> str:
    return key.removeprefix("default/")


def _scheduler(name: str) -> str:
    """The default name and the first replica are not mentioned."""
    return f"scheduler {name.removesuffix('/0')}".removesuffix(" default-scheduler")


def _reason(message: str) -> str:
    """A scheduler's message without what says nothing here: claims of devices, and the count of the only node."""
    shorter = message.replace("no new claims to deallocate, ", "")
    return shorter.replace("0/1 nodes are available: 1 ", "")


def _wants(pod: PodHistory) -> str:
    """``priority 1000, wants 10 cpu``"""
    parts = []
    for resource in sorted(pod.requests):
        amount = pod.requests[resource]
        if not amount:
            continue
        if resource == "cpu":
            parts.append(f"{quantities.format_milli(amount)} cpu")
        elif resource in ("memory", "ephemeral-storage"):
            parts.append(f"{quantities.shortest(amount)} {resource}")
        else:
            parts.append(f"{amount} {resource}")
    wants = f"wants {', '.join(parts)}" if parts else "wants nothing"
    return f"priority {pod.priority}, {wants}" if pod.priority else wants
