"""What a request that changes something does, for every kind: create, update, patch, delete.

As kube-apiserver does (``registry/generic``, ``storage/etcd3``), a change is computed from what the watch cache has and
written only if the store still has the same; if not it is computed anew from what the store has. A refusal that was
based on the cache is checked against the store before it is believed. Evictions are in
:mod:`kemu.apiserver.registry.evictions`, bindings in :mod:`kemu.apiserver.registry.bindings`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from kemu import errors as kemu_errors
from kemu.apiserver import errors
from kemu.apiserver.admission import Chain
from kemu.apiserver.registry import patches, reads, strategies
from kemu.apiserver.registry.strategies import Strategy
from kemu.apiserver.registry.turns import Turns
from kemu.apiserver.storage import Entry, Storage
from kemu.apiserver.watch.cache import WatchCache
from kemu.k8s import core_v1_pb2
from kemu.objects import meta, resources, shared_objects
from kemu.objects.defaulting import defaults
from kemu.objects.fields import refusals
from kemu.objects.validation import causes, kinds
from kemu.runtime.env import SECOND_NS, Env
from kemu.v1 import api_pb2

PODS = resources.BY_PLURAL["pods"]

GENERATED_NAME_ATTEMPTS = 8
GENERATED_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and similar digits, so that no words result."""
GENERATED_LENGTH = 5
LONGEST_GENERATED_BASE = 63 - GENERATED_LENGTH

Transform = Callable[[Strategy, Entry, Any], bytes | None]
"""(strategy, what is there, argument) → what shall be there; None: nothing. Raises ApiError to refuse."""


class Deletion:
    """What a delete asks for."""

    __slots__ = ("by_eviction", "grace_s", "resource_version", "uid")

    def __init__(self, grace_s: int | None, uid: str, resource_version: str, by_eviction: bool = False) -> None:
        self.grace_s = grace_s
        """None: the object's own."""
        self.uid = uid
        self.resource_version = resource_version
        self.by_eviction = by_eviction
        """The pod gets the condition that says so."""


