"""What the kubelet tells the API server about its pods: statuses, and the last deletion of pods that are gone.

One task at most for each pod, alive only while there is something to tell. Changes that come faster than they can be
written are folded: what is written is the state of the pod at that moment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from kemu import errors
from kemu.client import clients, retries
from kemu.kubelet import statuses, workers
from kemu.objects import meta, pod_phases
from kemu.runtime.env import SECOND_NS, Env


class Reports:
    """``observe(pod)`` receives what the API server answers: an object newer than those that a watch has brought."""

    __slots__ = ("_client", "_clock", "_env", "_epoch_ns", "_observe")

    def __init__(self, env: Env, client: clients.Client, observe: Callable[[Any], None]) -> None:
        self._env = env
        self._clock = env.clock
        self._client = client
        self._observe = observe
        self._epoch_ns = env.clock.epoch_unix_s * SECOND_NS

    def report(self, worker: workers.Worker) -> None:
        """Its state has changed in a way that its status shows."""
        worker.dirty = True
        self._start(worker)

    def delete(self, worker: workers.Worker) -> None:
        """Its containers are gone and it shall be deleted: remove the object."""
        if not worker.deleting:
            worker.deleting = True
            self._start(worker)

    def _start(self, worker: workers.Worker) -> None:
        if not worker.writing and not worker.removed:
            worker.writing = True
            self._env.spawn(self._write(worker), f"report {worker.key}")

    async def _write(self, worker: workers.Worker) -> None:
        namespace, name = meta.split_name(worker.key)
        with contextlib.suppress(errors.NotFound):  # the watch will bring the news
            while not worker.removed and (worker.deleting or worker.dirty):
                if worker.deleting and not (worker.dirty and _is_told_at_the_end(worker)):
                    await self._delete(worker, namespace, name)
                    break
                worker.dirty = False
                try:
                    pod = await self._update(worker)
                except errors.Conflict:
                    # Somebody else was faster: once more, on what there is now.
                    worker.dirty = True
                    pod = await retries.patiently(self._env, lambda: self._client.get("pods", name, namespace))
                if pod is not None and worker.mirror is not None:
                    worker.mirror.see(pod)
                    continue
                if pod is None or pod.metadata.uid != worker.uid:
                    break
                # What the watch was faster to bring is in the informer's store already: one copy is enough.
                if not worker.removed and pod.metadata.resourceVersion != worker.pod.metadata.resourceVersion:
                    self._observe(pod)
        worker.writing = False

    async def _update(self, worker: workers.Worker) -> Any:
        """The pod after its status was written. None: its phase is final, and nothing is written."""
        known = worker.pod
        if worker.mirror is not None:
            if worker.refusal is not None:
                return None  # A static pod that its node does not take gets no mirror.
            known = await worker.mirror.get()
        if known is None or pod_phases.is_terminal(known):
            return None
        pod = type(known)()
        pod.CopyFrom(known)
        self._render(worker, pod)
        return await retries.patiently(self._env, lambda: self._client.update_status(pod))

    async def _delete(self, worker: workers.Worker, namespace: str, name: str) -> None:
        def delete() -> Awaitable[Any]:
            return self._client.delete("pods", name, namespace, grace_period_seconds=0, uid=worker.uid)

        with contextlib.suppress(errors.Conflict):  # another pod has the name now: this one is gone
            await retries.patiently(self._env, delete)

    def _render(self, worker: workers.Worker, pod: Any) -> None:
        """Write the worker's state into the status."""
        epoch_ns = self._epoch_ns
        now_unix_ns = epoch_ns + self._clock.now_ns()
        if worker.refusal is not None:
            statuses.rejected(pod, now_unix_ns, worker.refusal.reason, worker.refusal.message)
            return
        ended = worker.state == workers.ENDED
        statuses.write(
            pod,
            worker.containers,
            worker.phase if ended else "",
            worker.failure,
            sandbox=worker.has_sandbox and not ended,
            start_unix_ns=epoch_ns + worker.start_ns,
            now_unix_ns=now_unix_ns,
            epoch_ns=epoch_ns,
        )


def _is_told_at_the_end(worker: workers.Worker) -> bool:
    """Whether the last status of a pod that is removed is written before: it was killed, which shows why, or the object
    outlives its containers. For all others that would be one more write, of what nobody gets to see."""
    return worker.failure is not None or len(worker.pod.metadata.finalizers) > 0
