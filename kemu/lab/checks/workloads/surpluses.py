"""Checks that workloads have no more pods than they want, and delete none that they want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.attention import Attention, sort_of
from kemu.lab.checks.history import POD_PREFIX, parsed
from kemu.lab.checks.results import Fold, seconds
from kemu.lab.checks.workloads.job_counts import indexes_in
from kemu.lab.checks.workloads.owners import Owner, Workloads
from kemu.lab.checks.workloads.views import ByView, Member, Members, Views, decided_since, is_prompt
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2
from kemu.runtime.runlog.events import ActorStarted, ApiRequest, Event, WritesAcknowledged
from kemu.runtime.words import counted

_JOB_ACTOR = "controller/job"
_FORGOTTEN_NS = 300_000_000_000
"""``ExpectationsTimeout``: a pod that was created so long ago and never seen does not count any more."""
_REPLICATED = {
    "ReplicaSet": "replicasets",
    "ReplicationController": "replicationcontrollers",
    "StatefulSet": "statefulsets",
}
_HASH = "controller-revision-hash"


class _Judging(ByView):
    """What both have in common."""

    folds: ClassVar[tuple[type[Fold], ...]] = (Attention, Views, Workloads, Members)

    def given(self, *folds: Any) -> None:
        super().given(*folds)
        self._workloads, self._members = folds[2:]

    def _specs(self, owner: Owner, actor: str, plural: str, since_ns: int) -> list[Any]:
        """The versions of an owner by which its controller may have decided."""
        seen = self._views.seen(actor, plural, since_ns)
        if seen is None:
            return []
        values = self._views.versions(f"/registry/{plural}/{owner.name}", seen)
        parse = parsed.parser(plural)
        found = [parse(value) for value in values if value is not None]
        return [one for one in found if one.metadata.uid == owner.uid]


class JobsKeepTheirParallelism(_Judging):
    """A Job creates no pod beyond ``parallelism`` and the completions that are left, and none for an index that is done
    or has one.

    What counts is what the controller knew: the pods that it was shown before it decided, and those whose creation was
    acknowledged to it, as long as it had not been shown that they ended; by any of the Job's versions that it may have
    decided by (``manageJob``, with its expectations).
    """

    id: ClassVar[str] = "jobs-keep-their-parallelism"
    actors: ClassVar[Mapping[type[Event], str]] = {WritesAcknowledged: _JOB_ACTOR}
    nothing: ClassVar[str] = "no Job created a pod"
    unit: ClassVar[str] = "pod"

    def given(self, *folds: Any) -> None:
        super().given(*folds)
        self._own: dict[str, dict[str, dict[str, int]]] = {}
        """By process and Job, UIDs of the pods that it knows to have created, and since when."""

    def on_event(self, time_ns: int, actor: str, event: WritesAcknowledged | ActorStarted) -> None:
        if sort_of(actor) != _JOB_ACTOR:
            return
        if isinstance(event, ActorStarted):
            self._own.pop(actor, None)
            return
        for took_ns, revision, key, uid, _digest in event.acks:
            if not key.startswith(POD_PREFIX) or self._is_lost:
                continue
            change = self._views.change(revision, key)
            if change is None or change.previous is not None or change.value is None:
                continue
            if change.time_ns < time_ns - took_ns:
                continue
            for job, members in self._members_of(change.value, uid):
                own = self._own.setdefault(actor, {}).setdefault(job.uid, {})
                own[uid] = time_ns
                self._created(time_ns, actor, job, members, members[uid], time_ns - took_ns)

    def _members_of(self, value: bytes, uid: str) -> list[tuple[Owner, dict[str, Member]]]:
        """The Job that the pod belongs to, and the Job's pods."""
        owners = [one.uid for one in parsed.pod(value).metadata.ownerReferences if one.controller]
        found = [(self._workloads.owners.get(owner), self._members.of.get(owner, {})) for owner in owners]
        return [
            (owner, members) for owner, members in found if owner is not None and owner.kind == "Job" and uid in members
        ]

    def _created(
        self, time_ns: int, actor: str, job: Owner, members: Mapping[str, Member], new: Member, asked_ns: int
    ) -> None:
        since_ns = decided_since(self._attention, actor, asked_ns)
        before, now = self._views.seen(actor, "pods", since_ns), self._views.seen(actor, "pods", time_ns)
        jobs = self._specs(job, actor, "jobs", since_ns)
        if before is None or now is None or not jobs:
            return
        self._judged += 1
        own = self._own[actor][job.uid]
        known = [
            one
            for one in members.values()
            if one.since <= before or (one.uid in own and (one.since <= now or own[one.uid] > time_ns - _FORGOTTEN_NS))
        ]
        active = [one for one in known if one.out is None or one.out > now]
        most = max(_parallel(one) for one in jobs)
        says = f"{seconds(time_ns)}: {job.says} creates {new.name}"
        if len(active) > most:
            self._findings.append(f"{says}, and has {counted(len(active), 'active pod')} of {most}")
            return
        is_indexed = job.value.spec.completionMode == "Indexed"
        if is_indexed and new.index.isdigit():
            index = int(new.index)
            if any(one.index == new.index and one is not new for one in active):
                self._findings.append(f"{says}, and has an active pod of index {index} already")
            elif all(index in indexes_in(one.status.completedIndexes) for one in jobs):
                self._findings.append(f"{says}, and its index {index} has succeeded already")
            elif all(index >= one.spec.completions for one in jobs):
                self._findings.append(f"{says}, and has no index {index}")
        elif all(one.spec.HasField("completions") for one in jobs):
            done = sum(one.created and one.succeeded and one not in active for one in known)
            completions = max(one.spec.completions for one in jobs)
            if done + len(active) > completions:
                done_text = f"{counted(len(active), 'active pod')} and {counted(done, 'success', 'successes')}"
                self._findings.append(f"{says}, and has {done_text} of {completions}")


