"""Which slices a controller has written and does not see yet (``EndpointSliceTracker``)."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.controllers.services import endpoints
from kemu.messages.k8s import discovery_v1_pb2

_DELETED = -1


class Tracker:
    """Generations that were written, by Service and UID of the slice."""

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


def service_of(found: discovery_v1_pb2.EndpointSlice) -> str:
    """The key of its Service."""
    return f"{found.metadata.namespace}/{found.metadata.labels.get(endpoints.SERVICE_NAME, '')}"
