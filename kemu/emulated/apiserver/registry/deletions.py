"""What a delete does to an object: grace period, finalizers, the moment in which it goes.

``rest.BeforeDelete`` and ``Store.updateForGracefulDeletionAndFinalizers`` of ``apiserver/pkg/registry``, and for
namespaces ``core/namespace/storage``. An object with finalizers stays, with a ``deletionTimestamp``, until a later
update takes the last of them away (:func:`ends_with`). Two finalizers are the garbage collector's: ``orphan`` and
``foregroundDeletion``, which the propagation policy of a delete sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.registry import strategies
from kemu.emulated.apiserver.registry.strategies import Strategy
from kemu.emulated.objects import custom_kinds, meta, resources
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes, finalizers
from kemu.emulated.objects.validation.small_groups import SYSTEM_PRIORITY_CLASSES
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS

BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
POLICIES = (FOREGROUND, BACKGROUND, ORPHAN)
_OWN = (finalizers.ORPHAN, finalizers.FOREGROUND)
"""The garbage collector's finalizers."""
_PRIORITY_CLASSES = resources.BY_PLURAL["priorityclasses"]
JOBS_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


def check_name(resource: Resource, name: str) -> None:
    """What nobody may delete by its name, whatever admission says (``REST.Delete`` of ``priorityclass/storage``)."""
    if resource is _PRIORITY_CLASSES and name in SYSTEM_PRIORITY_CLASSES:
        raise errors.forbidden(resource, name, "this is a system priority class and cannot be deleted")


class Deletion:
    """What a delete asks for."""

    __slots__ = ("by_eviction", "dry_run", "grace_s", "in_steps", "orphan", "policy", "resource_version", "uid")

    def __init__(self, grace_s: int | None, uid: str, resource_version: str, by_eviction: bool = False) -> None:
        self.grace_s = grace_s
        """None: the object's own."""
        self.uid = uid
        self.resource_version = resource_version
        self.by_eviction = by_eviction
        """The pod gets the condition that says so."""
        self.policy = ""
        """What becomes of the dependents; "": what finalizers or the kind say."""
        self.orphan: bool | None = None
        """The older form of it (``orphanDependents``)."""
        self.dry_run = False
        self.in_steps = False
        """What goes is marked before, in a write of its own."""


def of_request(request: api_pb2.DeleteRequest) -> Deletion:
    """Raises :class:`kemu.errors.Invalid` (``ValidateDeleteOptions``)."""
    grace_s = request.grace_period_seconds if request.HasField("grace_period_seconds") else None
    wanted = request.preconditions
    deletion = Deletion(grace_s, wanted.uid, wanted.resource_version)
    deletion.in_steps = request.in_steps
    if request.propagation_policy or request.dry_run or request.HasField("orphan_dependents"):
        deletion.policy = request.propagation_policy
        deletion.orphan = request.orphan_dependents if request.HasField("orphan_dependents") else None
        found = []
        if deletion.orphan is not None and deletion.policy:
            why = "orphanDependents and deletionPropagation cannot be both set"
            found.append(causes.invalid("propagationPolicy", deletion.policy, why))
        if deletion.policy and deletion.policy not in POLICIES:
            found.append(causes.not_supported("propagationPolicy", deletion.policy, (*POLICIES, "nil")))
        found += causes.check_dry_run(request.dry_run)
        if found:
            raise causes.error_of_options("DeleteOptions", found)
        deletion.dry_run = bool(request.dry_run)
    return deletion


def warnings(request: api_pb2.DeleteRequest) -> list[str]:
    """What a client is told that did not say what becomes of the dependents (``batch/job/storage``)."""
    is_silent = not request.propagation_policy and not request.HasField("orphan_dependents")
    return [JOBS_WARNING] if is_silent and request.resource.resource == "jobs" else []


def wrong_uid(resource: Resource, name: str, wanted: str, uid: str) -> kemu_errors.Conflict:
    """A precondition of a delete fails."""
    if resource.plural == "namespaces":
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        return errors.conflict(resource, name, why)
    why = (
        f"the UID in the precondition ({wanted}) does not match the UID in record ({uid}). "
        "The object might have been deleted and then recreated"
    )
    return errors.conflict_of_kind(resource, name, why)


def wrong_version(resource: Resource, name: str, wanted: int, revision: int) -> kemu_errors.Conflict:
    """A precondition of a delete fails."""
    if resource.plural == "namespaces":
        why = (
            f"Precondition failed: ResourceVersion in precondition: {wanted}, "
            f"ResourceVersion in object meta: {revision}"
        )
        return errors.conflict(resource, name, why)
    why = (
        f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record "
        f"({revision}). The object might have been modified"
    )
    return errors.conflict_of_kind(resource, name, why)


