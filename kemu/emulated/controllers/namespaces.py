"""The actor ``controller/namespace``: empties namespaces that are being deleted, and then lets them go.

Pods are deleted first; the other kinds follow when no pod is left. As long as something remains it looks again, the
sooner the less the pods' grace periods ask for. The namespace's conditions say what remains. Mirrors
``pkg/controller/namespace`` and its ``deletion``; that nothing new is created in the namespace is the admission plugin
NamespaceLifecycle's work.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kemu import errors
from kemu.emulated.client import informers, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import custom_kinds, meta, resources
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.validation import finalizers
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import NamespaceEmptied

WORKERS = 10
"""``ConcurrentNamespaceSyncs``."""
GRACE_S = 5.0
"""From the event to the sync: other API servers may still accept objects (``namespaceDeletionGracePeriod``)."""
FINALIZER_ESTIMATE_S = 15
"""How long a finalizer is taken to need."""

_FAILURE, _REMAINING, _FINALIZERS = (
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
)
_FINE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (_FAILURE, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    (_REMAINING, "ContentRemoved", "All content successfully removed"),
    (_FINALIZERS, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)
"""The conditions, with reason and message when there is nothing to say."""


@dataclass
class _Totals:
    """What one look has found."""

    estimate_s: int = 0
    remaining: dict[str, int] = field(default_factory=dict)
    """Objects by qualified kind."""
    held: Counter[str] = field(default_factory=Counter)
    """Objects by finalizer."""
    failures: list[str] = field(default_factory=list)


class NamespaceController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.namespaces:NamespaceController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, max_delay_s=60.0, name="namespace")
        self._namespaces: informers.Informer[core_v1_pb2.Namespace] = informers.Informer(
            self.client,
            "namespaces",
            handler=informers.Callbacks(self._changed, lambda old, new: self._changed(new)),
        )

    async def run(self) -> None:
        await self.begin(self._namespaces)
        await self.work(self.queue, self._sync, WORKERS)

    def _changed(self, namespace: core_v1_pb2.Namespace) -> None:
        if namespace.metadata.HasField("deletionTimestamp"):
            self.queue.add_after(namespace.metadata.name, GRACE_S + self.lag_s())

    async def _sync(self, name: str) -> bool:
        """``namespacedResourcesDeleter.Delete``. Raises ApiError to be called again; True: something remains."""
        if name not in self._namespaces.store:
            return False
        try:
            namespace = await self.client.get("namespaces", name)
            if not namespace.metadata.HasField("deletionTimestamp"):
                return False
            namespace = await self._insist(namespace, self._mark)
        except errors.NotFound:
            return False
        if not namespace.metadata.HasField("deletionTimestamp") or not namespace.spec.finalizers:
            return False
        totals = await self._empty(namespace)
        self.env.log(
            NamespaceEmptied(
                namespace=name, remaining=dict(sorted(totals.remaining.items())), estimate_s=totals.estimate_s
            ),
        )
        if totals.failures:
            raise errors.InternalError("; ".join(totals.failures))
        if totals.estimate_s > 0:
            self.queue.add_after(name, totals.estimate_s // 2 + 1)
            return True
        with contextlib.suppress(errors.NotFound):
            await self._insist(namespace, self._finalize)
        return False

    async def _insist(
        self,
        namespace: core_v1_pb2.Namespace,
        write: Callable[[core_v1_pb2.Namespace], Awaitable[core_v1_pb2.Namespace]],
    ) -> core_v1_pb2.Namespace:
        """Repeat a write that meets conflicts, unless the namespace is another now (``retryOnConflictError``)."""
        uid = namespace.metadata.uid
        while True:
            try:
                return await write(namespace)
            except errors.Conflict:
                namespace = await self.client.get("namespaces", namespace.metadata.name)
                if namespace.metadata.uid != uid:
                    raise

    async def _mark(self, namespace: core_v1_pb2.Namespace) -> core_v1_pb2.Namespace:
        if not namespace.metadata.HasField("deletionTimestamp") or namespace.status.phase == "Terminating":
            return namespace
        marked = meta.copied(namespace)
        marked.status.phase = "Terminating"
        return await self.client.update_status(marked)

    async def _finalize(self, namespace: core_v1_pb2.Namespace) -> core_v1_pb2.Namespace:
        finalized = meta.copied(namespace)
        kept = sorted({one for one in namespace.spec.finalizers if one != finalizers.KUBERNETES})
        del finalized.spec.finalizers[:]
        finalized.spec.finalizers.extend(kept)
        return await self.client.update(finalized, "finalize")

    # --- the contents ------------------------------------------------------------------------------------------------

    async def _empty(self, namespace: core_v1_pb2.Namespace) -> _Totals:
        """``deleteAllContent``."""
        totals = _Totals()
        await self._empty_of(resources.BY_PLURAL["pods"], namespace, totals)
        if totals.remaining:
            # The others follow when the pods are gone.
            await self._report(namespace, _Totals(failures=totals.failures))
            return totals
        for row in resources.RESOURCES:
            if row.namespaced and row.plural != "pods":
                await self._empty_of(row, namespace, totals)
        for custom in await self._custom_kinds():
            await self._empty_of(custom, namespace, totals)
        await self._report(namespace, totals)
        return totals

    async def _custom_kinds(self) -> list[resources.Resource]:
        """Those whose objects have a namespace, each in its preferred version."""
        found: list[resources.Resource] = []
        for obj in (await self.client.list(custom_kinds.DEFINITIONS, resource_version="0")).items:
            rows = custom_kinds.rows(cast(CustomResourceDefinition, obj))
            if rows:
                row = rows[custom_kinds.by_priority(list(rows))[0]]
                if row.namespaced:
                    found.append(row)
        return found

    async def _empty_of(self, row: resources.Resource, namespace: core_v1_pb2.Namespace, totals: _Totals) -> None:
        """``deleteAllContentForGroupVersionResource``."""
        name = namespace.metadata.name
        try:
            estimate_s = await self._estimate_s(namespace) if row.plural == "pods" else 0
            await self.client.delete_collection(row.plural, name, propagation_policy="Background")
            left = (await self.client.list(row.plural, name)).items
        except errors.ApiError as error:
            totals.failures.append(error.message)
            return
        if not left:
            return
        held = Counter(finalizer for obj in left for finalizer in obj.metadata.finalizers)
        if not estimate_s and held:
            estimate_s = FINALIZER_ESTIMATE_S
        elif not estimate_s:
            version = row.api_version.rpartition("/")[2]
            what = f"{row.group}/{version}, Resource={row.collection}"
            totals.failures.append(f"unexpected items still remain in namespace: {name} for gvr: {what}")
        totals.estimate_s = max(totals.estimate_s, estimate_s)
        totals.remaining[f"{row.collection}.{row.group}"] = len(left)
        totals.held += held

    async def _estimate_s(self, namespace: core_v1_pb2.Namespace) -> int:
        """The longest grace period of its pods, unless so much time has passed (``estimateGracefulTermination``)."""
        pods = cast(list[core_v1_pb2.Pod], (await self.client.list("pods", namespace.metadata.name)).items)
        longest_s = max(
            (pod.spec.terminationGracePeriodSeconds for pod in pods if not pod_phases.is_terminal(pod)), default=0
        )
        passed_ns = self.unix_ns() - meta.unix_ns(namespace.metadata.deletionTimestamp)
        return 0 if passed_ns >= longest_s * SECOND_NS else int(longest_s)

    async def _report(self, namespace: core_v1_pb2.Namespace, totals: _Totals) -> None:
        """The conditions (``namespaceConditionUpdater``). That they cannot be written stops nothing."""
        status = meta.copied(namespace)
        found = _findings(totals)
        changed = [
            _set(status.status.conditions, kind, *found.get(kind, ("False", reason, message)), self.unix_ns())
            for kind, reason, message in _FINE
        ]
        if any(changed):
            try:
                namespace.CopyFrom(await self.client.update_status(status))
            except errors.ApiError:
                return


def _findings(totals: _Totals) -> dict[str, tuple[str, str, str]]:
    """Conditions that are True: status, reason and message."""
    found = {}
    if totals.failures:
        texts = ", ".join(sorted(totals.failures))
        what = f"Failed to delete all resource types, {len(totals.failures)} remaining: {texts}"
        found[_FAILURE] = "True", "ContentDeletionFailed", what
    if totals.remaining:
        texts = ", ".join(sorted(f"{kind} has {count} resource instances" for kind, count in totals.remaining.items()))
        found[_REMAINING] = "True", "SomeResourcesRemain", f"Some resources are remaining: {texts}"
    if totals.held:
        texts = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in totals.held.items()))
        what = f"Some content in the namespace has finalizers remaining: {texts}"
        found[_FINALIZERS] = "True", "SomeFinalizersRemain", what
    return found


def _set(
    conditions: meta.Conditions[core_v1_pb2.NamespaceCondition],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now_ns: int,
) -> bool:
    return meta.set_condition(conditions, kind, status, reason, message, now_ns)
