"""Carries out preemptions, beside the scheduling loop: clears lower nominations, then evicts the victims.

Mirrors ``pkg/scheduler/framework/preemption`` (Executor). While it runs, the preemptor may not enter the active or the
backoff queue, except when only the last victim remains and that one is already terminating.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from kemu.emulated.client import retries
from kemu.emulated.objects import meta
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.status_updates import Reporter
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.framework.interfaces import Api
from kemu.emulated.scheduler.framework.results import Candidate
from kemu.errors import ApiError, NotFound
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import VictimDeleted

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


_Victim = tuple[PodInfo, Any]
"""And the pod as it was when the preemption was decided."""


class Beneficiary(Protocol):
    """A pod for which room is made, or a group of pods in its place, which has a ``kind`` and ``members`` (UIDs)."""

    @property
    def uid(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def priority(self) -> int: ...

    @property
    def pod(self) -> core_v1_pb2.Pod: ...


def kind_of(preemptor: Beneficiary) -> str:
    """What events call the preemptor."""
    return getattr(preemptor, "kind", "pod")


class Evictor:
    """Carries out preemptions. ``find`` returns a pod as last seen in the watch, by UID."""

    def __init__(
        self,
        env: Env,
        api: Api,
        cluster: Cluster,
        policy: Policy,
        reporter: Reporter,
        parallelism: int,
        find: Callable[[str], Any | None],
        activate: Callable[[str], object],
        on_over: Callable[[str], object],
        turn_away: Callable[[str], bool],
    ) -> None:
        """``activate`` makes the queue retry a pod; ``on_over`` hears of a preemptor when its victims have been told to
        go; ``turn_away`` ends the binding cycle of a victim. All take UIDs.

        ``turn_away`` returns False when it is too late for that; then the victim is deleted.
        """
        self._env = env
        self._api = api
        self._cluster = cluster
        self._policy = policy
        self._reporter = reporter
        self._parallelism = parallelism
        self._find = find
        self._activate = activate
        self._on_over = on_over
        self._turn_away = turn_away
        self._busy: dict[str, str] = {}
        """UID of the preemptor → UID of the last victim once only that one is left, else ""."""

    def is_preempting(self, uid: str) -> bool:
        last = self._busy.get(uid)
        if last is None:
            return False
        return not last or self._is_to_go(last)

    def _is_to_go(self, last: str) -> bool:
        """Whether the last victim, by its UID, is not being deleted yet."""
        victim = self._find(last)
        return victim is not None and not victim.metadata.HasField("deletionTimestamp")

    def start(self, preemptor: Beneficiary, candidate: Candidate, clears: Collection[str] | None = None) -> None:
        """Begin to carry out a preemption. ``clears``: UIDs of the pods that may lose their nominations; None: all."""
        # With the conditions that they had when this was decided: who was marked meanwhile is marked again.
        victims = [(victim, victim.pod) for victim in candidate.victims if not victim.terminating]
        if not victims and self._policy.clearLowerNominations in ("current", "never"):
            return
        self._busy[preemptor.uid] = ""
        self._env.spawn(self._run(preemptor, candidate.node, victims, clears), f"preemption for {preemptor.key}")

    async def _run(
        self, preemptor: Beneficiary, node: str, victims: list[_Victim], clears: Collection[str] | None
    ) -> None:
        uid = preemptor.uid
        evicted = True
        cleared = await self._clear_lower(preemptor, node, clears)
        step = self._parallelism
        others = victims[:-1]
        for first in range(0, len(others), step):
            together = [self._evict(*victim, preemptor, node) for victim in others[first : first + step]]
            evicted = all(await asyncio.gather(*together))
            if not evicted:
                break
        if victims and evicted:
            self._busy[uid] = victims[-1][0].uid
            evicted = await self._evict(*victims[-1], preemptor, node)
        self._busy.pop(uid, None)
        for member in getattr(preemptor, "members", (uid,)):
            self._end(member, cleared and evicted)

    def _end(self, uid: str, is_complete: bool) -> None:
        if is_complete:
            self._on_over(uid)
        else:
            # A victim that was not deleted will cause no event: retry now.
            self._activate(uid)

    async def _clear_lower(self, preemptor: Beneficiary, node: str, clears: Collection[str] | None) -> bool:
        """Clear the nominations of lower pods to the node; False when one could not be."""
        cleared = True
        if self._policy.clearLowerNominations == "never":
            return cleared
        for lower in [one for one in self._cluster.nominator.on(node) if one.priority < preemptor.priority]:
            if clears is None or lower.uid in clears:
                cleared = await self._reporter.clear_nomination(lower.pod) and cleared
        return cleared

    async def _evict(self, victim: PodInfo, seen: core_v1_pb2.Pod, preemptor: Beneficiary, node: str) -> bool:
        """Turn a victim away if it is not bound yet, else mark and delete it; False when that failed."""
        started_ns = self._env.clock.now_ns()
        ok = True
        rejected = self._turn_away(victim.uid)
        preempted = True
        if not rejected:
            try:
                patch = self._disruption_patch(seen, preemptor)
                if patch is not None:
                    await retries.status_patch(self._env, self._api, "pods", victim.name, victim.namespace, patch)
                # As in Kubernetes without the UID: a late request deletes whatever pod has the name now.
                await self._api.delete("pods", victim.name, victim.namespace)
            except NotFound:
                preempted = False
            except ApiError:
                preempted = ok = False
        if preempted:
            self._reporter.preempted(victim.pod, preemptor.pod, node, kind_of(preemptor), deleted=not rejected)
        self._env.log(
            VictimDeleted(
                pod=victim.key,
                uid=victim.uid,
                by=preemptor.key,
                by_uid=preemptor.uid,
                node=node,
                start=started_ns,
                ok=ok,
                how="rejected" if rejected else "deleted",
            ),
        )
        return ok

    def _disruption_patch(self, victim: core_v1_pb2.Pod, preemptor: Beneficiary) -> Mapping[str, Any] | None:
        scheduler = preemptor.pod.spec.schedulerName
        message = f"{scheduler}: preempting to accommodate a higher priority {kind_of(preemptor)}"
        now_unix_ns = self._env.clock.unix_ns()
        conditions, generation = victim.status.conditions, victim.metadata.generation
        return meta.condition_patch(
            conditions, DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, message, now_unix_ns, generation
        )
