"""What the controllers of the cluster share: their set-up, their work loop, and the writes that all of them make.

Every controller is an actor ``controller/<name>`` over informers. Config (plain data): ``apiserver`` (the API server to
talk to; or a list, the others for when that one is lost), ``lag`` (the delay between an event and the reaction to it:
seconds, or a distribution of seconds), ``election`` (the fields of :class:`kemu.emulated.client.elections.Settings`,
where replicas elect a leader), ``measured`` (work queues log what metrics need), and the settings that each controller
names itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from kemu import errors
from kemu.emulated import variants
from kemu.emulated.client import clients, elections, informers, retries, workqueues
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import distributions
from kemu.runtime.env import Env

DISRUPTION_TARGET = "DisruptionTarget"


class Controller(variants.Varied):
    """Base class: ``self.client``, ``self.env``, ``self.clock``; :meth:`lag_s` draws the next lag."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        """Raises ValueError that names the setting."""
        self.env = env
        env.measured = bool(config.get("measured"))
        self.clock = env.clock
        self.client = clients.of_actor(env, config)
        election = config.get("election")
        elector = None
        if election is not None:
            settings = elections.Settings(**election)
            elector = variants.choose(elections.Elector, variants.active(config))(env, self.client, settings)
        self._candidate = elections.Candidate(env, elector)
        try:
            self._lag = distributions.parse(config.get("lag", 0))
        except distributions.DistributionError as error:
            raise ValueError(f"lag: {error}") from error

    def lag_s(self) -> float:
        lag = self._lag
        return lag.constant if lag.constant is not None else lag.draw(self.env.random)

    def unix_ns(self) -> int:
        """Now, for timestamps in objects."""
        return self.clock.unix_ns()

    async def begin(self, *watched: informers.Informer[Any]) -> None:
        """Wait for the first lists, then for the clock; with an election, for the clock, the lease, and the lists, as
        kube-controller-manager starts its informers when it leads."""
        if self._candidate.is_elected:
            self.env.ready()
            await self.clock.started()
            await self._candidate.win()
        for informer in watched:
            await informer.synced()
        if not self._candidate.is_elected:
            self.env.ready()
            await self.clock.started()

    async def work(
        self,
        queue: workqueues.WorkQueue[str],
        reconcile: Callable[[str], Coroutine[Any, Any, bool | None]],
        workers: int = 1,
    ) -> None:
        """Reconcile the keys of a queue for ever, ``workers`` of them side by side; a key that fails is put back with
        a delay that grows until it succeeds. ``reconcile`` returns True for what neither failed nor succeeded."""
        for number in range(1, workers):
            self.env.spawn(self._work(queue, reconcile), f"worker {number}")
        await self._work(queue, reconcile)

    async def _work(
        self, queue: workqueues.WorkQueue[str], reconcile: Callable[[str], Coroutine[Any, Any, bool | None]]
    ) -> None:
        while True:
            key = await queue.get()
            try:
                if not await reconcile(key):
                    queue.forget(key)
            except errors.ApiError:
                queue.add_rate_limited(key)
            finally:
                queue.done(key)

    async def all(self, coroutines: list[Coroutine[Any, Any, Any]], name: str) -> None:
        """Several writes at the same time."""
        if len(coroutines) == 1:
            await coroutines[0]
        elif coroutines:
            await asyncio.gather(*(self.env.spawn(one, name) for one in coroutines))

    async def remove(
        self,
        pod: core_v1_pb2.Pod,
        patch: Mapping[str, Any] | None,
        grace_s: int | None = None,
        *,
        by_name: bool = False,
    ) -> bool:
        """Delete a pod, after this strategic patch of its status. False: it is gone. As in Kubernetes the deletion
        takes whatever pod has the name by then; the patch does so only ``by_name``, else False if it is another one."""
        metadata = pod.metadata
        name, namespace, uid = metadata.name, metadata.namespace, "" if by_name else metadata.uid
        client = self.client
        try:
            if patch is not None:
                await retries.patiently(
                    self.env,
                    lambda: client.patch("pods", name, namespace, patch, "status", "strategic", uid),
                )
            await retries.patiently(self.env, lambda: client.delete("pods", name, namespace, grace_s))
        except (errors.NotFound, errors.Conflict):
            return False
        return True


def disruption_patch(pod: core_v1_pb2.Pod, reason: str, message: str, now_unix_ns: int) -> dict[str, Any] | None:
    """A strategic patch of a pod's status with its condition DisruptionTarget; None when it is as wanted already."""
    return meta.condition_patch(
        pod.status.conditions, DISRUPTION_TARGET, "True", reason, message, now_unix_ns, pod.metadata.generation
    )


def key_of(obj: KubernetesObject) -> str:
    """The key in informers: ``namespace/name``, or a name."""
    return meta.namespaced_name(obj)
