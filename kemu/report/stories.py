"""The story of a run: who did what to whom, when and why, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kemu.checks.history import Fact, Fault, History, PodHistory
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
    """How much it tells: 4 a fault, 3 a refusal or a preemption, 2 what led to it, 1 the usual life of a pod."""


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
    lines += [line for fault in history.faults for line in _of_fault(fault)]
    order = sorted(range(len(lines)), key=lambda i: lines[i].time_ns)
    lines = [lines[i] for i in order]
    if len(lines) <= limit:
        return lines, 0
    telling = [i for i, line in enumerate(lines) if line.weight > 1]
    ranked = sorted(telling, key=lambda i: (-lines[i].weight, i))[: limit // 2]
    return [lines[i] for i in sorted(ranked)], len(lines) - len(ranked)


def _of_fault(fault: Fault) -> list[Line]:
    if fault.what == "crash":
        machines = [f"the machine of {node}" for node in fault.data.get("nodes", ())]
        whom = ", ".join(machines or fault.data["actors"])
        begin, end = f"{whom} crashes", f"{whom} is started again"
    else:
        a, b = (_some(side) for side in fault.data["between"])
        begin = f"{a} cannot reach {b}" + ("" if fault.data["oneWay"] else ", nor the other way")
        end = f"{a} and {b} can talk again"
    lines = [Line(fault.begin_ns, "chaos", begin, "", "bad", 4)]
    if fault.end_ns is not None:
        lines.append(Line(fault.end_ns, "chaos", end, "", "good", 4))
    return lines


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more" if names else "nobody"


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
        return Line(fact.time_ns, "user", f"{name} is created", _wants(pod), "plain", 1)
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
            why += f" (priority {preemptor.priority} > {pod.priority})"
        phrase = f"{name} is preempted on {fact.node}"
        if fact.reason == "rejected":
            phrase = f"{name} is turned away from {fact.node} while it waits for its permit"
        return Line(fact.time_ns, _preempting(fact), phrase, why, "bad", 3)
    if what == "bound":
        return Line(fact.time_ns, scheduler, f"{name} is bound to {fact.node}", _wants(pod), "good", 1)
    if what == "rejected":
        why = fact.message or fact.reason
        return Line(fact.time_ns, f"kubelet {fact.node}", f"{name} is rejected: {fact.reason}", why, "bad", 3)
    if what == "running":
        return Line(fact.time_ns, f"kubelet {fact.node}", f"{name} runs", "", "good", 1)
    if what == "finished":
        if pod.first("rejected") is not None:
            return None
        tone = "plain" if fact.reason == "Succeeded" else "bad"
        return Line(fact.time_ns, f"kubelet {fact.node}", f"{name} ends: {fact.reason}", fact.message, tone, 1)
    if what == "terminating":
        if any(one.what == "preempted" and one.reason != "rejected" for one in pod.facts):
            return None
        return Line(fact.time_ns, "user", f"{name} is deleted, and shuts down", "", "plain", 1)
    if what == "deleted":
        return Line(
            fact.time_ns, f"kubelet {fact.node}" if fact.node else "API server", f"{name} is gone", "", "plain", 2
        )
    return None


def _preempting(fact: Fact) -> str:
    """Who made room: a scheduler, the node's kubelet, or the rescheduler."""
    kind, _, rest = fact.actor.partition("/")
    return {"kubelet": f"kubelet {fact.node}", "controller": rest}.get(kind, _scheduler(rest))


def _short(key: str) -> str:
    return key.removeprefix("default/")


def _scheduler(name: str) -> str:
    """Neither the usual name nor the first replica is worth a word."""
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
            parts.append(f"{quantities.format_value(amount, quantities.Format.BINARY_SI)} {resource}")
        else:
            parts.append(f"{amount} {resource}")
    wants = f"wants {', '.join(parts)}" if parts else "wants nothing"
    return f"priority {pod.priority}, {wants}" if pod.priority else wants