class Registry:
    """The verbs that write. All raise :class:`kemu.errors.ApiError`; then nothing was changed, except perhaps after
    :class:`kemu.errors.ServiceUnavailable`."""

    def __init__(
        self,
        env: Env,
        storage: Storage,
        cache: WatchCache,
        admission: Chain,
    ) -> None:
        self.storage = storage
        self.cache = cache
        self.turns = Turns()
        self._env = env
        self._random = env.random
        self._admission = admission

    def unix_now_ns(self) -> int:
        """For timestamps in objects."""
        return self._env.clock.unix_ns()

    # --- create ------------------------------------------------------------------------------------------------------

    async def create(self, plural: str, namespace: str, data: bytes) -> tuple[Entry, Any]:
        """The new object, as stored and parsed."""
        strategy = strategies.find_strategy(plural)
        resource = strategy.resource
        obj = decode(resource, data)
        metadata = obj.metadata
        if metadata.resourceVersion:
            raise kemu_errors.BadRequest("resourceVersion should not be set on objects to be created")
        place(resource, metadata, namespace)
        attempts = 1
        if not metadata.name and metadata.generateName:
            attempts = GENERATED_NAME_ATTEMPTS
            metadata.name = self._generate_name(metadata.generateName)
        key = resources.key(resource, metadata.namespace, metadata.name)
        turn = self.turns.take(key)
        if turn is not None:
            await self.turns.wait(key, turn)
        try:
            unbuilt = refusals.in_new(obj)
            defaults.apply(obj)
            await self._admission.create(resource, obj)
            defaults.prepare_create(obj)
            if strategy.prepare_create is not None:
                strategy.prepare_create(obj)
            metadata.uid = self._new_uid()
            meta.set_time(metadata.creationTimestamp, self.unix_now_ns())
            for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"):
                metadata.ClearField(field)
            problems = kinds.validate_create(obj) + unbuilt
            if problems:
                raise causes.error(obj, problems)
            await self._admission.validate(resource, obj)
            return await self._insert(strategy, obj, attempts), obj
        finally:
            self.turns.leave(key)

    async def _insert(self, strategy: Strategy, obj: Any, attempts: int) -> Entry:
        """``attempts``: how many generated names to try."""
        resource, metadata = strategy.resource, obj.metadata
        while True:
            key = resources.key(resource, metadata.namespace, metadata.name)
            value = obj.SerializeToString(deterministic=True)
            revision, current = await self.storage.swap(key, 0, value)
            if revision:
                return Entry(key, revision, value)
            attempts -= 1
            if attempts == 0:
                break
            metadata.name = self._generate_name(metadata.generateName)
        error = errors.already_exists(resource, metadata.name)
        if current is not None and parse(resource, current).metadata.HasField("deletionTimestamp"):
            error.message = f"object is being deleted: {error.message}"
        raise error

    def _generate_name(self, base: str) -> str:
        choose = self._random.randrange
        letters = GENERATED_LETTERS
        suffix = "".join([letters[choose(len(letters))] for _ in range(GENERATED_LENGTH)])
        return base[:LONGEST_GENERATED_BASE] + suffix

    def _new_uid(self) -> str:
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    # --- update ------------------------------------------------------------------------------------------------------

    async def update(self, plural: str, namespace: str, data: bytes, *, status: bool) -> Entry:
        """Replace an object, or (``status``) its status: each leaves the other's part as it is."""
        strategy = strategies.find_strategy(plural)
        resource = strategy.resource
        if status and not strategy.has_status:
            raise kemu_errors.NotFound("the server could not find the requested resource", name=f"{plural}/status")
        metadata = decode(resource, data).metadata
        place(resource, metadata, namespace)
        name = metadata.name
        if not name:
            raise kemu_errors.BadRequest("the name of the object must be set")
        change = self._updated_status if status else self._updated
        try:
            return (await self.rewrite_in_turn(strategy, metadata.namespace, name, change, data))[0]
        except kemu_errors.NotFound:
            if not strategy.create_on_update or metadata.resourceVersion:
                raise
        return (await self.create(plural, namespace, data))[0]

    def _updated(self, strategy: Strategy, entry: Entry, data: bytes) -> bytes | None:
        return self._replaced(strategy, entry, strategy.resource.message.FromString(data), False)

    def _updated_status(self, strategy: Strategy, entry: Entry, data: bytes) -> bytes | None:
        return self._replaced(strategy, entry, strategy.resource.message.FromString(data), True)

    def _replaced(self, strategy: Strategy, entry: Entry, new: Any, status: bool) -> bytes | None:
        """What stands in the store after ``new`` was sent as an update. ``new`` is changed on the way."""
        resource = strategy.resource
        old = shared_objects.OBJECTS.parse(resource.message, entry.revision, entry.wire)
        self._check_preconditions(strategy, entry, old, new.metadata)
        _keep_system_fields(new.metadata, old.metadata, strategy.has_generation)
        if status:
            _copy_field(new, old, "spec")
            if strategy.prepare_status is not None:
                strategy.prepare_status(new, old)
            problems = kinds.validate_status_update(new, old)
        else:
            unbuilt = refusals.in_change(new, old)
            defaults.apply(new)
            if strategy.has_status:
                _copy_field(new, old, "status")
            self._admission.update(resource, new, old)
            if strategy.has_generation and new.spec != old.spec:
                new.metadata.generation = old.metadata.generation + 1
            problems = kinds.validate_update(new, old) + unbuilt
        if problems:
            raise causes.error(new, problems)
        if _is_finished(new) and not _is_finished(old):
            return None
        value: bytes = new.SerializeToString(deterministic=True)
        return value

    def _check_preconditions(self, strategy: Strategy, entry: Entry, old: Any, sent: Any) -> None:
        """UID and resource version in the metadata of an update are preconditions. Clears the resource version."""
        resource, name = strategy.resource, old.metadata.name
        if not self.has_uid(sent.uid, old.metadata.uid):
            raise errors.wrong_uid(resource, entry.key, name, sent.uid, old.metadata.uid)
        version = reads.parse_version(sent.resourceVersion)
        if version:
            if not self._has_version(version, entry.revision):
                raise errors.modified(resource, name)
        elif not strategy.unconditional_update:
            raise causes.error(old, [causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")])
        sent.ClearField("resourceVersion")

    def has_uid(self, wanted: str, uid: str) -> bool:
        """Whether an object meets a precondition on its UID; "" for none."""
        return not wanted or wanted == uid

    def _has_version(self, wanted: int, revision: int) -> bool:
        """Whether an object meets a precondition on its resource version."""
        return wanted == revision

    # --- patch -------------------------------------------------------------------------------------------------------

    async def patch(self, request: api_pb2.PatchRequest) -> Entry:
        strategy = strategies.find_strategy(request.resource.resource)
        resource, name = strategy.resource, request.name
        if request.subresource not in ("", "status") or (request.subresource and not strategy.has_status):
            what = f"{resource.plural}/{request.subresource}"
            raise kemu_errors.NotFound("the server could not find the requested resource", name=what)
        namespace = addressed(resource, request.resource.namespace, name)
        argument: Any
        if request.type == patches.MESSAGE:
            removed = decode(resource, request.removed) if request.removed else None
            argument = request, (decode(resource, request.patch), removed)
        else:
            argument = request, patches.parse(request.patch)
        return (await self.rewrite_in_turn(strategy, namespace, name, self._patched, argument))[0]

    def _patched(self, strategy: Strategy, entry: Entry, argument: tuple[api_pb2.PatchRequest, Any]) -> bytes | None:
        """What is to be changed comes as JSON, or as two messages: what is set, and what is removed."""
        request, patch = argument
        resource = strategy.resource
        new = parse(resource, entry)
        old_name, uid = new.metadata.name, new.metadata.uid
        wanted = request.preconditions
        if not self.has_uid(wanted.uid, uid):
            raise errors.wrong_uid(resource, entry.key, old_name, wanted.uid, uid)
        if wanted.resource_version:
            new.metadata.resourceVersion = wanted.resource_version
        elif not strategy.unconditional_update:
            new.metadata.resourceVersion = str(entry.revision)
        if request.type == patches.MESSAGE:
            if patch[1] is not None:
                patches.remove(new, patch[1])
            patches.merge_message(new, patch[0])
        else:
            patches.apply(resource, new, patch, request.type)
        if new.metadata.name != old_name:
            raise kemu_errors.BadRequest(
                f"the name of the object ({new.metadata.name}) does not match the name on the URL ({old_name})"
            )
        return self._replaced(strategy, entry, new, request.subresource == "status")

    # --- delete ------------------------------------------------------------------------------------------------------

    async def delete(self, request: api_pb2.DeleteRequest) -> tuple[Entry, bool]:
        """The object as it is now, or its last state if it is gone; and whether it is gone."""
        strategy = strategies.find_strategy(request.resource.resource)
        resource, name = strategy.resource, request.name
        namespace = addressed(resource, request.resource.namespace, name)
        self._admission.delete(resource, name)
        grace_s = request.grace_period_seconds if request.HasField("grace_period_seconds") else None
        wanted = request.preconditions
        deletion = Deletion(grace_s, wanted.uid, wanted.resource_version)
        return await self.rewrite_in_turn(strategy, namespace, name, self.deleted, deletion)

    def deleted(self, strategy: Strategy, entry: Entry, deletion: Deletion) -> bytes | None:
        """``rest.BeforeDelete`` and what follows it: what stands in the store after a delete, None for nothing."""
        resource = strategy.resource
        obj = parse(resource, entry)
        metadata = obj.metadata
        self.check_deletion(resource, entry, metadata, deletion)
        now_s = self.unix_now_ns() // SECOND_NS
        if metadata.HasField("deletionTimestamp"):
            if not metadata.HasField("deletionGracePeriodSeconds"):
                return entry.value if _has_finalizers(obj) else None
            given_s = metadata.deletionGracePeriodSeconds
            # What is being deleted can only be deleted sooner. A negative period means one second.
            grace_s = 1 if deletion.grace_s is not None and deletion.grace_s < 0 else deletion.grace_s
            if grace_s is None or grace_s >= given_s:
                return entry.value
            metadata.deletionTimestamp.seconds += grace_s - given_s
            metadata.deletionGracePeriodSeconds = grace_s
        else:
            grace_s = self._grace_s(strategy, obj, deletion.grace_s)
            metadata.deletionTimestamp.seconds = now_s + grace_s
            metadata.deletionGracePeriodSeconds = grace_s
            if strategy.has_generation:
                metadata.generation += 1
            if resource.plural == "namespaces":
                obj.status.phase = "Terminating"
            if deletion.by_eviction:
                conditions = obj.status.conditions
                reason, message = "EvictionByEvictionAPI", "Eviction API: evicting"
                meta.set_condition(conditions, "DisruptionTarget", "True", reason, message, self.unix_now_ns())
        if grace_s == 0 and not _has_finalizers(obj):
            return None
        value: bytes = obj.SerializeToString(deterministic=True)
        return value

    def _grace_s(self, strategy: Strategy, obj: Any, wanted: int | None) -> int:
        """Seconds until the object may go; 0: at once. ``wanted``: what the request says."""
        return strategy.grace_s(obj, wanted) if strategy.grace_s is not None else 0

    def check_deletion(self, resource: resources.Resource, entry: Entry, metadata: Any, deletion: Deletion) -> None:
        """Raises :class:`kemu.errors.Conflict` when a precondition fails."""
        if not self.has_uid(deletion.uid, metadata.uid):
            why = (
                f"the UID in the precondition ({deletion.uid}) does not match the UID in record ({metadata.uid}). "
                "The object might have been deleted and then recreated"
            )
            raise errors.conflict(resource, metadata.name, why)
        version = reads.parse_version(deletion.resource_version)
        if version is not None and not self._has_version(version, entry.revision):
            why = (
                f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
                f"({entry.revision}). The object might have been modified"
            )
            raise errors.conflict(resource, metadata.name, why)

    # --- common ------------------------------------------------------------------------------------------------------

    async def rewrite_in_turn(
        self, strategy: Strategy, namespace: str, name: str, change: Transform, argument: Any
    ) -> tuple[Entry, bool]:
        """Take the turn, then :meth:`rewrite`."""
        key = resources.key(strategy.resource, namespace, name)
        turn = self.turns.take(key)
        if turn is not None:
            await self.turns.wait(key, turn)
        try:
            return await self.rewrite(strategy, key, name, change, argument)
        finally:
            self.turns.leave(key)

    async def rewrite(
        self, strategy: Strategy, key: bytes, name: str, change: Transform, argument: Any
    ) -> tuple[Entry, bool]:
        """Apply ``change`` to an object until no other write comes in between (``GuaranteedUpdate`` of kube-apiserver).

        Returns the object as it is now, or its last state when it is gone; and whether it is gone. The caller has the
        turn for ``key``.
        """
        storage = self.storage
        resource = strategy.resource
        entry = self.cache.collections[resource.plural].entries.get(key)
        certain = False
        while True:
            if entry is None:
                if certain:
                    raise errors.not_found(resource, name)
                entry, certain = await storage.read(key), True
                continue
            old_value = entry.value
            try:
                value = change(strategy, entry, argument)
            except kemu_errors.ApiError:
                if certain:
                    raise
                value = old_value
            if value == old_value:
                if certain:
                    return entry, False
                # Refused, or nothing to do: by what the cache knows, which may be old.
                entry, certain = await storage.read(key), True
                continue
            revision, current = await storage.swap(key, entry.revision, value)
            if revision:
                return Entry(key, revision, old_value if value is None else value), value is None
            entry, certain = current, True


def decode(resource: resources.Resource, data: bytes) -> Any:
    """Raises :class:`kemu.errors.BadRequest`."""
    try:
        return resource.message.FromString(data)
    except DecodeError as error:
        raise kemu_errors.BadRequest(f"the object is not a {resource.kind}: {error}") from None


def parse(resource: resources.Resource, entry: Entry) -> Any:
    """The object in an entry; changing it changes nothing else. Its resource version is empty."""
    return resource.message.FromString(entry.value)


def addressed(resource: resources.Resource, namespace: str, name: str) -> str:
    """The namespace of the object that a request names. Raises :class:`kemu.errors.BadRequest` if it is incomplete."""
    if not name:
        raise kemu_errors.BadRequest("name may not be empty")
    if not resource.namespaced:
        return ""
    if not namespace:
        raise kemu_errors.BadRequest("an empty namespace may not be set when a resource name is provided")
    return namespace


def place(resource: resources.Resource, metadata: Any, namespace: str) -> None:
    """Bring the namespace in an object and the one in its request together."""
    if not resource.namespaced:
        metadata.ClearField("namespace")
    elif not metadata.namespace:
        if not namespace:
            raise kemu_errors.BadRequest("an empty namespace may not be set during creation")
        metadata.namespace = namespace
    elif namespace and namespace != metadata.namespace:
        raise kemu_errors.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _keep_system_fields(new: Any, old: Any, has_generation: bool) -> None:
    """What only the server sets stays; what a client sent in its place is judged by validation."""
    for field in ("uid", "deletionGracePeriodSeconds"):
        if not new.HasField(field) and old.HasField(field):
            setattr(new, field, getattr(old, field))
    for field in ("creationTimestamp", "deletionTimestamp"):
        if not new.HasField(field) and old.HasField(field):
            getattr(new, field).CopyFrom(getattr(old, field))
    if has_generation:
        new.generation = old.generation
    new.ClearField("managedFields")
    new.ClearField("selfLink")


def _copy_field(new: Any, old: Any, field: str) -> None:
    if old.HasField(field):
        getattr(new, field).CopyFrom(getattr(old, field))
    else:
        new.ClearField(field)


def _has_finalizers(obj: Any) -> bool:
    return bool(obj.metadata.finalizers) or (type(obj) is core_v1_pb2.Namespace and bool(obj.spec.finalizers))


def _is_finished(obj: Any) -> bool:
    """Being deleted, its grace period over, and nobody wants to finalize it any more."""
    metadata = obj.metadata
    return (
        metadata.HasField("deletionTimestamp") and not metadata.deletionGracePeriodSeconds and not _has_finalizers(obj)
    )
