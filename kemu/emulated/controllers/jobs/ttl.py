"""The actor ``controller/ttl-after-finished``: deletes Jobs some time after their end, with their pods.

Mirrors ``pkg/controller/ttlafterfinished``: the Job goes after ``spec.ttlSecondsAfterFinished``, deleted in the
foreground, so that it stays until its pods are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.jobs import conditions
from kemu.emulated.objects import meta
from kemu.messages.k8s import batch_v1_pb2
from kemu.runtime.env import SECOND_NS, Env

WORKERS = 5


class TtlAfterFinishedController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.jobs.ttl:TtlAfterFinishedController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="ttl_jobs_to_delete")
        self._jobs: informers.Informer[batch_v1_pb2.Job] = informers.Informer(
            self.client, "jobs", handler=informers.Callbacks(self._job_changed, lambda old, new: self._job_changed(new))
        )

    async def run(self) -> None:
        await self.begin(self._jobs)
        await self.work(self.queue, self._process, WORKERS)

    def _job_changed(self, job: batch_v1_pb2.Job) -> None:
        if _is_to_go(job):
            self.queue.add_after(controllers.key_of(job), self.lag_s())

    async def _process(self, key: str) -> None:
        """``processJob``: by the cache first, then by what the API server says."""
        job = self._jobs.store.get(key)
        if job is None or not self._is_due(key, job):
            return
        namespace, name = meta.split_name(key)
        try:
            fresh = await self.client.get("jobs", name, namespace)
        except errors.NotFound:
            return
        if self._is_due(key, fresh):
            await self.client.delete("jobs", name, namespace, uid=fresh.metadata.uid, propagation_policy="Foreground")

    def _is_due(self, key: str, job: batch_v1_pb2.Job) -> bool:
        """``processTTL``: if it is not yet, look again when it is."""
        if not _is_to_go(job):
            return False
        ended = next(one for one in job.status.conditions if one.type == conditions.finished(job))
        expires_ns = meta.unix_ns(ended.lastTransitionTime) + job.spec.ttlSecondsAfterFinished * SECOND_NS
        left_ns = expires_ns - self.unix_ns()
        if left_ns > 0:
            self.queue.add_after_ns(key, left_ns)
        return bool(left_ns <= 0)


def _is_to_go(job: batch_v1_pb2.Job) -> bool:
    """It has ended, and is not being deleted yet."""
    if job.metadata.HasField("deletionTimestamp") or not job.spec.HasField("ttlSecondsAfterFinished"):
        return False
    return bool(conditions.finished(job))
