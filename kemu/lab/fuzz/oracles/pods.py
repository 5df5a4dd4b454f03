"""Pods: what fits is bound, what is bound is taken by its kubelet, what is deleted goes."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.lab.checks.history import parsed
from kemu.lab.fuzz import facts
from kemu.lab.fuzz.facts import Facts
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

WAITS_S = 45
"""A pod that fits is tried again within so long: backoffs end after 10 s, or 20 s where a scenario says so, and what a
scheduler does at a time takes some seconds. Five minutes after a pod was found unschedulable it is tried anyway."""
TAKEN_S = 60
GOES_S = 60


def bound_pods_are_taken(run: Facts) -> Iterator[str]:
    """A kubelet admits or rejects what is bound to its node.

    Taken for granted: the cluster is quiet, the pod has been bound for a minute. A node that no kubelet keeps alive is
    found out within that time, too: it is not Ready then, and its pods are not judged. A kubelet that makes room for a
    critical pod takes no news for as long as its victims may need to go.
    """
    if not run.is_quiet_for(TAKEN_S):
        return
    for pod in run.pods:
        story = run.story(pod)
        node = run.nodes.get(pod.spec.nodeName)
        if node is None or not facts.is_ready(node) or facts.is_over(pod) or facts.is_going(pod):
            continue
        since = story.bound_ns if story.bound_ns is not None else story.created_ns
        busy_ns = run.witness.busy_ns.get(pod.spec.nodeName, 0)
        if pod.status.HasField("startTime") or max(since, run.quiet_ns, busy_ns) > run.since(TAKEN_S):
            continue
        yield f"{story.key} has been bound to {pod.spec.nodeName} for {TAKEN_S} s, and no kubelet has taken it"


def pods_that_fit_are_bound(run: Facts) -> Iterator[str]:
    """A pending pod is bound if a node has room for it, and has had it for a while.

    Taken for granted: the cluster is quiet; nothing but room, cordons and taints decides where the pod can go; nobody
    has anti-affinity; on that node, room for all pods that were there in the last 45 s and those nominated to it.
    """
    if not run.is_quiet_for(WAITS_S) or any(facts.has_required_anti_affinity(pod) for pod in run.pods):
        return
    served = {profile for scheduler in run.scenario.schedulers for profile in [scheduler.name]}
    if any(scheduler.policy.get("avoidEvictedNode") for scheduler in run.scenario.schedulers):
        return
    since_ns = run.since(WAITS_S)
    waiting = [
        pod
        for pod in run.pods
        if facts.goes_anywhere(pod) and not facts.is_going(pod) and not facts.is_over(pod)
        and pod.spec.schedulerName in served and run.story(pod).created_ns < since_ns
    ]  # fmt: skip
    if not waiting:
        return
    for name, node in run.nodes.items():
        if name in run.lost_nodes or not _is_the_same(run, name, since_ns):
            continue
        there = _there(run, name, since_ns)
        for pod in waiting:
            nominated = [other for other in run.pods if _is_nominated(other, name, pod)]
            if facts.admits(node, pod) and facts.fits(node, [*there, *nominated], pod):
                yield f"{facts.name_of(pod)} waits, though {name} has had room for it for {WAITS_S} s"


def _is_nominated(other: core_v1_pb2.Pod, name: str, pod: core_v1_pb2.Pod) -> bool:
    """Whether another pod waits for room on that node."""
    waits = not other.spec.nodeName and not facts.is_over(other) and other.metadata.uid != pod.metadata.uid
    return waits and other.status.nominatedNodeName == name


def _is_the_same(run: Facts, name: str, since_ns: int) -> bool:
    def of(node: core_v1_pb2.Node) -> object:
        amounts = [(key, node.status.allocatable[key].string) for key in sorted(node.status.allocatable)]
        taints = [(one.key, one.effect) for one in node.spec.taints]
        return amounts, taints, node.spec.unschedulable, facts.is_ready(node)

    return not run.changed_since(f"/registry/nodes/{name}", since_ns, of, parsed.node)


def _there(run: Facts, name: str, since_ns: int) -> list[core_v1_pb2.Pod]:
    """All pods that were on the node since then, as they were last."""
    found = {pod.metadata.uid: pod for pod in run.pods if pod.spec.nodeName == name and _was_there(run, pod, since_ns)}
    for change in reversed(run.history.changes):
        if change.time_ns < since_ns:
            break
        if change.key.startswith("/registry/pods/") and change.previous is not None:
            before = parsed.pod(change.previous)
            if before.spec.nodeName == name and not facts.is_over(before):
                found.setdefault(before.metadata.uid, before)
    return list(found.values())


def _was_there(run: Facts, pod: core_v1_pb2.Pod, since_ns: int) -> bool:
    if not facts.is_over(pod):
        return True
    finished = run.story(pod).first("finished")
    return finished is not None and finished.time_ns >= since_ns


def deleted_pods_go(run: Facts) -> Iterator[str]:
    """A pod that is deleted is gone soon after its grace period.

    Taken for granted: the cluster is quiet, its node is Ready, its kubelet is not busy with making room, and it has no
    finalizers.
    """
    for pod in run.pods:
        if not facts.is_going(pod) or pod.metadata.finalizers:
            continue
        story, node = run.story(pod), run.nodes.get(pod.spec.nodeName)
        if pod.spec.nodeName and (node is None or not facts.is_ready(node)):
            continue
        grace_s = pod.metadata.deletionGracePeriodSeconds
        begun_ns = max(story.deleting_ns or 0, run.quiet_ns, run.witness.busy_ns.get(pod.spec.nodeName, 0))
        if run.end_ns - begun_ns > (grace_s + GOES_S) * SECOND_NS:
            yield f"{story.key} was deleted with {grace_s} s of grace, and is there {GOES_S} s after that"
