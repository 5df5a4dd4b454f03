"""What a scheduler writes about pods: conditions and nominations in their status, and Events.

Mirrors the second half of ``handleSchedulingFailure`` and ``updatePod`` (``pkg/scheduler``). With
``statusWrites: blocking``, today's default, the caller, and with it the scheduling loop, waits for the write. With
``background``, as under the feature gate SchedulerAsyncAPICalls, writes run beside the loop: one at a time for each
pod; further ones are merged until their turn comes, and a binding replaces them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kemu.emulated.client import retries
from kemu.emulated.client.recorders import NORMAL, WARNING, Recorder
from kemu.emulated.objects import meta
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.framework.interfaces import Api
from kemu.errors import ApiError
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import PodNominated, StatusLost

Patch = dict[str, Any]
PREEMPTION, BINDING = "preemption", "binding"
"""What a nomination is for: room is being made for the pod, or it is about to be bound."""


class Reporter:
    """``recorders``: by scheduler name; without one, no Events are written."""

    def __init__(self, env: Env, api: Api, policy: Policy, recorders: Mapping[str, Recorder]) -> None:
        self._env = env
        self._api = api
        self._recorders = recorders
        self.in_background = policy.statusWrites == "background"
        self._next: dict[str, tuple[Any, Patch, str]] = {}
        """By UID: what is to be written after the write under way."""
        self._under_way: dict[str, asyncio.Task[Any]] = {}
        self._nominations: dict[str, str] = {}
        """By UID: the nomination that is being written."""

    # Status ---------------------------------------------------------------------------------------------------------

    async def failed(self, pod: core_v1_pb2.Pod, message: str, nominate: str | None, reason: str) -> None:
        """Report a failed attempt, and write the nomination where it changes (None: leave it, "": clear it).

        ``pod`` is the object as last seen.
        """
        recorder = self._recorders.get(pod.spec.schedulerName)
        if recorder is not None:
            recorder.event(pod, WARNING, "FailedScheduling", "Scheduling", message)
        now_unix_ns = self._env.clock.unix_ns()
        conditions, generation = pod.status.conditions, pod.metadata.generation
        patch = meta.condition_patch(conditions, "PodScheduled", "False", reason, message, now_unix_ns, generation)
        if nominate is not None and nominate != self.nomination(pod):
            patch = patch or {"status": {}}
            patch["status"]["nominatedNodeName"] = nominate or None
        if patch is not None:
            await self._write(pod, patch, PREEMPTION)

    async def expect(self, pod: core_v1_pb2.Pod, node: str) -> None:
        """The pod is to be bound to this node, but not at once."""
        if self.nomination(pod) != node:
            await self._write(pod, {"status": {"nominatedNodeName": node}}, BINDING)

    async def clear_nomination(self, pod: core_v1_pb2.Pod) -> bool:
        """Clear the nomination of a pod, if one was written; False when the write failed."""
        return not self.nomination(pod) or await self._write(pod, {"status": {"nominatedNodeName": None}})

    def nomination(self, pod: core_v1_pb2.Pod) -> str:
        """The node that the pod is nominated to, once all pending writes are done."""
        nominated: str = pod.status.nominatedNodeName
        return self._nominations.get(pod.metadata.uid, nominated) if self._nominations else nominated

    async def settled(self, uid: str) -> None:
        """Before a binding, with writes in the background: drop the pod's pending writes, await the one under way."""
        self._next.pop(uid, None)
        if uid in self._under_way:
            await self._under_way[uid]

    async def _write(self, pod: core_v1_pb2.Pod, patch: Patch, why: str = "") -> bool:
        """``why``: what a nomination is for."""
        if not self.in_background:
            return await self._patch(pod, patch, why)
        uid = pod.metadata.uid
        if "nominatedNodeName" in patch["status"]:
            self._nominations[uid] = patch["status"]["nominatedNodeName"] or ""
        if uid in self._next:
            _, earlier, earlier_why = self._next[uid]
            why = why if "nominatedNodeName" in patch["status"] else earlier_why
            patch = {"status": {**earlier["status"], **patch["status"]}}
        self._next[uid] = pod, patch, why
        if uid not in self._under_way:
            self._under_way[uid] = self._env.spawn(self._write_all(uid), f"status of {meta.namespaced_name(pod)}")
        return True

    async def _write_all(self, uid: str) -> None:
        while uid in self._next:
            await self._patch(*self._next.pop(uid))
        del self._under_way[uid]
        self._nominations.pop(uid, None)

    async def _patch(self, pod: core_v1_pb2.Pod, patch: Patch, why: str) -> bool:
        metadata = pod.metadata
        started_ns = self._env.clock.now_ns()
        try:
            await retries.status_patch(self._env, self._api, "pods", metadata.name, metadata.namespace, patch)
        except ApiError as error:
            # The next attempt writes again; until then the nomination exists in memory only.
            key = f"{metadata.namespace}/{metadata.name}"
            self._env.log(StatusLost(pod=key, uid=metadata.uid, start=started_ns, reason=error.reason))
            return False
        if "nominatedNodeName" in patch["status"]:
            node = patch["status"]["nominatedNodeName"] or ""
            key = f"{metadata.namespace}/{metadata.name}"
            why = why if node else ""
            self._env.log(PodNominated(pod=key, uid=metadata.uid, node=node, start=started_ns, why=why))
        return True

    # Events ---------------------------------------------------------------------------------------------------------

    def bound(self, pod: core_v1_pb2.Pod, node: str) -> None:
        recorder = self._recorders.get(pod.spec.schedulerName)
        if recorder is not None and recorder.writes_routine:
            note = f"Successfully assigned {meta.namespaced_name(pod)} to {node}"
            recorder.event(pod, NORMAL, "Scheduled", "Binding", note, routine=True)

    def preempted(
        self, victim: core_v1_pb2.Pod, preemptor: core_v1_pb2.Pod, node: str, kind: str = "pod", *, deleted: bool
    ) -> None:
        note = f"Preempted by {kind} {preemptor.metadata.uid} on node {node}"
        if not deleted:
            note += " (in kube-scheduler memory)."
        self._event(preemptor.spec.schedulerName, victim, NORMAL, "Preempted", "Preempting", note, preemptor)

    def skipped(self, pod: core_v1_pb2.Pod) -> None:
        """The pod is being deleted."""
        note = f"skip schedule deleting pod: {pod.metadata.namespace}/{pod.metadata.name}"
        self._event(pod.spec.schedulerName, pod, WARNING, "FailedScheduling", "Scheduling", note)

    def told(self, pod: core_v1_pb2.Pod, reason: str, action: str, note: str) -> None:
        """What a plugin has to tell."""
        self._event(pod.spec.schedulerName, pod, NORMAL, reason, action, note)

    def _event(
        self,
        scheduler: str,
        pod: core_v1_pb2.Pod,
        event_type: str,
        reason: str,
        action: str,
        note: str,
        related: core_v1_pb2.Pod | None = None,
    ) -> None:
        recorder = self._recorders.get(scheduler)
        if recorder is not None:
            recorder.event(pod, event_type, reason, action, note, related)
