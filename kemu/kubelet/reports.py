"""What the kubelet tells the API server about its pods: statuses, and the last deletion of pods that are gone.

One task at most for each pod, alive only while there is something to tell. Changes that come faster than they can be
written are folded: what is written is the state of the pod at that moment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from kemu import errors
from kemu.client import clients, streams
from kemu.kubelet import statuses, workers
from kemu.objects import meta
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
        backoff: streams.Backoff | None = None
        while not worker.removed and (worker.deleting or worker.dirty):
            try:
                if worker.deleting:
                    await self._delete(worker)
                    break
                worker.dirty = False
                pod = worker.pod
                changed = type(pod)()
                changed.CopyFrom(pod)
                self._render(worker, changed)
                answer = await self._client.update_status(changed)
                if not worker.removed:
                    self._observe(answer)
                continue
            except errors.NotFound:
                break  # the watch will bring the news
            except errors.Conflict:
                if not await self._refresh(worker):
                    break
            except errors.ServiceUnavailable:
                pass  # the client waits before it connects again
            except (errors.TooManyRequests, errors.ServerTimeout, errors.InternalError):
                backoff = backoff or streams.Backoff(self._env.random)
                await self._clock.sleep(backoff.next_s())
            worker.dirty = True
        worker.writing = False

    async def _delete(self, worker: workers.Worker) -> None:
        namespace, name = meta.split_name(worker.key)
        # A conflict: another pod has the name now, this one is gone.
        with contextlib.suppress(errors.Conflict):
            await self._client.delete("pods", name, namespace, grace_period_seconds=0, uid=worker.uid)

    async def _refresh(self, worker: workers.Worker) -> bool:
        """Read the pod anew, after somebody else has changed it. Returns whether it is still there."""
        namespace, name = meta.split_name(worker.key)
        while True:
            try:
                pod = await self._client.get("pods", name, namespace)
                break
            except errors.NotFound:
                return False
            except errors.ServiceUnavailable:
                continue
        if worker.removed or pod.metadata.uid != worker.uid:
            return False
        self._observe(pod)
        return True

    def _render(self, worker: workers.Worker, pod: Any) -> None:
        """Write the worker's state into the status."""
        epoch_ns = self._epoch_ns
        now_unix_ns = epoch_ns + self._clock.now_ns()
        state = worker.state
        if worker.refusal is not None:
            statuses.rejected(pod, now_unix_ns, worker.refusal.reason, worker.refusal.message)
        elif state == workers.ENDED:
            if worker.phase and worker.last is not None:
                statuses.finished(pod, now_unix_ns, worker.phase, worker.restarts, worker.last)
        elif state == workers.BACKING_OFF:
            assert worker.last is not None
            statuses.waiting(pod, now_unix_ns, worker.backoff_s, worker.restarts, worker.last)
        elif state in (workers.RUNNING, workers.STOPPING):
            start, started = epoch_ns + worker.start_ns, epoch_ns + worker.started_ns
            statuses.running(pod, start, started, now_unix_ns, worker.restarts, worker.last)
        else:
            statuses.starting(pod, epoch_ns + worker.start_ns, now_unix_ns)
