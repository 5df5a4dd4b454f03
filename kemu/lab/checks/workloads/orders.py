"""Checks of how workloads change their pods: rollouts and StatefulSets go step by step, Jobs wait after failures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kemu.lab.checks.attention import LAGS_NS, Attention
from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Fold, Result, seconds
from kemu.lab.checks.workloads.owners import Owner, Pod, Workloads
from kemu.messages.k8s import apps_v1_pb2, meta_v1_pb2
from kemu.runtime.runlog.events import ApiRequest
from kemu.runtime.words import counted

_LAG_NS = 10_000_000_000
"""How far a controller may be behind the store."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 10, 600
"""``DefaultJobPodFailureBackOff``, ``MaxJobPodFailureBackOff``."""


class RolloutsKeepTheirLimits(Check):
    """A rolling Deployment never wants more pods than ``maxSurge`` allows, nor takes away more than ``maxUnavailable``.

    Judged at each change of the size of one of its ReplicaSets, by the pods that are ready and were so ten seconds
    before at the latest, and by the Deployment as it is and was ten seconds before. A ReplicaSet deletes pods that are
    not ready first.
    """

    id: ClassVar[str] = "rollouts-keep-their-limits"
    folds: ClassVar[tuple[type[Fold], ...]] = (Attention, Workloads)

    def given(self, *folds: Any) -> None:
        self._attention, self._workloads = folds
        self._workloads.tell_owner.append(self._owner_changed)
        self._sizes: dict[str, int] = {}
        self._judged = 0
        self._findings: list[str] = []

    def _owner_changed(self, time_ns: int, owner: Owner, gone: bool) -> None:
        if owner.kind != "ReplicaSet" or not owner.parent:
            return
        before = self._sizes.get(owner.uid, 0)
        now = self._sizes[owner.uid] = 0 if gone else owner.value.spec.replicas
        parent = self._workloads.owners.get(owner.parent)
        if gone or now == before or parent is None or parent.value.spec.strategy.type == "Recreate":
            return
        since_ns = time_ns - _LAG_NS
        if since_ns > 0 and not self._attention.is_clear("controller/deployment", since_ns, time_ns):
            return
        specs = [parent.value.spec]
        if time_ns - parent.changed_ns < _LAG_NS:
            specs.append(parent.before.spec)
        self._judged += 1
        sets = [one for one in self._workloads.owners.values() if one.parent == owner.parent]
        if now > before:
            total = sum(one.value.spec.replicas for one in sets)
            most = max(spec.replicas + _surge(spec) for spec in specs)
            if total > most:
                self._findings.append(
                    f"{seconds(time_ns)}: the ReplicaSets of {parent.says} want {total} pods together, of {most} "
                    "allowed"
                )
            return
        left = had = 0
        for one in sets:
            ready = sum(pod.ready or (pod.active and _was_ready(pod, time_ns)) for pod in one.pods.values())
            left += min(ready, one.value.spec.replicas)
            had += min(ready, before if one is owner else one.value.spec.replicas)
        least = min(spec.replicas - _unavailable(spec) for spec in specs)
        if left < min(least, had):
            self._findings.append(
                f"{seconds(time_ns)}: {owner.says} shrinks to {now}, which leaves {parent.says} "
                f"{counted(left, 'ready pod')} of at least {least}"
            )

    def result(self, history: History) -> Result:
        findings = self._findings if self._attention.lag_ns <= LAGS_NS else []
        good = f"{counted(self._judged, 'change')} of sizes"
        return self.concluded(findings, self._judged, "no Deployment changed the size of a ReplicaSet", good)


def _surge(spec: apps_v1_pb2.DeploymentSpec) -> int:
    return _scaled(spec.strategy.rollingUpdate.maxSurge, spec.replicas, up=True)


def _unavailable(spec: apps_v1_pb2.DeploymentSpec) -> int:
    unavailable = _scaled(spec.strategy.rollingUpdate.maxUnavailable, spec.replicas, up=False)
    # Both may round to 0: then one pod at a time may be missing (``ResolveFenceposts``).
    return unavailable or int(not _surge(spec))


def _scaled(value: meta_v1_pb2.IntOrString, total: int, *, up: bool) -> int:
    if value.type == 0:
        return int(value.intVal)
    share = int(value.strVal.removesuffix("%")) * total / 100
    return math.ceil(share) if up else math.floor(share)


@dataclass(slots=True)
class _Ends:
    """The ends of the pods of a Job."""

    succeeded_s: int = 0
    """When the last one did."""
    failed: list[tuple[int, Pod]] = field(default_factory=list)
    """And when the store had it."""


