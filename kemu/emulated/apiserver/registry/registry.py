"""What a request that changes something does, for every kind: create, update, patch, delete.

As kube-apiserver does (``registry/generic``, ``storage/etcd3``), a change is computed from what the watch cache has and
written only if the store still has the same; if not it is computed anew from what the store has. A refusal that was
based on the cache is checked against the store before it is believed. Evictions, bindings and scales are in modules of
their own beside this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterable, Sequence
from functools import lru_cache
from types import CoroutineType
from typing import Any

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors, request_warnings
from kemu.emulated.apiserver.admission import Chain
from kemu.emulated.apiserver.admission.external.attributes import Asking
from kemu.emulated.apiserver.admission.services import Services
from kemu.emulated.apiserver.custom import conversions
from kemu.emulated.apiserver.lives import Lives
from kemu.emulated.apiserver.registry import applies, deletions, entries, options, strategies
from kemu.emulated.apiserver.registry.applies import Writer
from kemu.emulated.apiserver.registry.deletions import Deletion
from kemu.emulated.apiserver.registry.kinds import Kinds
from kemu.emulated.apiserver.registry.patching import patches
from kemu.emulated.apiserver.registry.strategies import Strategy
from kemu.emulated.apiserver.registry.turns import Turns
from kemu.emulated.apiserver.storage import Entry, Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.fields import refusals
from kemu.emulated.objects.validation import causes
from kemu.emulated.objects.wire import shared_objects
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import Env

PODS, SERVICES = resources.BY_PLURAL["pods"], resources.BY_PLURAL["services"]

ITSELF = Writer("kube-apiserver", True)
"""The server writes on its own behalf."""

GENERATED_NAME_ATTEMPTS = 8
CREATE_ATTEMPTS = 5
"""Create attempts of an apply that finds no object and cannot create one because another client is faster."""
GENERATED_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and similar digits, so that no words result."""
GENERATED_LENGTH = 5
LONGEST_GENERATED_BASE = 63 - GENERATED_LENGTH

Changed = bytes | None | Coroutine[Any, Any, bytes | None]
Transform = Callable[[Strategy, Entry, Any], Changed]
"""(strategy, what is there, argument) → what shall be there; None: nothing; a coroutine where others are asked first.
Raises ApiError to refuse."""


class Removed(bytes):
    """What a :data:`Transform` returns that removes the object: what the answer shows."""

    __slots__ = ()


Confirmation = Callable[[Entry, bytes], Awaitable[None]]
"""(what is there, what shall be there): the last word before a write. Raises ApiError to refuse."""