def _parallel(job: batch_v1_pb2.Job) -> int:
    """How many pods it may have at once."""
    if job.spec.suspend or job.metadata.HasField("deletionTimestamp"):
        return 0
    if any(one.type in ("Complete", "Failed") and one.status == "True" for one in job.status.conditions):
        return 0
    return int(job.spec.parallelism)


class ScaleDownsKeepWhatIsWanted(_Judging):
    """A ReplicaSet or ReplicationController deletes a pod only if as many as it wants stay; a StatefulSet one of its
    ordinals only if it has ended, or is to be replaced by one of a newer revision.

    What stays is what the controller may have counted as active when it decided, by the revisions that its watches had
    delivered, without the pods whose deletion it had asked for; what it wants is the least that any of the versions
    says by which it may have decided (``manageReplicas``, ``processReplica``).
    """

    id: ClassVar[str] = "scale-downs-keep-what-is-wanted"
    verbs: ClassVar[tuple[str, ...]] = ("delete",)
    nothing: ClassVar[str] = "no workload deleted a pod"
    unit: ClassVar[str] = "deletion"

    def given(self, *folds: Any) -> None:
        super().given(*folds)
        self._asked: dict[str, dict[str, int]] = {}
        """By process, the pods that it has asked to delete, and when."""

    def on_event(self, time_ns: int, actor: str, event: ApiRequest | ActorStarted) -> None:
        if isinstance(event, ActorStarted):
            self._asked.pop(actor, None)
            return
        if not event.by.startswith("controller/") or self._is_lost:
            return
        kinds = {f"controller/{name.lower()}": name for name in _REPLICATED}
        name = kinds.get(sort_of(event.by))
        change = self._views.change(event.rev, f"{POD_PREFIX}{event.namespace}/{event.name}") if name else None
        if change is None or change.previous is None or change.time_ns < event.start:
            return  # It was being deleted already.
        pod = parsed.pod(change.previous)
        for reference in pod.metadata.ownerReferences:
            owner = self._workloads.owners.get(reference.uid)
            if reference.controller and owner is not None and owner.kind == name:
                self._deleted(time_ns, event.by, owner, pod, event.start)

    def _deleted(self, time_ns: int, actor: str, owner: Owner, pod: core_v1_pb2.Pod, asked_ns: int) -> None:
        since_ns = decided_since(self._attention, actor, asked_ns)
        before, now = self._views.seen(actor, "pods", since_ns), self._views.seen(actor, "pods", time_ns)
        specs = self._specs(owner, actor, _REPLICATED[owner.kind], since_ns)
        if before is None or now is None or not specs:
            return
        self._judged += 1
        says = f"{seconds(time_ns)}: {owner.says} deletes {pod.metadata.namespace}/{pod.metadata.name}"
        if owner.kind == "StatefulSet":
            if (why := _keeps(pod, specs)) and not pod_phases.is_terminal(pod):
                self._findings.append(f"{says}, {why}")
            return
        asked = self._asked.setdefault(actor, {})
        asked[pod.metadata.uid] = time_ns
        # Where something held it up, it may not have heard of its own deletions.
        own_since_ns = since_ns if is_prompt(asked_ns, since_ns) else time_ns
        members = self._members.of.get(owner.uid, {})
        left = [
            one
            for one in members.values()
            if one.may_be_active(before, now)
            and not (one.uid in asked and (asked[one.uid] >= own_since_ns or (one.out is not None and one.out <= now)))
        ]
        least = min(one.spec.replicas for one in specs)
        if len(left) < least:
            self._findings.append(f"{says}, which leaves {counted(len(left), 'pod')} of {least}")


def _keeps(pod: core_v1_pb2.Pod, sets: list[Any]) -> str:
    """Why a StatefulSet wants the pod, whichever of these versions it had seen."""
    number = pod.metadata.name.rpartition("-")[2]
    for one in sets:
        first = one.spec.ordinals.start
        if not number.isdigit() or not first <= int(number) < first + one.spec.replicas:
            return ""
        if one.status.observedGeneration != one.metadata.generation:
            return ""
        if not one.status.updateRevision or pod.metadata.labels.get(_HASH, "") != one.status.updateRevision:
            return ""
        if one.metadata.HasField("deletionTimestamp"):
            return ""
    return "which is one of its ordinals, has not ended, and is of its latest revision"