class JobsWaitAfterFailures(Check):
    """A Job of which pods have failed waits before it creates another: 10 seconds, twice as long after each failure.

    Up to ten minutes; a success begins anew (``getRemainingTimeForFailuresCount``). What counts is when the containers
    ended; the controller may be two seconds behind the store. A pod that was deleted counts from its deletion on:
    what follows one is not judged. With rules for failures, or a limit for each index, other failures count.
    """

    id: ClassVar[str] = "jobs-wait-after-failures"
    folds: ClassVar[tuple[type[Fold], ...]] = (Attention, Workloads)

    def given(self, *folds: Any) -> None:
        self._attention, workloads = folds
        workloads.tell_pod.append(self._pod_changed)
        self._jobs: dict[str, _Ends] = {}
        """By UID."""
        self._judged = 0
        self._findings: list[str] = []

    def _pod_changed(self, time_ns: int, owner: Owner, pod: Pod, gone: bool) -> None:
        if owner.kind != "Job" or gone:
            return
        if pod.over:
            ends = self._jobs.setdefault(owner.uid, _Ends())
            if not pod.failed:
                ends.succeeded_s = max(ends.succeeded_s, pod.ended_s)
            elif pod.ended_s and all(known is not pod for _, known in ends.failed):
                ends.failed.append((time_ns, pod))
        elif pod.created_ns == time_ns and owner.uid in self._jobs:
            self._created(time_ns, owner, pod, self._jobs[owner.uid])

    def _created(self, time_ns: int, owner: Owner, pod: Pod, ends: _Ends) -> None:
        spec = owner.value.spec
        if spec.HasField("podFailurePolicy") or spec.HasField("backoffLimitPerIndex"):
            return
        failed = [
            (known_ns, one)
            for known_ns, one in ends.failed
            if known_ns < time_ns - LAGS_NS and one.ended_s > ends.succeeded_s
        ]
        if not failed or any(one.deleting for _, one in failed):
            return
        since_ns = min(known_ns for known_ns, _ in failed)
        kubelets = (f"kubelet/{one.node}" for _, one in failed)
        if not self._attention.is_clear("controller/job", since_ns, time_ns) or not all(
            self._attention.was_clear(kubelet, since_ns, time_ns) for kubelet in kubelets
        ):
            return
        self._judged += 1
        had_s = pod.began_s - max(one.ended_s for _, one in failed)
        wait_s = min(_FIRST_WAIT_S << min(len(failed) - 1, 16), _LONGEST_WAIT_S)
        if had_s < wait_s - 1:  # API objects state whole seconds.
            self._findings.append(
                f"{seconds(time_ns)}: {owner.says} creates {pod.name} {had_s} s after a failure, of {wait_s} s to wait "
                f"({counted(len(failed), 'failure')})"
            )

    def result(self, history: History) -> Result:
        findings = self._findings if self._attention.lag_ns <= LAGS_NS else []
        good = f"{counted(self._judged, 'pod')} after failures"
        return self.concluded(findings, self._judged, "no Job had to wait", good)


class StatefulSetsGoInOrder(Check):
    """A StatefulSet creates a pod when all before it are ready, and deletes surplus pods from the last to the first.

    With ``podManagementPolicy: OrderedReady``. The controller may be ten seconds behind the store.
    """

    id: ClassVar[str] = "stateful-sets-go-in-order"
    verbs: ClassVar[tuple[str, ...]] = ("create", "delete")
    folds: ClassVar[tuple[type[Fold], ...]] = (Attention, Workloads)

    def given(self, *folds: Any) -> None:
        self._attention, self._workloads = folds
        self._workloads.tell_pod.append(self._pod_changed)
        self._known: dict[str, tuple[Owner, Pod]] = {}
        """By UID."""
        self._early: dict[str, str] = {}
        """What is said of pods that came too early, by UID, until it is known who created them."""
        self._judged = 0
        self._findings: list[str] = []

    def _is_lagging(self, time_ns: int) -> bool:
        return not self._attention.is_clear("controller/statefulset", max(0, time_ns - _LAG_NS), time_ns) and (
            time_ns > _LAG_NS
        )

    def _pod_changed(self, time_ns: int, owner: Owner, pod: Pod, gone: bool) -> None:
        if owner.kind != "StatefulSet" or owner.value.spec.podManagementPolicy == "Parallel":
            return
        if gone:
            self._known.pop(pod.uid, None)
        elif pod.uid not in self._known:
            self._known[pod.uid] = owner, pod
            if pod.created_ns == time_ns and not self._is_lagging(time_ns):
                self._created(time_ns, owner, pod)

    def _created(self, time_ns: int, owner: Owner, pod: Pod) -> None:
        ordinal, first = _ordinal(pod.name), owner.value.spec.ordinals.start
        self._judged += 1
        there = {other.name: other for other in owner.pods.values()}
        for number in range(first, ordinal):
            other = there.get(f"{owner.name}-{number}")
            if other is None or not (other.ready or _was_ready(other, time_ns)):
                state = "is not there" if other is None else "is not ready"
                text = f"{seconds(time_ns)}: {owner.says} creates {pod.name}, while its pod {number} {state}"
                self._early[pod.uid] = text
                return

    def on_event(self, time_ns: int, actor: str, event: ApiRequest) -> None:
        early = self._early.pop(event.uid, "")
        if not event.by.startswith("controller/statefulset"):
            return  # Objects of a cluster come as they were there.
        if event.verb == "create":
            self._findings += [early] if early else []
            return
        known = self._known.get(event.uid)
        if known is None:
            return
        owner, pod = known
        spec = owner.value.spec
        if pod.over or _ordinal(pod.name) < spec.ordinals.start + spec.replicas or self._is_lagging(time_ns):
            return
        self._judged += 1
        later = [other for other in owner.pods.values() if _ordinal(other.name) > _ordinal(pod.name)]
        if later:
            self._findings.append(
                f"{seconds(time_ns)}: {owner.says} deletes {pod.name}, while {later[0].name} is still there"
            )

    def result(self, history: History) -> Result:
        findings = self._findings if self._attention.lag_ns <= LAGS_NS else []
        good = f"{counted(self._judged, 'pod')} in order"
        return self.concluded(findings, self._judged, "no StatefulSet went in order", good)


def _ordinal(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _was_ready(pod: Pod, time_ns: int) -> bool:
    return pod.unready_ns > pod.created_ns and time_ns - pod.unready_ns < _LAG_NS