class Registry:
    """The verbs that write. All raise :class:`kemu.errors.ApiError`; then nothing was changed, except perhaps after
    :class:`kemu.errors.ServiceUnavailable`."""

    def __init__(
        self,
        env: Env,
        storage: Storage,
        cache: WatchCache,
        admission: Chain,
        kinds: Kinds,
    ) -> None:
        self.storage = storage
        self.cache = cache
        self.kinds = kinds
        self.turns = Turns()
        self._env = env
        self._random = env.random
        self._unix_ns = env.clock.unix_ns
        self._admission = admission
        self.services = Services(cache, env.random, self._create_itself, self.delete)
        self.lives: Lives | None = None
        """How pods live that do not say; None: a scenario states nothing."""
        self.refuses_unsimulated = True
        """Refuse what kemu does not simulate. Nothing depends on it where nothing acts on what is stored."""
        self.checks_statuses = True
        """Whether a status that is wrong is refused."""
        self.gates: Container[str] = ()
        """Feature gates that are on, of fields that are refused without them."""

    def unix_now_ns(self) -> int:
        """For timestamps in objects."""
        return self._env.clock.unix_ns()

    def strategy_of(self, where: api_pb2.Resource) -> Strategy:
        """Raises :class:`kemu.errors.NotFound`."""
        return strategies.STRATEGIES.get(where.resource) or self.kinds.strategy(where.resource, where.version)

    # --- create ------------------------------------------------------------------------------------------------------

    def create(
        self, plural: str, namespace: str, obj: KubernetesObject, by: Writer | None = None
    ) -> Coroutine[Any, Any, tuple[Entry, Any]]:
        """The new object, as stored and parsed. ``obj`` is changed on the way."""
        return self.create_of(strategies.find_strategy(plural), namespace, obj, by)

    def _create_itself(self, plural: str, namespace: str, obj: KubernetesObject) -> Awaitable[object]:
        return self.create(plural, namespace, obj, ITSELF)

    async def create_of(
        self, strategy: Strategy, namespace: str, obj: KubernetesObject, by: Writer | None
    ) -> tuple[Entry, Any]:
        """As :meth:`create`, of a kind that has been found."""
        resource = strategy.resource
        metadata = obj.metadata
        entries.place(resource, metadata, namespace)
        if len(metadata.ownerReferences) > 1:
            entries.drop_double_owners(metadata)
        attempts = 1
        is_generated = not metadata.name and bool(metadata.generateName)
        if is_generated:
            attempts = GENERATED_NAME_ATTEMPTS
            metadata.name = self._generate_name(metadata.generateName)
        key = resources.key(resource, metadata.namespace, metadata.name)
        turn = self.turns.take(key)
        if turn is not None:
            await self.turns.wait(key, turn)
        if by is not None and by.is_tracked:
            applies.tidy(resource, obj)
        taken: Sequence[str] = ()
        try:
            if strategy.custom is not None:
                await self.kinds.settle(strategy.custom, metadata.name)
                strategy.custom.complete(obj)
            unbuilt = refusals.in_object(obj, self.gates) if self.refuses_unsimulated else []
            defaults.apply(obj)
            if by is None or not by.is_tracked:
                metadata.ClearField("managedFields")
            elif by is not applies.APPLIED:
                applies.track(resource, "", obj, None, by, self._unix_ns())
            asking = self._admission.asks() if by is not None else None
            new_key = key
            if asking is None:
                asked = None
                await self._admission.create(resource, obj)
            else:
                asked = await self._admission.create_asking(asking, resource, obj, is_generated=is_generated)
                metadata = obj.metadata
                if strategy.custom is not None:
                    strategy.custom.complete(obj)
                new_key = resources.key(resource, metadata.namespace, metadata.name)
            if isinstance(obj, core_v1_pb2.Service):
                taken = await self.services.begin_create(obj)
            metadata.uid = self.new_uid()
            if self.lives is not None and isinstance(obj, core_v1_pb2.Pod):
                self.lives.give(obj)
            defaults.prepare_create(obj)
            if strategy.prepare_create is not None:
                strategy.prepare_create(obj)
            meta.set_time(metadata.creationTimestamp, self._unix_ns())
            if strategy.stamp is not None:
                strategy.stamp(obj, self._unix_ns())
            for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
                metadata.ClearField(field)
            problems = strategy.validate_create(obj) + unbuilt
            if problems:
                raise causes.error(obj, [*await self._admission.objections(resource, obj), *problems])
            if request_warnings.are_heard():
                for text in _warnings()("", obj, None):
                    request_warnings.warn(text)
            if asked is None:
                await self._admission.validate(resource, obj)
            else:
                await self._admission.validate_create_asking(asked, resource, obj)
            if metadata.resourceVersion:
                entries.refuse_revision(metadata.resourceVersion)
                metadata.resourceVersion = ""
            while True:
                value = obj.SerializeToString(deterministic=True)
                stored = value if strategy.custom is None else await strategy.custom.to_store(value)
                revision, current = await self.storage.swap(new_key, 0, stored)
                if revision:
                    entry = Entry(new_key, revision, stored)
                    return entry if strategy.custom is None else await strategy.custom.converted_entry(entry), obj
                attempts -= 1
                if attempts == 0:
                    break
                metadata.name = self._generate_name(metadata.generateName)
                new_key = resources.key(resource, metadata.namespace, metadata.name)
            await self.services.give_back(taken)
        except Exception:
            await self.services.give_back(taken)
            raise
        finally:
            self.turns.leave(key)
        error = errors.already_exists(resource, metadata.name, is_generated=bool(metadata.generateName))
        if current is not None and entries.parse(resource, current).metadata.HasField("deletionTimestamp"):
            error.message = f"object is being deleted: {error.message}"
        raise error

    def _generate_name(self, base: str) -> str:
        choose = self._random.randrange
        letters = GENERATED_LETTERS
        suffix = "".join([letters[choose(len(letters))] for _ in range(GENERATED_LENGTH)])
        return base[:LONGEST_GENERATED_BASE] + suffix

    def new_uid(self) -> str:
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    # --- update ------------------------------------------------------------------------------------------------------

    async def update(
        self,
        plural: str,
        namespace: str,
        obj: KubernetesObject,
        subresource: str = "",
        by: Writer | None = None,
        version: str = "",
    ) -> tuple[Entry, bool]:
        """Replace an object, or the part of it that a subresource is: each leaves the others' as they are.

        Returns it as it is now; and whether it is gone, because this took away its last finalizer. ``version``: of a
        custom kind, the one that the request speaks.
        """
        entry, gone, _ = await self.put(plural, namespace, obj, subresource, by, "", version)
        return entry, gone

    async def put(
        self,
        plural: str,
        namespace: str,
        obj: KubernetesObject,
        subresource: str,
        by: Writer | None,
        in_url: str,
        version: str = "",
    ) -> tuple[Entry, bool, bool]:
        """As :meth:`update`, and whether the object was created. ``in_url``: its name as the request says it beside the
        object (``checkName`` of ``endpoints/handlers``).
        """
        strategy = strategies.STRATEGIES.get(plural) or self.kinds.strategy(plural, version)
        resource = strategy.resource
        strategies.check_subresource(strategy, subresource)
        metadata = meta_v1_pb2.ObjectMeta()
        metadata.CopyFrom(obj.metadata)
        entries.place(resource, metadata, namespace)
        name = metadata.name
        entries.check_name(name, in_url)
        if not name:
            raise kemu_errors.BadRequest("the name of the object must be set")
        confirm = self._confirmation(resource, metadata.namespace, subresource)
        try:
            argument = obj, subresource, by, metadata.namespace
            found = await self.rewrite_in_turn(strategy, metadata.namespace, name, self._updated, argument, confirm)
            return *found, False
        except kemu_errors.NotFound:
            if not strategy.create_on_update or subresource:
                raise
            options.version_of_object(metadata.resourceVersion)
            if metadata.uid:
                key = resources.key(resource, metadata.namespace, name)
                raise errors.wrong_uid(resource, key, name, metadata.uid, "") from None
        if metadata.resourceVersion:
            # There is nothing that it could be the version of.
            fresh = type(obj)()
            fresh.CopyFrom(obj)
            fresh.metadata.ClearField("resourceVersion")
            obj = fresh
        return (await self.create_of(strategy, namespace, obj, by))[0], False, True

    async def write_status(self, plural: str, namespace: str, obj: KubernetesObject) -> int:
        """Replace the status of an object on the server's own behalf. Returns its new resource version."""
        entry, _ = await self.update(plural, namespace, obj, "status")
        return entry.revision

    def _updated(
        self, strategy: Strategy, entry: Entry, argument: tuple[KubernetesObject, str, Writer | None, str]
    ) -> Changed:
        obj, subresource, by, namespace = argument
        new = type(obj)()
        new.CopyFrom(obj)
        if new.metadata.namespace != namespace:
            entries.place(strategy.resource, new.metadata, namespace)
        return self.replaced(strategy, entry, new, subresource, by)

    def replaced(
        self,
        strategy: Strategy,
        entry: Entry,
        new: KubernetesObject,
        subresource: str,
        by: Writer | None,
        *,
        is_patch: bool = False,
        asks: bool = True,
        part: strategies.Subresource | None = None,
    ) -> Changed:
        """What stands in the store after ``new`` was sent as an update. ``new`` is changed on the way. ``by``: None for
        the server's own writes, which change nothing about who manages which fields. ``asks``: others have a say.
        ``part``: ``Subresource.alone``, if it is that."""
        resource = strategy.resource
        if strategy.custom is not None:
            strategy.custom.complete(new)
        if len(new.metadata.ownerReferences) > 1:
            entries.drop_double_owners(new.metadata, is_patch=is_patch)
        old = shared_objects.OBJECTS.parse(resource.message, entry.revision, entry.wire)
        self._check_preconditions(strategy, entry, old, new.metadata, is_patch=is_patch)
        if part is None:
            entries.keep_system_fields(new.metadata, old.metadata)
        if by is not None and by.is_tracked:
            applies.tidy(resource, new)
        is_tracked = bool(new.metadata.managedFields or old.metadata.managedFields)
        if is_tracked and by is None:
            entries.keep_managed_fields(new.metadata, old.metadata)
        tracked_by = by if is_tracked and by is not applies.APPLIED else None
        unbuilt: Sequence[Cause] = ()
        if subresource:
            if strategy.subresources[subresource].defaults or (by is not None and by.is_tracked):
                defaults.apply(new)
        else:
            if self.refuses_unsimulated:
                unbuilt = refusals.in_object(new, self.gates)
            defaults.apply(new)
        if tracked_by is not None:
            applies.track(resource, subresource, new, old, tracked_by, self._unix_ns())
        asking = self._admission.asks() if asks and by is not None else None
        if asking is not None:
            return self._replaced_asking(strategy, entry, new, old, subresource, is_tracked, unbuilt, asking)
        if isinstance(new, core_v1_pb2.Service) and not subresource:
            return self._replaced_service(strategy, entry, new, old, is_tracked, unbuilt)
        return self._completed(strategy, entry, new, old, subresource, is_tracked, unbuilt, part)

    async def _replaced_asking(
        self,
        strategy: Strategy,
        entry: Entry,
        new: KubernetesObject,
        old: KubernetesObject,
        subresource: str,
        is_tracked: bool,
        unbuilt: Sequence[Cause],
        asking: Asking,
    ) -> bytes:
        """The second part of :meth:`replaced`, where others have a say."""
        resource, admission = strategy.resource, self._admission

        def again() -> None:
            if subresource:
                admission.update_part(resource, subresource, new, old)
            if not subresource or strategy.subresources[subresource].defaults:
                admission.update(resource, new, old)

        new.metadata.resourceVersion = str(entry.revision)
        asked = await admission.update_asking(asking, resource, subresource, new, old, again=again)
        new.metadata.ClearField("resourceVersion")
        if strategy.custom is not None:
            strategy.custom.complete(new)
        if isinstance(new, core_v1_pb2.Service) and not subresource:
            await self.services.begin_update(new, old)
        value = self._completed(strategy, entry, new, old, subresource, is_tracked, unbuilt)
        await admission.validate_update_asking(asked, resource, subresource, new, old)
        return value

    async def _replaced_service(
        self,
        strategy: Strategy,
        entry: Entry,
        new: core_v1_pb2.Service,
        old: KubernetesObject,
        is_tracked: bool,
        unbuilt: Sequence[Cause],
    ) -> bytes:
        await self.services.begin_update(new, old)
        return self._completed(strategy, entry, new, old, "", is_tracked, unbuilt)

    def _completed(
        self,
        strategy: Strategy,
        entry: Entry,
        new: KubernetesObject,
        old: KubernetesObject,
        subresource: str,
        is_tracked: bool,
        unbuilt: Sequence[Cause],
        part: strategies.Subresource | None = None,
    ) -> bytes:
        """The last part of :meth:`replaced`: what the strategy and the server's own plugins make of it."""
        resource = strategy.resource
        if subresource:
            part = part or strategy.subresources[subresource]
            part.prepare(new, old)
            if part.stamp is not None:
                part.stamp(new, old, self._unix_ns())
            self._admission.update_part(resource, subresource, new, old)
            if part.defaults:
                self._admission.update(resource, new, old)
            validate = part.validate
        else:
            if strategy.has_status:
                strategies.copy_field(new, old, "status")
            self._admission.update(resource, new, old)
            if strategy.prepare_update is not None:
                strategy.prepare_update(new, old)
            if strategy.counts is not None and strategy.counts(new, old):
                new.metadata.generation = old.metadata.generation + 1
            validate = strategy.validate_update
        problems = validate(new, old) if self.checks_statuses or subresource != "status" else []
        if problems and strategy.custom is None and (complete := _with_defaults(old)) != old:
            problems = validate(new, complete)
        if problems or unbuilt:
            raise causes.error(new, [*problems, *unbuilt])
        if request_warnings.are_heard():
            for text in _warnings()(subresource, new, old):
                request_warnings.warn(text)
        value: bytes = new.SerializeToString(deterministic=True)
        if is_tracked and value != entry.value and applies.restore_times(new, old):
            # Unless something else has changed, the times have not either.
            restored = new.SerializeToString(deterministic=True)
            if restored == entry.value:
                value = restored
        return Removed(value) if deletions.ends_with(new, old) else value

    def _check_preconditions(
        self,
        strategy: Strategy,
        entry: Entry,
        old: KubernetesObject,
        sent: meta_v1_pb2.ObjectMeta,
        *,
        is_patch: bool,
    ) -> None:
        """UID and resource version in the metadata of an update are preconditions. Clears the resource version. A
        patch cannot change the UID: that is left to validation."""
        resource, name = strategy.resource, old.metadata.name
        wanted, uid = sent.uid, old.metadata.uid
        if wanted != uid and wanted and not is_patch and not self.has_uid(wanted, uid):
            raise errors.wrong_uid(resource, entry.key, name, wanted, uid)
        version = options.version_of_object(sent.resourceVersion) if sent.resourceVersion else None
        if version:
            if not self._has_version(version, entry.revision):
                raise errors.modified(resource, name)
        elif not strategy.unconditional_update:
            why = causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise causes.error_of_kind(resource.qualified, errors.named(resource), name, [why])
        sent.ClearField("resourceVersion")

    def has_uid(self, wanted: str, uid: str) -> bool:
        """Whether an object meets a precondition on its UID; "" for none."""
        return not wanted or wanted == uid

    def _has_version(self, wanted: int, revision: int) -> bool:
        """Whether an object meets a precondition on its resource version."""
        return wanted == revision

    # --- patch -------------------------------------------------------------------------------------------------------

    def patch(
        self, request: api_pb2.PatchRequest, warnings: list[str] | None = None, by: Writer | None = None
    ) -> Coroutine[Any, Any, tuple[Entry, bool]]:
        """As :meth:`update`. ``warnings``: gets those about fields that the kind does not have."""
        plural = request.resource.resource
        strategy = strategies.STRATEGIES.get(plural) or self.kinds.strategy(plural, request.resource.version)
        resource, name = strategy.resource, request.name
        if request.subresource not in strategy.subresources:
            strategies.check_subresource(strategy, request.subresource)
        namespace = entries.addressed(resource, request.resource.namespace, name)
        argument: Any
        if request.type == patches.MESSAGE:
            removed = entries.decode(resource, request.removed) if request.removed else None
            argument = request, (entries.decode(resource, request.patch), removed), by
        else:
            argument = request, patches.Json(request, warnings), by
        confirm = self._confirmation(resource, namespace, request.subresource)
        return self.rewrite_in_turn(strategy, namespace, name, self._patched, argument, confirm)

    def _patched(
        self, strategy: Strategy, entry: Entry, argument: tuple[api_pb2.PatchRequest, Any, Writer | None]
    ) -> Changed:
        """What is to be changed comes as JSON, or as two messages: what is set, and what is removed."""
        request, patch, by = argument
        resource = strategy.resource
        new = resource.message.FromString(entry.value)
        old_name, namespace, uid = new.metadata.name, new.metadata.namespace, new.metadata.uid
        wanted = request.preconditions
        if wanted.uid != uid and wanted.uid and not self.has_uid(wanted.uid, uid):
            raise errors.wrong_uid(resource, entry.key, old_name, wanted.uid, uid)
        if wanted.resource_version:
            new.metadata.resourceVersion = wanted.resource_version
        elif not strategy.unconditional_update or request.type == patches.JSON:
            new.metadata.resourceVersion = str(entry.revision)
        if request.type == patches.MESSAGE:
            if patch[1] is not None:
                patches.remove(new, patch[1])
            sent = patch[0]
            patches.merge_message(new, sent)
            part = strategy.subresources[request.subresource].alone if request.subresource else None
            if part is not None and (patch[1] is not None or sent.HasField("metadata") or sent.HasField("spec")):
                part = None
        else:
            part = None
            patch.apply(resource, new)
        if new.metadata.namespace != namespace:
            entries.place(resource, new.metadata, namespace)
        if new.metadata.name != old_name:
            raise kemu_errors.BadRequest(
                f"the name of the object ({new.metadata.name}) does not match the name on the URL ({old_name})"
            )
        is_patch = request.type != patches.MESSAGE
        return self.replaced(strategy, entry, new, request.subresource, by, is_patch=is_patch, part=part)

    # --- apply -------------------------------------------------------------------------------------------------------

    async def apply(self, request: api_pb2.PatchRequest, warnings: list[str]) -> tuple[Entry, bool, bool]:
        """As :meth:`patch`, and whether the object was created."""
        strategy = self.strategy_of(request.resource)
        resource, name = strategy.resource, request.name
        strategies.check_subresource(strategy, request.subresource)
        namespace = entries.addressed(resource, request.resource.namespace, name)
        wanted = applies.Apply(resource, request, self._unix_ns())
        warnings += wanted.warnings
        confirm = self._confirmation(resource, namespace, request.subresource)
        for attempt in range(CREATE_ATTEMPTS):
            try:
                found = await self.rewrite_in_turn(strategy, namespace, name, self._applied, (request, wanted), confirm)
                return *found, False
            except kemu_errors.NotFound:
                if request.subresource:
                    raise
            made = wanted.apply(None)
            wanted.check_name(name, made)
            if made.metadata.uid:
                why = (
                    f"uid mismatch: the provided object specified uid {made.metadata.uid},"
                    " and no existing object was found"
                )
                raise errors.conflict(resource, name, why)
            made.metadata.ClearField("resourceVersion")
            try:
                return (await self.create_of(strategy, namespace, made, applies.APPLIED))[0], False, True
            except kemu_errors.AlreadyExists:
                if attempt == CREATE_ATTEMPTS - 1:
                    raise
        raise AssertionError("an object neither is there nor can be created")

    def _applied(
        self, strategy: Strategy, entry: Entry, argument: tuple[api_pb2.PatchRequest, applies.Apply]
    ) -> Changed:
        request, wanted = argument
        old = entries.parse(strategy.resource, entry)
        old.metadata.resourceVersion = str(entry.revision)
        new = wanted.apply(old)
        wanted.check_name(request.name, new)
        entries.place(strategy.resource, new.metadata, request.resource.namespace)
        return self.replaced(strategy, entry, new, request.subresource, applies.APPLIED, is_patch=True)

    # --- delete ------------------------------------------------------------------------------------------------------

    async def delete(self, request: api_pb2.DeleteRequest) -> tuple[Entry, bool]:
        """The object as it is now, or its last state if it is gone; and whether it is gone."""
        strategy = self.strategy_of(request.resource)
        resource, name = strategy.resource, request.name
        namespace = entries.addressed(resource, request.resource.namespace, name)
        deletion = deletions.of_request(request)
        self._admission.delete(resource, name, namespace)
        deletions.check_name(resource, name)
        entry, gone = await self.rewrite_in_turn(strategy, namespace, name, self.deleted, deletion)
        if not deletion.in_steps or gone or strategy.grace_s is None:
            return entry, gone
        metadata = entries.parse(resource, entry).metadata
        if metadata.deletionGracePeriodSeconds or metadata.finalizers:
            return entry, False
        deletion.resource_version = ""
        try:
            return (await self.rewrite_in_turn(strategy, namespace, name, self.deleted, deletion))[0], True
        except kemu_errors.NotFound:
            return entry, True  # another client was faster

    def deleted(self, strategy: Strategy, entry: Entry, deletion: Deletion) -> Changed:
        """What stands in the store after a delete, None for nothing."""
        obj = entries.parse(strategy.resource, entry)
        self.check_deletion(strategy.resource, entry, obj.metadata, deletion)
        grace_s = self._grace_s(strategy, obj, deletion.grace_s)
        stays = deletions.delete(strategy, obj, deletion, grace_s, self._unix_ns())
        if stays is None:
            return entry.value
        asking = None if deletion.by_eviction else self._admission.asks()
        if asking is not None:
            return self._deleted_asking(strategy, entry, deletion, obj, stays=stays, asking=asking)
        return _left(strategy, entry, deletion, obj, stays=stays)

    async def _deleted_asking(
        self,
        strategy: Strategy,
        entry: Entry,
        deletion: Deletion,
        obj: KubernetesObject,
        *,
        stays: bool,
        asking: Asking,
    ) -> bytes | None:
        resource = strategy.resource
        old = shared_objects.OBJECTS.parse(resource.message, entry.revision, entry.wire)
        name = "" if asking.verb == "delete_collection" else old.metadata.name
        await self._admission.delete_asking(asking, resource, name, old)
        return _left(strategy, entry, deletion, obj, stays=stays)

    def _grace_s(self, strategy: Strategy, obj: KubernetesObject, wanted: int | None) -> int | None:
        """Seconds until the object may go; None for kinds that are removed at once. ``wanted``: what the request
        says."""
        return strategy.grace_s(obj, wanted) if strategy.grace_s is not None else None

    def check_deletion(
        self, resource: resources.Resource, entry: Entry, metadata: meta_v1_pb2.ObjectMeta, deletion: Deletion
    ) -> None:
        """Raises :class:`kemu.errors.Conflict` when a precondition fails."""
        if not self.has_uid(deletion.uid, metadata.uid):
            raise deletions.wrong_uid(resource, metadata.name, deletion.uid, metadata.uid)
        version = options.version_of_list(deletion.resource_version)
        if version is not None and not self._has_version(version, entry.revision):
            raise deletions.wrong_version(resource, metadata.name, version, entry.revision)

    # --- common ------------------------------------------------------------------------------------------------------

    def _confirmation(self, resource: resources.Resource, namespace: str, subresource: str) -> Confirmation | None:
        """What asks the admission plugins that have the last word on an update; None if there are none."""
        validators = self._admission.update_validators(resource, subresource, namespace)
        if not validators:
            return None

        async def confirm(entry: Entry, value: bytes) -> None:
            new, old = resource.message.FromString(value), entries.parse(resource, entry)
            for validator in validators:
                await validator.validate_update(resource, subresource, new, old)

        return confirm

    def rewrite_in_turn(
        self,
        strategy: Strategy,
        namespace: str,
        name: str,
        change: Transform,
        argument: Any,
        confirm: Confirmation | None = None,
        *,
        is_pure: bool = False,
    ) -> Coroutine[Any, Any, tuple[Entry, bool]]:
        """Take the turn, then :meth:`rewrite`. To be awaited at once."""
        key = resources.key(strategy.resource, namespace, name)
        turn = self.turns.take(key)
        if strategy.custom is not None:
            return self._rewrite_custom(strategy, key, name, change, argument, confirm, turn)
        rewriting = self.rewrite(
            strategy, key, name, change, argument, confirm, leaves=True, turn=turn, is_pure=is_pure
        )
        if strategy.resource is SERVICES and self.services.has_ranges:
            return self._with_addresses(rewriting)
        return rewriting

    async def rewrite(
        self,
        strategy: Strategy,
        key: bytes,
        name: str,
        change: Transform,
        argument: Any,
        confirm: Confirmation | None = None,
        *,
        leaves: bool = False,
        turn: asyncio.Future[None] | None = None,
        is_pure: bool = False,
    ) -> tuple[Entry, bool]:
        """Apply ``change`` to an object until no other write comes in between (``GuaranteedUpdate`` of kube-apiserver).

        Returns the object as it is now, or its last state when it is gone; and whether it is gone. The caller has the
        turn for ``key``, or waits for ``turn``; it ends with this if it ``leaves``. ``is_pure``: ``change`` judges by
        the entry and its argument alone, so it is not asked twice about one revision (``cachedUpdateErr``).
        """
        if turn is not None:
            # Turns.wait, inlined.
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self.turns.leave(key)
                raise
        storage = self.storage
        resource = strategy.resource
        entry = self.cache.collections[resource.plural].entries.get(key)
        certain = False
        refused: tuple[int, kemu_errors.ApiError] | None = None
        """By which revision ``change`` has refused, and why."""
        asked: tuple[int, bytes | None] | None = None
        """By which revision others were asked, and what came of it."""
        try:
            while True:
                if entry is None:
                    if certain:
                        raise errors.not_found(resource, name)
                    entry, certain = await storage.read(key), True
                    continue
                old_value = entry.value
                try:
                    if refused is not None and refused[0] == entry.revision:
                        raise refused[1]
                    value: Any = change(strategy, entry, argument)
                    if type(value) is CoroutineType:
                        # Nobody is asked twice about one revision.
                        is_pure = True
                        if asked is not None and asked[0] == entry.revision:
                            value.close()
                            value = asked[1]
                        else:
                            value = await value
                            asked = entry.revision, value
                    if confirm is not None and value is not None and (certain or value != old_value):
                        # Of an update that changes nothing, too, once it is certain.
                        await confirm(entry, value)
                except kemu_errors.ApiError as error:
                    if certain:
                        raise
                    value = old_value
                    if is_pure:
                        refused = entry.revision, error
                if value == old_value and type(value) is not Removed:
                    if certain:
                        return entry, False
                    # Refused, or nothing to do: by what the cache knows, which may be old.
                    entry, certain = await storage.read(key), True
                    continue
                if type(value) is Removed:
                    revision, current = await storage.swap(key, entry.revision, None)
                    if revision:
                        return Entry(key, entry.revision, value), True
                else:
                    revision, current = await storage.swap(key, entry.revision, value)
                    if revision:
                        return Entry(key, revision, old_value if value is None else value), value is None
                entry, certain = current, True
        finally:
            if leaves:
                if self.turns.waiting[key]:
                    self.turns.leave(key)
                else:  # inlined: nobody waits
                    del self.turns.waiting[key]

    async def _with_addresses(self, rewriting: Awaitable[tuple[Entry, bool]]) -> tuple[Entry, bool]:
        """Of a Service whose addresses are objects: those that it does not need go back."""
        with self.services.changing() as addresses:
            try:
                entry, gone = await rewriting
            except Exception:
                await self.services.give_back(addresses.taken)
                raise
        spec = core_v1_pb2.Service.FromString(entry.value).spec
        await self.services.give_back(spec.clusterIPs if gone else addresses.left)
        return entry, gone

    async def _rewrite_custom(
        self,
        strategy: Strategy,
        key: bytes,
        name: str,
        change: Transform,
        argument: Any,
        confirm: Confirmation | None,
        turn: asyncio.Future[None] | None,
    ) -> tuple[Entry, bool]:
        """As :meth:`rewrite`, of a custom kind: ``change`` gets, and gives, objects of the version of the request."""
        if turn is not None:
            await self.turns.wait(key, turn)
        row = strategy.custom
        entry = self.cache.collections[row.plural].entries.get(key)
        certain = False
        asked: tuple[int, bytes | kemu_errors.ApiError | None] | None = None
        """See :meth:`rewrite`; also why they have refused."""
        try:
            stored: bytes | None
            while True:
                if entry is None:
                    if certain:
                        raise errors.not_found(row, name)
                    entry, certain = await self.storage.read(key), True
                    continue
                shown = row.shown(entry) if row.converter is None else await row.converted_entry(entry)
                try:
                    if row.converter is None:
                        value: Any = change(strategy, shown, argument)
                    else:
                        value = await conversions.supplied(row.converter, change, strategy, shown, argument)
                    if type(value) is CoroutineType:
                        if asked is not None and asked[0] == entry.revision:
                            value.close()
                            if isinstance(asked[1], kemu_errors.ApiError):
                                raise asked[1]
                            value = asked[1]
                        else:
                            try:
                                value = await value
                            except kemu_errors.ApiError as error:
                                asked = entry.revision, error
                                raise
                            asked = entry.revision, value
                    if confirm is not None and value is not None and value != shown.value:
                        await confirm(shown, value)
                    # A delete that changes nothing does not store what is shown.
                    is_same = change == self.deleted and value == shown.value
                    stored = entry.value if is_same else None if value is None else await row.to_store(value)
                except kemu_errors.ApiError:
                    if certain:
                        raise
                    stored, value = entry.value, None
                if stored == entry.value and type(value) is not Removed:
                    if certain:
                        return shown, False
                    entry, certain = await self.storage.read(key), True
                    continue
                if type(value) is Removed:
                    revision, current = await self.storage.swap(key, entry.revision, None)
                    if revision:
                        return Entry(key, entry.revision, value), True
                else:
                    revision, current = await self.storage.swap(key, entry.revision, stored)
                    if revision and stored is None:
                        return Entry(key, revision, shown.value), True
                    if revision and stored is not None:
                        return await row.converted_entry(Entry(key, revision, stored)), False
                entry, certain = current, True
        finally:
            self.turns.leave(key)


@lru_cache(1)
def _warnings() -> Callable[[str, KubernetesObject, KubernetesObject | None], Iterable[str]]:
    """Nothing about warnings is imported before somebody can hear of them."""
    from kemu.emulated.objects.warnings import kinds

    return kinds.of


def _with_defaults(stored: KubernetesObject) -> KubernetesObject:
    """Also those that the version of kemu that stored it did not know: they are no change of an update."""
    complete = type(stored)()
    complete.CopyFrom(stored)
    defaults.apply(complete)
    return complete


def _left(strategy: Strategy, entry: Entry, deletion: Deletion, obj: KubernetesObject, *, stays: bool) -> bytes | None:
    """What a delete leaves of an object that it has changed."""
    if not stays and (not deletion.in_steps or strategy.grace_s is None):
        return None
    value: bytes = obj.SerializeToString(deterministic=True)
    return value if stays or value != entry.value else None
