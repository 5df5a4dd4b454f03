"""The table of the museum's pieces; docs/museum has a page on each.

A scenario of the museum has a matrix of one path with two values, the bug first and the cure second. Its expectations
hold in both: they say what goes wrong and what does not. What ought to hold in every cluster is :attr:`Piece.claim`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.lab.conformance import case_files
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.loading import loader


@dataclass(frozen=True, slots=True)
class Piece:
    """One bug."""

    number: int
    """Of the issue."""
    scenario: str
    """Its short name."""
    says: str
    """What goes wrong, in a sentence without a full stop."""
    claim: str
    """An expectation, as YAML, that fails with the bug and holds with the cure."""
    cure: str
    """What cures it, in a few words."""
    repository: str = "kubernetes/kubernetes"

    @property
    def link(self) -> str:
        return f"https://github.com/{self.repository}/issues/{self.number}"


_PIECES = (
    Piece(
        65257,
        "museum/65257-anti-affinity-broken-by-two-leaders",
        "two pods that must not share a node share one",
        "{pods: {workload: db}, count: {is: {running: {node: node-1}}, equals: 1}}",
        "one scheduler at a time (`replicas: 1`); open",
    ),
    Piece(
        72124,
        "museum/72124-nomination-seen-late",
        "a pod of lower priority takes the room that preemption makes",
        "{check: no-priority-inversion}",
        "fixed in v1.14",
    ),
    Piece(
        92600,
        "museum/92600-nominated-to-a-lost-node",
        "a preemptor waits for a node that is lost, although it could preempt elsewhere",
        "{pod: high, running: {node: node-b}}",
        "`eligibility: current`; fixed in 2020",
    ),
    Piece(
        95752,
        "museum/95752-victim-that-does-not-go",
        "a preemptor waits as long as its victim likes",
        "{check: no-pod-starves}",
        "a short grace period; open",
    ),
    Piece(
        106361,
        "museum/106361-assumed-pod-expires",
        "a bound pod takes no room until the watch shows it, so the node is given away twice",
        "{check: cache-agrees-with-store}",
        "fixed in v1.23",
    ),
    Piece(
        106780,
        "museum/106780-nomination-without-room",
        "a pod that fits nowhere keeps room for itself",
        "{pod: p0, bound: {after: 20s, before: 22s}}",
        "fixed in v1.24",
    ),
    Piece(
        109236,
        "museum/109236-bound-pod-keeps-its-nomination",
        "a bound pod is counted twice on its node",
        "{check: no-pod-starves}",
        "fixed in v1.24",
    ),
    Piece(
        126700,
        "museum/126700-end-of-nomination-wakes-nobody",
        "a pod waits five minutes for room that is free",
        "{pod: p1, bound: {after: 1.5s, before: 4s}}",
        "fixed in v1.33",
    ),
    Piece(
        130429,
        "museum/130429-preemption-loop-of-two-schedulers",
        "two schedulers evict and place the same pods for two days",
        "{check: no-preemption-loop}",
        "`cooperate: on`, which no Kubernetes has; open",
    ),
    Piece(
        133602,
        "museum/133602-one-device-twice",
        "two claims hold one device",
        "{pods: {workload: train}, count: {is: {running: {}}, equals: 12}}",
        "fixed in v1.36",
    ),
    Piece(
        134249,
        "museum/134249-victim-preempted-again",
        "a victim is preempted again and again while it is being deleted",
        "{event: {reason: Preempted, about: victim, equals: 1}}",
        "fixed in v1.35",
    ),
    Piece(
        136782,
        "museum/136782-more-pods-than-a-node-takes",
        "a node is given more pods than it takes",
        "{counter: admissions_rejected, equals: 0}",
        "one scheduler at a time (`replicas: 1`); open",
    ),
    Piece(
        141227,
        "museum/141227-victim-that-cannot-go-elsewhere",
        "of two victims, the one that can run nowhere else is chosen",
        "{check: no-pod-starves}",
        "a priority for DaemonSets; open",
    ),
    Piece(
        141694,
        "museum/141694-preemptor-that-nothing-wakes",
        "a preemptor waits for ever beside a node that is empty",
        "{check: no-pod-starves}",
        "`fixes: [k8s-141694]`; open",
    ),
    Piece(
        102339,
        "museum/102339-deleted-pod-keeps-its-nomination",
        "a deleted pod keeps its nomination, and nobody gets its room",
        "{check: no-pod-starves}",
        "fixed in v1.22",
    ),
    Piece(
        91492,
        "museum/91492-preemption-reads-an-old-budget",
        "two preemptions spend the allowance of one budget twice, although a pod without a budget would have done",
        "{counter: budget_violations, equals: 0}",
        "no lag; open",
    ),
    Piece(
        99708,
        "museum/99708-relabelled-node",
        "a label changes, which running pods survive, until their kubelet restarts",
        "{pod: web, phase: Running}",
        "a preference instead of a requirement; open",
    ),
    Piece(
        106946,
        "museum/106946-static-pod-takes-the-gap",
        "a pod is bound to a gap that a static pod has taken already, and is rejected",
        "{pod: web, never: {rejected: {}}}",
        "a startup taint; by design",
    ),
    Piece(
        126479,
        "museum/126479-backoff-beats-priority",
        "a pod that has failed once overtakes a more important one that has failed twice",
        "{order: [{pod: important, bound: {}}, {pod: modest, bound: {}}]}",
        "`podMaxBackoffSeconds: 1`; by design",
    ),
    Piece(
        117,
        "museum/117-gang-deadlock",
        "two gangs hold each other's room while they wait to be complete",
        "{counter: pods_running, equals: 2}",
        "`postFilter: true`; fixed in the plugin",
        "kubernetes-sigs/scheduler-plugins",
    ),
    Piece(
        65240,
        "museum/65240-daemon-set-hot-loop",
        "a DaemonSet replaces pods that its kubelet refuses as fast as it can",
        "{counter: pods_created, atMost: 3}",
        "`bugs: []`; fixed in v1.12",
    ),
    Piece(
        71486,
        "museum/71486-heartbeats-block-the-queue",
        "heartbeats requeue a pod that does not fit, and it is always tried before the one that does",
        "{pod: small, running: {before: 10s}}",
        "`bugs: []`; fixed in v1.14",
    ),
    Piece(
        72593,
        "museum/72593-replica-set-hot-loop",
        "a ReplicaSet replaces pods that a kubelet rejects as fast as it can",
        "{counter: pods_created, equals: 1}",
        "a node selector; open",
    ),
    Piece(
        82149,
        "museum/82149-controller-overwrites-an-eviction",
        "the disruption controller overwrites what an eviction has counted, and the next one is allowed, too",
        "{check: voluntary-evictions-respect-budgets}",
        "`bugs: []`; fixed in v1.17",
    ),
    Piece(
        86373,
        "museum/86373-head-of-line",
        "important pods that do not fit are tried again and again, and a modest one that does never",
        "{pod: modest, running: {before: 40s}}",
        "a longer backoff; by design",
    ),
    Piece(
        95822,
        "museum/95822-node-not-synced",
        "a kubelet that restarts kills a pod, as it does not know the labels of its node yet",
        "{pod: db, phase: Running}",
        "`bugs: []`; fixed in v1.21",
    ),
    Piece(
        106884,
        "museum/106884-finished-pod-still-counts",
        "the kubelet reports a pod as finished and rejects the next one, as the first one still counts",
        "{pod: job-2, running: {}}",
        "`bugs: []`; fixed in v1.24",
    ),
    Piece(
        120413,
        "museum/120413-event-list-without-an-anchor",
        "the queue forgets the event before an attempt, and with it those of the attempt",
        "{pod: late, bound: {before: 16s}}",
        "`bugs: []`; fixed in v1.29",
    ),
    Piece(
        59848,
        "museum/59848-one-name-runs-twice",
        "a kubelet that restarts lists its pods from a cache that is behind, and starts one that was deleted",
        "{check: no-name-runs-twice}",
        "`informers: watchList`; on by default since v1.35",
    ),
    Piece(
        91601,
        "museum/91601-lost-node",
        "the list of nodes has one twice and lacks another, which nobody can use",
        "{pod: agent, running: {before: 16s}}",
        "without the old list; fixed in v1.20",
    ),
    Piece(
        125491,
        "museum/125491-scale-down-during-a-binding",
        "an autoscaler removes the node to which a pod is about to be bound",
        "{pod: db, phase: Running}",
        "`bugs: []`; v1.35 tells, the issue is open",
    ),
    Piece(
        129795,
        "museum/129795-expectations-expire",
        "a ReplicaSet creates its pods twice, as its watch is more than five minutes behind",
        "{counter: pods_created, equals: 3}",
        "`bugs: []`; fixed in v1.36",
    ),
    Piece(
        131867,
        "museum/131867-release-in-vain",
        "a leader that ends releases its lease in vain, and nobody leads until it has run out",
        "{pod: web, bound: {before: 18s}}",
        "`bugs: []`; fixed in v1.35",
    ),
    Piece(
        448,
        "museum/448-restart-waits-for-its-own-lease",
        "a scheduler that restarts waits for the lease of its former self, which has run out",
        "{pod: web, bound: {before: 32s}}",
        "a graceful end; by design",
        "kubernetes/client-go",
    ),
)

PIECES = {piece.scenario: piece for piece in sorted(_PIECES, key=lambda piece: piece.number)}


def recorded() -> set[int]:
    """The issues about which Kubernetes itself was asked."""
    files = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))
    return {int(case.id.rpartition("-")[2]) for file in files for case in case_files.read(file)}


def sides(scenario: scenarios.Scenario) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What to override for the bug, and for the cure."""
    (bug, _), (cure, _) = loader.variants(scenario)
    return bug, cure
