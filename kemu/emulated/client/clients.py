"""Requests to the API server: one coroutine for each verb, batched on one ``Session`` stream.

How they travel, and what happens when the connection breaks, is in :mod:`kemu.emulated.client.sessions`. Watching is
done by informers (:mod:`kemu.emulated.client.informers`) over the one ``Watch`` stream of the client, or one for each
kind.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast, overload

from kemu.emulated import variants
from kemu.emulated.client import endpoints, sessions
from kemu.emulated.client.limits import Buckets, Rate, Rates
from kemu.emulated.client.watches import Watches
from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.k8s import (
    apps_v1_pb2,
    autoscaling_v1_pb2,
    batch_v1_pb2,
    coordination_v1_pb2,
    core_v1_pb2,
    policy_v1_pb2,
    storage_v1_pb2,
)
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject, CustomResourceDefinition
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import UnconditionalUpdate

ListResult = sessions.ListResult

SHARED, PER_KIND = "shared", "perKind"
"""On which Watch streams the kinds come that an actor informs itself about: on one, or on one each, as in client-go."""

M = TypeVar("M", bound=KubernetesObject)

_encode = json.JSONEncoder(separators=(",", ":")).encode

PATCH_TYPES = {
    "merge": api_pb2.PatchRequest.MERGE,
    "strategic": api_pb2.PatchRequest.STRATEGIC,
}


class Binding(NamedTuple):
    """One of a commit."""

    namespace: str
    name: str
    uid: str
    node: str
    node_generation: int | None = None
    """How many bindings the node must have counted (:mod:`kemu.emulated.objects.pods.bind_generations`); None: no
    matter."""


@functools.cache
def _seer(message: Hashable, shares: bool) -> Callable[[int, bytes], shared_objects.Seen]:
    """One for all clients. ``message``: a class of objects."""
    kind = cast(type[KubernetesObject], message)
    if shares:
        return functools.partial(shared_objects.OBJECTS.see, kind)
    return lambda revision, wire: shared_objects.seen(kind, wire)


class Client:
    """One actor's connection to an API server: to the first one, or, when that is lost, to another one.

    ``resource`` is always a plural (``pods``); methods return the object as it is after the request and raise
    :class:`kemu.errors.ApiError` subclasses. Connects at the first request.
    """

    __slots__ = ("_apart", "_session", "env", "servers", "shares", "watches")
    relists: ClassVar[bool] = True
    """Whether its informers list again when their watch cannot be resumed."""
    streams_lists: ClassVar[bool] = True
    """Whether its informers begin with a watch that brings the newest state (WatchListClient); False: with a list,
    which may show the past (``resourceVersion: "0"``)."""

    def __init__(
        self,
        env: Env,
        apiservers: str | Sequence[str] = "apiserver/0",
        deviations: Collection[str] = (),
        *,
        shares: bool = False,
        acts_as: str = "",
        limits: Rates | None = None,
        apart: bool = False,
    ) -> None:
        """``deviations``: variants of its parts (:mod:`kemu.emulated.variants`). ``shares``: its user never changes
        what informers have, or writes return (:mod:`kemu.emulated.objects.wire.shared_objects`). ``acts_as``: as which
        user it calls, as with ``kubectl --as``; only administrators may. ``limits``: how many requests a second it may
        send; None: any number. ``apart``: a Watch stream for each kind."""
        self.env = env
        self.shares = shares
        self.servers = endpoints.Endpoints(env, apiservers, acts_as)
        self._session = sessions.Session(
            env, self.servers, shares=shares, buckets=None if limits is None else Buckets(limits)
        )
        self.watches = variants.choose(Watches, deviations)(env, self.servers)
        """The one Watch stream of this client, for informers."""
        self._apart: dict[str, Watches] | None = {} if apart else None

    def watches_of(self, resource: str) -> Watches:
        """The Watch stream for informers of a kind. Where kinds have their own, they reach this client in any order."""
        if self._apart is None:
            return self.watches
        if resource not in self._apart:
            self._apart[resource] = type(self.watches)(self.env, self.servers)
        return self._apart[resource]

    def seer(self, message: type[M]) -> Callable[[int, bytes], shared_objects.Seen]:
        """What informers want to know of an object, from its revision and bytes."""
        return _seer(cast(Hashable, message), self.shares)

    def be_impatient(self, kinds: Iterable[type[KubernetesObject]], patience_ns: int) -> None:
        """Requests about these give up once they are so old (:meth:`sessions.Session.be_impatient`)."""
        self._session.be_impatient(kinds, patience_ns)

    def create(self, obj: M, resource: str = "") -> Coroutine[Any, Any, M]:
        """Whatever waits for the answer keeps bytes, not ``obj``. ``resource``: the kind of a custom object."""
        namespace: str = obj.metadata.namespace
        data, version = obj.SerializeToString(deterministic=True), ""
        if resource:
            version = cast(CustomObject, obj).apiVersion.rpartition("/")[2]
        return self.create_serialised(type(obj), namespace, data, resource, version)

    async def create_serialised(
        self, message: type[M], namespace: str, data: bytes, resource: str = "", version: str = ""
    ) -> M:
        """An object of class ``message``. ``resource`` and ``version``: of a custom kind."""
        plural = resource or resources.BY_MESSAGE[message].plural
        call = self._session.next_call()
        request = call.create
        request.resource.resource = plural
        request.resource.namespace = namespace
        if version:
            request.resource.version = version
        request.object = data
        return await self._session.send(call, message, True, len(data))

    async def update(self, obj: M, subresource: str = "", kind: str = "") -> M:
        """Replaces the object; with a ``resourceVersion`` in it, only if it is still the current one (Conflict).
        ``subresource``: only that part of it, ``finalize`` of a namespace for example. ``kind``: that of a custom
        object, as requests name it."""
        resource = custom_kinds.placeholder(kind, True) if kind else resources.BY_MESSAGE[type(obj)]
        data = obj.SerializeToString(deterministic=True)
        self._note_version(resource, obj)
        call = self._session.next_call()
        request = call.update
        request.resource.resource = resource.plural
        request.resource.namespace = obj.metadata.namespace
        request.object = data
        request.subresource = subresource
        return await self._session.send(call, type(obj), True, len(data))

    async def update_status(self, obj: M) -> M:
        """Like :meth:`update`, of the status subresource."""
        resource, data = resources.BY_MESSAGE[type(obj)], obj.SerializeToString(deterministic=True)
        self._note_version(resource, obj)
        call = self._session.next_call()
        request = call.update_status
        request.resource.resource = resource.plural
        request.resource.namespace = obj.metadata.namespace
        request.object = data
        return await self._session.send(call, type(obj), True, len(data))

    def _note_version(self, resource: resources.Resource, obj: KubernetesObject) -> None:
        """The run log tells of updates that replace whatever is there."""
        metadata = obj.metadata
        if not metadata.resourceVersion:
            key = resources.key(resource, metadata.namespace, metadata.name).decode()
            self.env.log(UnconditionalUpdate(resource=resource.plural, key=key))

    async def patch(
        self,
        resource: str,
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        subresource: str = "",
        type: str = "merge",  # noqa: A002  (the field's word)
        uid: str = "",
    ) -> KubernetesObject:
        """``type``: ``merge`` (RFC 7386) or ``strategic``. ``uid``: only if the object still has it (Conflict)."""
        message, data = resources.MESSAGES[resource], _encode(patch).encode()
        patch_type = PATCH_TYPES[type]
        call, request = self._patch_call(resource, name, namespace, subresource, uid)
        request.type = patch_type
        request.patch = data
        return await self._session.send(call, message, True, len(data))

    async def apply(
        self, resource: str, name: str, namespace: str, obj: Mapping[str, Any], manager: str, subresource: str = ""
    ) -> KubernetesObject:
        """Server-side apply of what ``obj`` states, as this field manager, who takes it over from others."""
        message, data = resources.MESSAGES[resource], _encode(obj).encode()
        call, request = self._patch_call(resource, name, namespace, subresource, "")
        request.type = api_pb2.PatchRequest.APPLY
        request.patch = data
        request.force = True
        request.options.field_manager = manager
        return await self._session.send(call, message, True, len(data))

    def patch_message(
        self,
        message: type[M],
        name: str,
        namespace: str,
        patch: bytes,
        subresource: str = "",
        uid: str = "",
        removed: bytes = b"",
    ) -> asyncio.Future[M]:
        """A strategic patch in serialised messages: ``removed`` names what goes, ``patch`` holds what is set (see
        ``PatchRequest.MESSAGE``). ``uid``: only if the object still has it (Conflict). It is sent at once, and not when
        the answer is awaited."""
        plural = resources.BY_MESSAGE[message].plural
        call, request = self._patch_call(plural, name, namespace, subresource, uid)
        request.type = api_pb2.PatchRequest.MESSAGE
        request.patch = patch
        if removed:
            request.removed = removed
        return self._session.send(call, message, True, len(patch) + len(removed))

    def _patch_call(
        self, resource: str, name: str, namespace: str, subresource: str, uid: str
    ) -> tuple[api_pb2.Call, api_pb2.PatchRequest]:
        """A call of the growing batch and its patch request, which says what is to be patched but not yet how."""
        call = self._session.next_call()
        request = call.patch
        request.resource.resource = resource
        request.resource.namespace = namespace
        request.name = name
        request.subresource = subresource
        if uid:
            request.preconditions.uid = uid
        return call, request

    async def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        grace_period_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        propagation_policy: str = "",
    ) -> KubernetesObject:
        """``grace_period_seconds`` None: the object's own. ``uid``, ``resource_version``: preconditions (Conflict).
        ``propagation_policy``: ``Background``, ``Foreground`` or ``Orphan``; "": the default of the kind.

        Returns the object as it is now, or as it was when it is gone.
        """
        message = resources.MESSAGES[resource]
        call = self._session.next_call()
        request = call.delete
        request.resource.resource = resource
        request.resource.namespace = namespace
        request.name = name
        if grace_period_seconds is not None:
            request.grace_period_seconds = grace_period_seconds
        if uid:
            request.preconditions.uid = uid
        if resource_version:
            request.preconditions.resource_version = resource_version
        request.propagation_policy = propagation_policy
        return await self._session.send(call, message, True)

    async def delete_collection(
        self,
        resource: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        grace_period_seconds: int | None = None,
        propagation_policy: str = "",
    ) -> sessions.ListResult:
        """Deletes all objects that match, one by one, and returns them as they were before."""
        message = resources.MESSAGES[resource]
        call = self._session.next_call()
        request = call.delete_collection
        request.list.resource.resource = resource
        request.list.resource.namespace = namespace
        request.list.label_selector = label_selector
        request.list.field_selector = field_selector
        if grace_period_seconds is not None:
            request.delete.grace_period_seconds = grace_period_seconds
        request.delete.propagation_policy = propagation_policy
        return await self._session.send_list(call, message)

    async def custom_kind(self, group: str, kind: str) -> custom_kinds.CustomResource | None:
        """A custom kind as its definition says now, in its preferred version; None: none is established."""
        for obj in (await self.list(custom_kinds.DEFINITIONS)).items:
            definition = cast(CustomResourceDefinition, obj)
            if definition.spec.group == group and definition.status.acceptedNames.kind == kind:
                rows = custom_kinds.rows(definition)
                return rows[custom_kinds.by_priority(list(rows))[0]] if rows else None
        return None

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        annotations: Mapping[str, str] | None = None,
        *,
        node_generation: int | None = None,
    ) -> core_v1_pb2.Pod:
        """Binds a pod to a node: once, Conflict after. The pod gets these annotations in the same request.
        ``node_generation`` as in :class:`Binding`."""
        call = self._session.next_call()
        request = call.bind
        request.namespace = namespace
        request.name = name
        request.uid = uid
        request.node = node
        if annotations:
            request.annotations.update(annotations)
        if node_generation is not None:
            request.node_generation = node_generation
        return await self._session.send(call, core_v1_pb2.Pod, True)

    async def commit(self, bindings: Sequence[Binding], *, all_or_nothing: bool = False) -> sessions.Commit:
        """Several bindings in one request, an extension of kemu. ``all_or_nothing``: together or not at all.

        Raises only what concerns the request as a whole; why a single pod was not bound is among the results.
        """
        call = self._session.next_call()
        request = call.commit
        request.all_or_nothing = all_or_nothing
        for one in bindings:
            binding = request.bindings.add()
            binding.namespace, binding.name, binding.uid, binding.node = one[:4]
            if one.node_generation is not None:
                binding.node_generation = one.node_generation
        return await self._session.send_commit(call)

    async def evict(
        self,
        namespace: str,
        name: str,
        grace_period_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> core_v1_pb2.Pod:
        """Deletes a pod if its disruption budgets allow it (TooManyRequests)."""
        call = self._session.next_call()
        request = call.evict
        request.namespace = namespace
        request.name = name
        if grace_period_seconds is not None:
            request.grace_period_seconds = grace_period_seconds
        if uid:
            request.preconditions.uid = uid
        if resource_version:
            request.preconditions.resource_version = resource_version
        return await self._session.send(call, core_v1_pb2.Pod, True)

    @overload
    async def get(
        self, resource: Literal["pods"], name: str, namespace: str = "", resource_version: str = ""
    ) -> core_v1_pb2.Pod: ...

    @overload
    async def get(
        self, resource: Literal["nodes"], name: str, namespace: str = "", resource_version: str = ""
    ) -> core_v1_pb2.Node: ...

    @overload
    async def get(
        self, resource: Literal["namespaces"], name: str, namespace: str = "", resource_version: str = ""
    ) -> core_v1_pb2.Namespace: ...

    @overload
    async def get(
        self, resource: Literal["persistentvolumes"], name: str, namespace: str = "", resource_version: str = ""
    ) -> core_v1_pb2.PersistentVolume: ...

    @overload
    async def get(
        self, resource: Literal["persistentvolumeclaims"], name: str, namespace: str = "", resource_version: str = ""
    ) -> core_v1_pb2.PersistentVolumeClaim: ...

    @overload
    async def get(
        self, resource: Literal["jobs"], name: str, namespace: str = "", resource_version: str = ""
    ) -> batch_v1_pb2.Job: ...

    @overload
    async def get(
        self, resource: Literal["cronjobs"], name: str, namespace: str = "", resource_version: str = ""
    ) -> batch_v1_pb2.CronJob: ...

    @overload
    async def get(
        self, resource: Literal["controllerrevisions"], name: str, namespace: str = "", resource_version: str = ""
    ) -> apps_v1_pb2.ControllerRevision: ...

    @overload
    async def get(
        self, resource: Literal["poddisruptionbudgets"], name: str, namespace: str = "", resource_version: str = ""
    ) -> policy_v1_pb2.PodDisruptionBudget: ...

    @overload
    async def get(
        self, resource: Literal["leases"], name: str, namespace: str = "", resource_version: str = ""
    ) -> coordination_v1_pb2.Lease: ...

    @overload
    async def get(
        self, resource: Literal["csidrivers"], name: str, namespace: str = "", resource_version: str = ""
    ) -> storage_v1_pb2.CSIDriver: ...

    @overload
    async def get(
        self, resource: Literal["daemonsets"], name: str, namespace: str = "", resource_version: str = ""
    ) -> apps_v1_pb2.DaemonSet: ...

    @overload
    async def get(
        self, resource: str, name: str, namespace: str = "", resource_version: str = ""
    ) -> KubernetesObject: ...

    async def get(self, resource: str, name: str, namespace: str = "", resource_version: str = "") -> KubernetesObject:
        """``resource_version``: "" for the newest state, "0" for whatever the API server's cache holds."""
        message = resources.MESSAGES[resource]
        call = self._session.next_call()
        request = call.get
        request.resource.resource = resource
        request.resource.namespace = namespace
        request.name = name
        request.resource_version = resource_version
        return await self._session.send(call, message, False)

    async def get_scale(self, resource: str, name: str, namespace: str) -> autoscaling_v1_pb2.Scale:
        """The subresource ``scale`` of an object."""
        call = self._session.next_call()
        request = call.get
        request.resource.resource = resource
        request.resource.namespace = namespace
        request.name = name
        request.subresource = "scale"
        return await self._session.send(call, autoscaling_v1_pb2.Scale, False)

    async def update_scale(self, resource: str, scale: autoscaling_v1_pb2.Scale) -> autoscaling_v1_pb2.Scale:
        """Gives the object as many replicas as the scale says (Conflict, where it has changed since)."""
        data = scale.SerializeToString(deterministic=True)
        call = self._session.next_call()
        request = call.update
        request.resource.resource = resource
        request.resource.namespace = scale.metadata.namespace
        request.object = data
        request.subresource = "scale"
        return await self._session.send(call, autoscaling_v1_pb2.Scale, True, len(data))

    async def list(
        self,
        resource: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        resource_version: str = "",
        continue_token: str = "",
    ) -> sessions.ListResult:
        """``limit`` 0: everything at once. ``namespace`` "": all of them. ``resource_version`` as in :meth:`get`."""
        message = resources.MESSAGES[resource]
        call = self._session.next_call()
        request = call.list
        request.resource.resource = resource
        request.resource.namespace = namespace
        request.label_selector = label_selector
        request.field_selector = field_selector
        request.limit = limit
        request.resource_version = resource_version
        setattr(request, "continue", continue_token)
        return await self._session.send_list(call, message)


def of_actor(env: Env, config: Mapping[str, Any], *, shares: bool = True) -> Client:
    """The client of an actor whose config names its ``apiserver``, or several, and perhaps variants, ``limits``
    (:mod:`kemu.emulated.client.limits`) and ``streams``.

    ``shares``: the actor runs no code but kemu's."""
    apiservers = config.get("apiserver") or "apiserver/0"
    deviations = variants.active(config)
    stated = config.get("limits")
    # Where the config has come in a message, a rate is a list.
    rates = None if stated is None else {name: None if one is None else Rate(*one) for name, one in stated.items()}
    apart = config.get("streams") == PER_KIND
    return variants.choose(Client, deviations)(env, apiservers, deviations, shares=shares, limits=rates, apart=apart)
