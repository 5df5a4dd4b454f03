"""The slices that a controller manages: which are there, and which it has written and does not see yet."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from kemu import errors
from kemu.emulated.client import informers
from kemu.emulated.client.clients import Client
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.services import endpoints, packing
from kemu.messages.k8s import discovery_v1_pb2

_DELETED = -1


class Tracker:
    """Generations that were written, by Service and UID of the slice (``EndpointSliceTracker``)."""

    def __init__(self) -> None:
        self._generations: dict[str, dict[str, int]] = {}

    def has(self, found: discovery_v1_pb2.EndpointSlice) -> bool:
        return found.metadata.uid in self._generations.get(service_of(found), {})

    def is_news(self, found: discovery_v1_pb2.EndpointSlice) -> bool:
        """Whether somebody else has written it (``ShouldSync``)."""
        known = self._generations.get(service_of(found), {}).get(found.metadata.uid)
        return known is None or found.metadata.generation > known

    def is_stale(self, service: str, shown: Iterable[discovery_v1_pb2.EndpointSlice]) -> bool:
        """Whether the informer shows less than was written (``StaleSlices``)."""
        known = self._generations.get(service)
        if known is None:
            return False
        seen = {one.metadata.uid: one.metadata.generation for one in shown}
        for uid, generation in seen.items():
            wanted = known.get(uid)
            if wanted is not None and (wanted == _DELETED or wanted > generation):
                return True
        return any(generation != _DELETED and uid not in seen for uid, generation in known.items())

    def update(self, found: discovery_v1_pb2.EndpointSlice) -> None:
        self._generations.setdefault(service_of(found), {})[found.metadata.uid] = found.metadata.generation

    def forget(self, service: str) -> None:
        self._generations.pop(service, None)

    def expect_deletion(self, found: discovery_v1_pb2.EndpointSlice) -> None:
        self._generations.setdefault(service_of(found), {})[found.metadata.uid] = _DELETED

    def is_expected(self, gone: discovery_v1_pb2.EndpointSlice) -> bool:
        """Take note that a slice is gone (``HandleDeletion``)."""
        known = self._generations.get(service_of(gone), {})
        return known.pop(gone.metadata.uid, _DELETED) == _DELETED


class ManagedSlices:
    """The EndpointSlices of one manager, by Service.

    ``manager``: whom their label ``endpointslice.kubernetes.io/managed-by`` names. ``queue_service`` gets the key of a
    Service whose slices somebody else has changed.
    """

    def __init__(self, client: Client, manager: str, queue_service: Callable[[str], None]) -> None:
        self._client, self._manager, self._queue_service = client, manager, queue_service
        self.tracker = Tracker()
        self._keys: dict[str, dict[str, None]] = {}
        """Of the slices, by that of the Service."""
        self.informer: informers.Informer[discovery_v1_pb2.EndpointSlice] = informers.Informer(
            client, "endpointslices", handler=informers.Callbacks(self._added, self._updated, self._deleted)
        )

    def of(self, service: str) -> list[discovery_v1_pb2.EndpointSlice]:
        """By name."""
        return [self.informer.store[key] for key in sorted(self._keys.get(service, ()))]

    async def write(self, plan: packing.Plan, *, may_create: bool) -> None:
        """``finalize``. Nothing is written of a namespace that is going. Raises ApiError."""
        if may_create:
            for one in plan.create:
                try:
                    self.tracker.update(await self._client.create(one))
                except errors.ApiError as error:
                    if endpoints.is_namespace_going(error):
                        return
                    raise
        for one in plan.update:
            self.tracker.update(await self._client.update(one))
        for one in plan.delete:
            await self.delete(one)

    async def delete(self, found: discovery_v1_pb2.EndpointSlice) -> None:
        await self._client.delete("endpointslices", found.metadata.name, found.metadata.namespace)
        self.tracker.expect_deletion(found)

    async def clear(self, service: str) -> None:
        """Delete all of a Service, and forget what was written."""
        self.tracker.forget(service)
        for one in self.of(service):
            with contextlib.suppress(errors.NotFound):
                await self._client.delete("endpointslices", one.metadata.name, one.metadata.namespace)

    def _added(self, found: discovery_v1_pb2.EndpointSlice) -> None:
        self._index(found)
        if self._is_own(found) and self.tracker.is_news(found):
            self._queue_owner(found)

    def _updated(self, old: discovery_v1_pb2.EndpointSlice, new: discovery_v1_pb2.EndpointSlice) -> None:
        self._unindex(old)
        self._index(new)
        if service_of(old) != service_of(new):
            self._queue_owner(new)
            self._queue_owner(old)
        elif self._is_own(old) != self._is_own(new) or (self._is_own(new) and self.tracker.is_news(new)):
            self._queue_owner(new)

    def _deleted(self, found: discovery_v1_pb2.EndpointSlice) -> None:
        self._unindex(found)
        if self._is_own(found) and self.tracker.has(found) and not self.tracker.is_expected(found):
            self._queue_owner(found)

    def _queue_owner(self, found: discovery_v1_pb2.EndpointSlice) -> None:
        if found.metadata.labels.get(endpoints.SERVICE_NAME):
            self._queue_service(service_of(found))

    def _index(self, found: discovery_v1_pb2.EndpointSlice) -> None:
        if self._is_own(found):
            self._keys.setdefault(service_of(found), {})[controllers.key_of(found)] = None

    def _unindex(self, found: discovery_v1_pb2.EndpointSlice) -> None:
        service = service_of(found)
        keys = self._keys.get(service, {})
        keys.pop(controllers.key_of(found), None)
        if not keys:
            self._keys.pop(service, None)

    def _is_own(self, found: discovery_v1_pb2.EndpointSlice) -> bool:
        return found.metadata.labels.get(endpoints.MANAGED_BY, "") == self._manager


def service_of(found: discovery_v1_pb2.EndpointSlice) -> str:
    """The key of its Service."""
    return f"{found.metadata.namespace}/{found.metadata.labels.get(endpoints.SERVICE_NAME, '')}"