def delete(
    strategy: Strategy, obj: KubernetesObject, deletion: Deletion, grace_s: int | None, now_ns: int
) -> bool | None:
    """Make ``obj`` what it is after a delete, whose preconditions hold. True: it stays, changed; False: it goes;
    None: nothing changes.

    ``grace_s``: how long it has when it is deleted now for the first time; None for kinds that know no grace.
    """
    if type(obj) is core_v1_pb2.Namespace:
        if not obj.metadata.HasField("deletionTimestamp"):
            _terminate(obj, deletion, now_ns)
            return True
        if obj.spec.finalizers:
            return None
    metadata = obj.metadata
    if type(obj) is CustomResourceDefinition and not metadata.HasField("deletionTimestamp"):
        _end_kind(obj, now_ns)
        return True
    graceful = False
    if metadata.HasField("deletionTimestamp"):
        given_s = metadata.deletionGracePeriodSeconds
        if grace_s is not None and given_s:
            if deletion.grace_s is None or not _shorten(metadata, deletion.grace_s, given_s, now_ns // SECOND_NS):
                return None
            graceful = True
    elif grace_s is not None:
        metadata.deletionTimestamp.seconds = now_ns // SECOND_NS + grace_s
        metadata.deletionGracePeriodSeconds = grace_s
        if metadata.generation:
            metadata.generation += 1
        if deletion.by_eviction:
            conditions = cast(core_v1_pb2.Pod, obj).status.conditions
            reason, message = "EvictionByEvictionAPI", "Eviction API: evicting"
            meta.set_condition(conditions, "DisruptionTarget", "True", reason, message, now_ns)
        graceful = True
    changed = _for_garbage_collector(strategy, metadata.finalizers, deletion)
    if changed is not None:
        del metadata.finalizers[:]
        metadata.finalizers.extend(changed)
    if not metadata.finalizers:
        return graceful and metadata.deletionGracePeriodSeconds > 0
    if not graceful:
        _mark(metadata, now_ns // SECOND_NS)
    return True


def _shorten(metadata: meta_v1_pb2.ObjectMeta, wanted_s: int, given_s: int, now_s: int) -> bool:
    """What is being deleted can only be deleted sooner; whether it is. A negative period means one second."""
    grace_s = wanted_s if wanted_s >= 0 else 1
    if grace_s >= max(given_s, 1):
        return False
    moved_s = metadata.deletionTimestamp.seconds + grace_s - given_s
    if moved_s < now_s:
        # The whole period is over, but who asked for one still expects it to be ended.
        moved_s, grace_s = now_s, min(grace_s, 1)
    metadata.deletionTimestamp.seconds = moved_s
    metadata.deletionGracePeriodSeconds = grace_s
    return True


def _mark(metadata: meta_v1_pb2.ObjectMeta, now_s: int) -> None:
    """``markAsDeleting``: an object that only its finalizers keep."""
    if not metadata.HasField("deletionTimestamp"):
        if metadata.generation:
            metadata.generation += 1
        metadata.deletionTimestamp.seconds = now_s
    elif metadata.deletionTimestamp.seconds > now_s:
        metadata.deletionTimestamp.seconds = now_s
    metadata.deletionGracePeriodSeconds = 0


def _terminate(namespace: core_v1_pb2.Namespace, deletion: Deletion, now_ns: int) -> None:
    """The first delete of a namespace: the namespace controller empties it and finalizes it. It has no grace period."""
    metadata = namespace.metadata
    metadata.deletionTimestamp.seconds = now_ns // SECOND_NS
    namespace.status.phase = "Terminating"
    names = metadata.finalizers
    orphan, foreground = finalizers.ORPHAN in names, finalizers.FOREGROUND in names
    if deletion.orphan is not None:
        orphan, foreground = deletion.orphan, not deletion.orphan
    elif deletion.policy:
        orphan, foreground = deletion.policy == ORPHAN, deletion.policy == FOREGROUND
    for name, wanted in ((finalizers.ORPHAN, orphan), (finalizers.FOREGROUND, foreground)):
        if wanted and name not in names:
            names.append(name)
        elif not wanted and name in names:
            names.remove(name)


def _end_kind(definition: CustomResourceDefinition, now_ns: int) -> None:
    """The first delete of a definition: its objects go first (``customresourcedefinition/etcd.go``)."""
    metadata = definition.metadata
    metadata.deletionTimestamp.seconds = now_ns // SECOND_NS
    if custom_kinds.CLEANUP not in metadata.finalizers:
        metadata.finalizers.append(custom_kinds.CLEANUP)
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    conditions, kind = definition.status.conditions, custom_kinds.TERMINATING
    meta.set_condition(conditions, kind, "True", "InstanceDeletionPending", message, now_ns)


def _for_garbage_collector(strategy: Strategy, names: Sequence[str], deletion: Deletion) -> list[str] | None:
    """``deletionFinalizersForGarbageCollection``: the finalizers as they shall be; None: as they are."""
    default = strategy.dependents
    orphan = foreground = False
    if default == strategies.UNSUPPORTED:
        pass
    elif deletion.orphan is not None:
        orphan = deletion.orphan
    elif deletion.policy:
        orphan, foreground = deletion.policy == ORPHAN, deletion.policy == FOREGROUND
    else:
        own = [one for one in names if one in _OWN]
        orphan = own[0] == finalizers.ORPHAN if own else default == strategies.ORPHANED
        foreground = bool(own) and own[0] == finalizers.FOREGROUND
    if not names and not orphan and not foreground:
        return None
    wanted = [one for one in names if one not in _OWN]
    if orphan:
        wanted.append(finalizers.ORPHAN)
    if foreground:
        wanted.append(finalizers.FOREGROUND)
    return None if sorted(wanted) == sorted(names) else wanted


def ends_with(new: KubernetesObject, old: KubernetesObject) -> bool:
    """Whether an update from ``old`` to ``new`` removes the object (``ShouldDeleteDuringUpdate``).

    It does if the object was to be deleted, its grace period was over, and it has no finalizer left.
    """
    metadata = old.metadata
    if not metadata.HasField("deletionTimestamp") or metadata.deletionGracePeriodSeconds or new.metadata.finalizers:
        return False
    return type(new) is not core_v1_pb2.Namespace or not new.spec.finalizers


def refuse_collections(resource: Resource) -> None:
    """Raises :class:`kemu.errors.MethodNotAllowed` for kinds that cannot be deleted as a collection."""
    if resource.plural == "namespaces":
        raise kemu_errors.MethodNotAllowed("the server does not allow this method on the requested resource")
