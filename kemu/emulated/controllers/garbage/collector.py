"""The actor ``controller/garbage-collector``: deletes objects whose owners are all gone.

It watches every kind (except Events and Leases) and keeps their :mod:`graph
<kemu.emulated.controllers.garbage.graphs>`. Before it acts it asks the API server for the object and for its owners. An
object that waits for its dependents (``foregroundDeletion``) goes when the last of those that block it is gone; one
that shall leave them (``orphan``) goes when they no longer refer to it. Mirrors ``pkg/controller/garbagecollector``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.garbage import graphs
from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.validation import finalizers
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject, CustomResourceDefinition
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import Named, OwnedDeleted, OwnedOrphaned, OwnerInvalid

WORKERS = 20
"""Workers of each queue (``ConcurrentGCSyncs``)."""
IGNORED = ("events", "leases", "flowschemas", "prioritylevelconfigurations", "apiservices")
"""Kinds that are neither watched nor collected. Kubernetes leaves out Events; Leases are renewed all the time, and
nothing that matters owns one. The others are only in clusters of ``kemu up``, which keep them."""
BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
_FINALIZER_TRIES = 4
_RETRY_S = 0.01


class _WrongScopeError(Exception):
    """An object without a namespace refers to an owner that has one: that never becomes right."""


class GarbageCollector(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.garbage.collector:GarbageCollector``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._to_delete: workqueues.WorkQueue[graphs.Node] = workqueues.WorkQueue(
            env, name="garbage_collector_attempt_to_delete"
        )
        self._to_orphan: workqueues.WorkQueue[graphs.Node] = workqueues.WorkQueue(
            env, name="garbage_collector_attempt_to_orphan"
        )
        self.graph = graphs.Graph(self._look, self._to_delete.add_rate_limited, self._to_orphan.add, self._complain)
        self._informers = [
            informers.Informer(self.client, row.plural, handler=self._monitor(row))
            for row in resources.RESOURCES
            if row.plural not in IGNORED
        ]
        self._custom: dict[str, tuple[CustomResource, informers.Informer[CustomObject]]] = {}
        """By name, the custom kinds that are watched, as their definitions say."""
        level = str(config.get("events", recorders.NOTABLE))
        self._recorder = recorders.Recorder(env, self.client, "garbage-collector-controller", "0", level)

    async def run(self) -> None:
        await self.begin(*self._informers)
        for number in range(WORKERS):
            self.env.spawn(self._work_on(self._to_orphan, self._set_free), f"orphan {number}")
            if number:
                self.env.spawn(self._work_on(self._to_delete, self._judge), f"collect {number}")
        await self._work_on(self._to_delete, self._judge)

    # --- kinds --------------------------------------------------------------------------------------------------------

    def _monitor(self, row: resources.Resource) -> _Monitor:
        if row.plural == custom_kinds.DEFINITIONS:
            return _Definitions(self.graph, row, self._watch_kind)
        return _Monitor(self.graph, row)

    def _watch_kind(self, name: str, definition: CustomResourceDefinition | None) -> None:
        """``resyncMonitors``: watch the custom kinds that are served. None: it is gone."""
        rows = custom_kinds.rows(definition) if definition is not None else {}
        known = self._custom.get(name)
        if not rows:
            if known is not None:
                del self._custom[name]
                known[1].stop()
            return
        row = rows[custom_kinds.by_priority(list(rows))[0]]
        if known is None:
            handler = _Monitor(self.graph, row)
            informer: informers.Informer[CustomObject] = informers.Informer(
                self.client, name, handler=handler, namespaced=row.namespaced
            )
            self._custom[name] = row, informer
            informer.start()
        else:
            self._custom[name] = row, known[1]

    def _row(self, kind: str, api_version: str) -> resources.Resource:
        """Raises NotFound for a kind that is not served: it may be, one day (``restMappingError``)."""
        group = api_version.rpartition("/")[0]
        row = resources.BY_KIND.get(kind)
        if row is not None and row.group == group:
            return row
        for custom, _ in self._custom.values():
            if custom.kind == kind and custom.group == group:
                return custom
        raise errors.NotFound(f"unable to get REST mapping for {api_version}/{kind}.", kind=kind)

    def _look(self, node: graphs.Node) -> None:
        self._to_delete.add_after(node, self.lag_s())

    async def _work_on(self, queue: workqueues.WorkQueue[graphs.Node], act: Callable[..., Any]) -> None:
        while True:
            node = await queue.get()
            try:
                if await act(node):
                    queue.forget(node)
                else:
                    queue.add_rate_limited(node)
            except errors.ApiError:
                queue.add_rate_limited(node)
            finally:
                queue.done(node)

    def _complain(self, node: graphs.Node, owner: graphs.Identity) -> None:
        identity = node.identity
        regarding = self._row(identity.kind, identity.api_version).message()
        if isinstance(regarding, CustomObject):
            regarding.apiVersion, regarding.kind = identity.api_version, identity.kind
        metadata: Any = regarding.metadata  # type: ignore[attr-defined]
        metadata.namespace, metadata.name, metadata.uid = identity.namespace, identity.name, identity.uid
        note = f'ownerRef {owner} does not exist in namespace "{identity.namespace}"'
        reason = "OwnerRefInvalidNamespace"
        self._recorder.event(regarding, recorders.WARNING, reason, reason, note)
        self.env.log(OwnerInvalid(**_named(identity), owner=f"{owner.kind} {owner.name}"))

    # --- what may have to be deleted ---------------------------------------------------------------------------------

    async def _judge(self, node: graphs.Node) -> bool:
        """``attemptToDeleteWorker``. False: look again later."""
        if node.virtual:
            known = self.graph.nodes.get(node.identity.uid)
            if known is None or not known.virtual:
                return True
        try:
            is_settled = await self._collect(node)
        except _WrongScopeError:
            return True
        # What was never seen by a watch is polled until it is seen, or known to be gone.
        return is_settled or not node.virtual

    async def _collect(self, node: graphs.Node) -> bool:
        """``attemptToDeleteItem``. Returns whether it was found to be gone. Raises ApiError to look again."""
        if node.being_deleted and not node.deleting_dependents:
            return False
        identity = node.identity
        latest = await self._find(identity)
        if latest is None:
            self.graph.is_gone(identity)
            return True
        if node.deleting_dependents:
            await self._wait_for_dependents(node)
            return False
        references = list(latest.metadata.ownerReferences)
        if not references:
            return False
        solid, dangling, waiting = await self._classify(node, references)
        if solid:
            if dangling or waiting:
                # What waits for its dependents must not wait for this one: it has another owner.
                await self._remove_owners(node, [*dangling, *waiting])
            return False
        policy = BACKGROUND
        if waiting and node.dependents:
            if any(dependent.deleting_dependents for dependent in node.dependents.values()):
                await self._unblock(node)
            policy = FOREGROUND
        elif finalizers.ORPHAN in latest.metadata.finalizers:
            policy = ORPHAN
        elif finalizers.FOREGROUND in latest.metadata.finalizers:
            policy = FOREGROUND
        try:
            await self._delete(identity, latest, policy)
        except errors.NotFound:
            self.graph.is_gone(identity)
            return True
        return False

    async def _wait_for_dependents(self, node: graphs.Node) -> None:
        """``processDeletingDependentsItem``."""
        blocking = node.blocking_dependents()
        if not blocking:
            await self._remove_finalizer(node, finalizers.FOREGROUND)
            return
        for dependent in blocking:
            if not dependent.deleting_dependents:
                self._look(dependent)

    async def _classify(
        self, node: graphs.Node, references: Sequence[meta_v1_pb2.OwnerReference]
    ) -> tuple[list[str], list[str], list[str]]:
        """UIDs of owners that are there, that are gone, and that wait for their dependents (``classifyReferences``)."""
        solid: list[str] = []
        dangling: list[str] = []
        waiting: list[str] = []
        for reference in references:
            owner = await self._find_owner(node, reference)
            if owner is None:
                dangling.append(reference.uid)
            elif owner.metadata.HasField("deletionTimestamp") and finalizers.FOREGROUND in owner.metadata.finalizers:
                waiting.append(reference.uid)
            else:
                solid.append(reference.uid)
        return solid, dangling, waiting

    async def _find_owner(self, node: graphs.Node, reference: meta_v1_pb2.OwnerReference) -> KubernetesObject | None:
        """``isDangling``: None if it is gone, or another object has its name."""
        namespace = node.identity.namespace
        cluster_wide = graphs.Identity(reference.kind, reference.apiVersion, "", reference.name, reference.uid)
        namespaced = cluster_wide._replace(namespace=namespace)
        if cluster_wide in self.graph.absent or namespaced in self.graph.absent:
            return None
        row = self._row(reference.kind, reference.apiVersion)
        if row.namespaced and not namespace:
            raise _WrongScopeError
        try:
            owner = await self.client.get(row.plural, reference.name, namespace if row.namespaced else "")
        except errors.NotFound:
            owner = None
        if owner is None or owner.metadata.uid != reference.uid:
            self.graph.absent.add(namespaced if row.namespaced else cluster_wide)
            return None
        return owner

    async def _find(self, identity: graphs.Identity) -> KubernetesObject | None:
        """The object as the API server has it; None if it is gone, or another has its name."""
        row = self._row(identity.kind, identity.api_version)
        if row.namespaced and not identity.namespace:
            raise _WrongScopeError
        try:
            found = await self.client.get(row.plural, identity.name, identity.namespace if row.namespaced else "")
        except errors.NotFound:
            return None
        return found if found.metadata.uid == identity.uid else None

    # --- writes ------------------------------------------------------------------------------------------------------

    async def _delete(self, identity: graphs.Identity, latest: KubernetesObject, policy: str) -> None:
        """Only if its owners are still the same (``deleteObject``)."""
        row = self._row(identity.kind, identity.api_version)
        namespace = identity.namespace if row.namespaced else ""
        version = latest.metadata.resourceVersion
        try:
            await self.client.delete(
                row.plural, identity.name, namespace, None, identity.uid, version, propagation_policy=policy
            )
        except errors.Conflict:
            live = await self.client.get(row.plural, identity.name, namespace)
            metadata = live.metadata
            if (
                metadata.uid != identity.uid
                or metadata.resourceVersion == version
                or list(metadata.ownerReferences) != list(latest.metadata.ownerReferences)
            ):
                raise
            await self.client.delete(
                row.plural, identity.name, namespace, None, identity.uid, propagation_policy=policy
            )
        self.env.log(OwnedDeleted(**_named(identity), policy=policy))

    async def _patch(self, node: graphs.Node, references: Sequence[Mapping[str, Any]]) -> None:
        identity = node.identity
        row = self._row(identity.kind, identity.api_version)
        namespace = identity.namespace if row.namespaced else ""
        if custom_kinds.is_custom(row.plural):
            await self._patch_custom(row, identity, namespace, references)
            return
        patch = {"metadata": {"ownerReferences": list(references)}}
        await self.client.patch(row.plural, identity.name, namespace, patch, type="strategic", uid=identity.uid)

    async def _patch_custom(
        self,
        row: resources.Resource,
        identity: graphs.Identity,
        namespace: str,
        references: Sequence[Mapping[str, Any]],
    ) -> None:
        """Custom kinds have no strategic patches: the whole list is written (``unblockOwnerReferencesJSONMergePatch``,
        ``deleteOwnerRefJSONMergePatch``)."""
        latest = await self.client.get(row.plural, identity.name, namespace)
        changes = {one["uid"]: one for one in references}
        kept = []
        for reference in latest.metadata.ownerReferences:
            change = changes.get(reference.uid)
            if change is None:
                kept.append(convert.to_json(reference))
            elif change.get("$patch") != "delete":
                kept.append({**convert.to_json(reference), **change})
        patch = {"metadata": {"resourceVersion": latest.metadata.resourceVersion, "ownerReferences": kept or None}}
        await self.client.patch(row.plural, identity.name, namespace, patch, uid=identity.uid)

    async def _remove_owners(self, node: graphs.Node, uids: Sequence[str]) -> None:
        await self._patch(node, [{"$patch": "delete", "uid": uid} for uid in uids])

    async def _unblock(self, node: graphs.Node) -> None:
        """Against circles of objects that wait for each other, its references no longer block."""
        blocking = [
            {
                "apiVersion": one.api_version,
                "kind": one.kind,
                "name": one.name,
                "uid": one.uid,
                "blockOwnerDeletion": False,
            }
            for one in node.owners
            if one.blocks
        ]
        await self._patch(node, blocking)

    async def _remove_finalizer(self, node: graphs.Node, finalizer: str) -> None:
        """Unless another client has written in between (``removeFinalizer``)."""
        identity = node.identity
        row = self._row(identity.kind, identity.api_version)
        namespace = identity.namespace if row.namespaced else ""
        for attempt in range(_FINALIZER_TRIES):
            try:
                metadata = (await self.client.get(row.plural, identity.name, namespace)).metadata
            except errors.NotFound:
                return
            kept = [one for one in metadata.finalizers if one != finalizer]
            if len(kept) == len(metadata.finalizers):
                return
            patch = {"metadata": {"resourceVersion": metadata.resourceVersion, "finalizers": kept}}
            try:
                await self.client.patch(row.plural, identity.name, namespace, patch)
            except errors.Conflict:
                if attempt == _FINALIZER_TRIES - 1:
                    raise
                await self.clock.sleep(_RETRY_S * 5**attempt)
                continue
            return

    # --- dependents that stay ----------------------------------------------------------------------------------------

    async def _set_free(self, owner: graphs.Node) -> bool:
        """``attemptToOrphanWorker``: the dependents stay without this owner, and then it may go."""
        failures: list[errors.ApiError] = []

        async def free(dependent: graphs.Node) -> None:
            try:
                await self._remove_owners(dependent, [owner.identity.uid])
            except errors.NotFound:
                return
            except errors.ApiError as error:
                failures.append(error)
                return
            text = f"{owner.identity.kind} {owner.identity.name}"
            self.env.log(OwnedOrphaned(**_named(dependent.identity), owner=text))

        await self.all([free(dependent) for dependent in list(owner.dependents.values())], "orphan")
        if failures:
            raise failures[0]
        await self._remove_finalizer(owner, finalizers.ORPHAN)
        return True


class _Monitor:
    """A handler for the objects of one kind."""

    def __init__(self, graph: graphs.Graph, row: resources.Resource) -> None:
        self._graph = graph
        self._api_version, self._kind = row.api_version, row.kind

    def on_add(self, obj: KubernetesObject) -> None:
        self._graph.put(self._api_version, self._kind, None, obj)

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        self._graph.put(self._api_version, self._kind, old, new)

    def on_delete(self, old: KubernetesObject) -> None:
        self._graph.remove(self._api_version, self._kind, old)


class _Definitions(_Monitor):
    """And tells which custom kinds there are."""

    def __init__(
        self,
        graph: graphs.Graph,
        row: resources.Resource,
        tell: Callable[[str, CustomResourceDefinition | None], None],
    ) -> None:
        super().__init__(graph, row)
        self._tell = tell

    def on_add(self, obj: KubernetesObject) -> None:
        super().on_add(obj)
        self._tell(obj.metadata.name, cast(CustomResourceDefinition, obj))

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        super().on_update(old, new)
        self._tell(new.metadata.name, cast(CustomResourceDefinition, new))

    def on_delete(self, old: KubernetesObject) -> None:
        super().on_delete(old)
        self._tell(old.metadata.name, None)


def _named(identity: graphs.Identity) -> Named:
    name = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
    return {"resource_kind": identity.kind, "name": name, "uid": identity.uid}
