"""Memory: kubelets notice that it is short, and the kernel kills no more than it has to."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.emulated.kubelet.usage import curves, usages
from kemu.lab.checks.history import parsed
from kemu.lab.fuzz import facts
from kemu.lab.fuzz.facts import Facts
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

NOTICED_S = 40
"""A kubelet measures every 10 s."""
MARGIN = 0.05
HARD_MIB = 100
"""memory.available of evictionHard, by default."""


def memory_pressure_is_noticed(run: Facts) -> Iterator[str]:
    """A node that has less memory than its hard threshold leaves says MemoryPressure.

    Taken for granted: the cluster is quiet; what counts are pods and system daemons whose usage has not changed for
    40 s; no container was killed in that time; a twentieth of the memory more is used than would be enough.
    """
    if not run.is_quiet_for(NOTICED_S):
        return
    for name, node in run.nodes.items():
        written = next((one for one in run.scenario.nodes if one.name == name), None)
        if written is None or not facts.is_ready(node):
            continue
        capacity = facts.whole(node.status.capacity["memory"])
        used = _of_the_node(written.usage, run.end_ns)
        for pod in run.pods:
            if pod.spec.nodeName == name:
                found = _settled(run, pod)
                if found is None:
                    break
                used += found
        else:
            threshold = written.kubelet.get("evictionHard", {}).get("memory.available", f"{HARD_MIB}Mi")
            left = facts.threshold(threshold, capacity)
            is_told = any(one.type == "MemoryPressure" and one.status == "True" for one in node.status.conditions)
            if capacity - used + MARGIN * capacity < left and not is_told:
                yield f"{name} has {capacity - used} bytes left of {capacity}, and does not say MemoryPressure"


def _of_the_node(usage: object, now_ns: int) -> int:
    if not isinstance(usage, dict) or "memory" not in usage:
        return 0
    curve = curves.parse(usage["memory"])
    return curve.at(now_ns // SECOND_NS) if curve.settled_s is not None else 0


def _settled(run: Facts, pod: core_v1_pb2.Pod) -> int | None:
    """What the pod uses at the end and has used for a while; None: not known, as it changes."""
    usage = usages.of(pod)
    if usage is None or "memory" not in usage.shared or facts.is_over(pod):
        return 0
    curve, since_ns = usage.shared["memory"], run.since(NOTICED_S)
    for status in pod.status.containerStatuses:
        if not status.state.HasField("running"):
            return None
    story = run.story(pod)
    if any(fact.time_ns >= since_ns for fact in story.facts) or usage.of_containers:
        return None
    begun = story.first("running")
    if (
        begun is None
        or not pod.status.containerStatuses
        or any(one.restartCount for one in pod.status.containerStatuses)
    ):
        return None
    if curve.settled_s is None or begun.time_ns + curve.settled_s * SECOND_NS > since_ns:
        return None
    return curve.at(1 << 30)


def oom_kills_are_needed(run: Facts) -> Iterator[str]:
    """When memory runs out, the kernel kills containers until there is enough, and no more.

    Taken for granted: nothing but constant usage on that node, by pods of one container, and system daemons.
    """
    groups: dict[tuple[int, str], list[tuple[str, bool]]] = {}
    for when_ns, name, uid, is_own in run.witness.kills:
        groups.setdefault((when_ns, name), []).append((uid, is_own))
    for (when_ns, name), killed in groups.items():
        written = next((one for one in run.scenario.nodes if one.name == name), None)
        node = run.nodes.get(name)
        amounts = _constant_at(run, name, when_ns) if len(killed) > 1 else None
        if written is None or node is None or amounts is None:
            continue
        # For all pods together the kernel allows no less than the node can allocate.
        for_pods, for_all = facts.allocatable(node)["memory"], facts.whole(node.status.capacity["memory"])
        own = _of_the_node(written.usage, when_ns)
        used = sum(amounts.values())
        for place, (uid, is_own) in enumerate(killed):
            if place and not is_own and used <= for_pods and used + own <= for_all:
                before = ", ".join(run.history.pods[other].key for other, _ in killed[:place])
                yield f"on {name} {run.history.pods[uid].key} was killed for memory, though {before} had been enough"
                break
            used -= amounts.pop(uid, 0)


def _constant_at(run: Facts, name: str, when_ns: int) -> dict[str, int] | None:
    """What each pod on the node uses at that time; None where that is not known for sure: after the machine was off,
    its pods run again without a word of it in their objects, and under a fault the objects may be behind."""
    if any(node == name and off_ns <= when_ns for off_ns, node in run.witness.offs):
        return None
    for fault in run.history.faults:
        if fault.begin_ns <= when_ns <= (fault.end_ns or when_ns) + facts.HEALED_S * SECOND_NS:
            return None
    found: dict[str, int] = {}
    seen: dict[str, core_v1_pb2.Pod] = {}
    for change in run.history.changes:
        if change.time_ns > when_ns:
            break
        if change.key.startswith("/registry/pods/") and change.value is not None:
            pod = parsed.pod(change.value)
            seen[pod.metadata.uid] = pod
    for uid, pod in seen.items():
        if pod.spec.nodeName != name:
            continue
        story = run.history.pods.get(uid)
        usage = usages.of(pod)
        if story is None or usage is None or "memory" not in usage.shared:
            continue
        begun, ended = story.first("running"), story.first("ended")
        if begun is None or begun.time_ns > when_ns or (ended is not None and ended.time_ns < when_ns):
            continue
        if not isinstance(usage.shared["memory"], curves.Constant) or len(pod.spec.containers) != 1:
            return None
        found[uid] = usage.shared["memory"].at(0)
    return found
