"""The quotas of a namespace, as new as this API server knows them, and the way in which it charges them.

Mirrors ``quotaAccessor``: a quota that this server has charged itself counts from then on, even if the watch cache does
not show it yet. So back-to-back requests do not fail each other. Another server's charge is only seen when the watch
cache shows it; until then the store refuses the write, because its resource version is old.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.quotas import quotas
from kemu.emulated.objects.quotas.evaluators import Surroundings
from kemu.emulated.objects.quotas.quotas import Quota
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import DeviceClass, ResourceClaim

WriteStatus = Callable[[core_v1_pb2.ResourceQuota], Awaitable[int]]
"""Writes the status of a quota and returns its new resource version. Raises :class:`kemu.errors.ApiError`."""

_PODS, _CLAIMS = resources.BY_PLURAL["pods"], resources.BY_PLURAL["resourceclaims"]
MOST_CHARGED = 100
"""So many quotas are remembered beyond what the watch cache has."""


class Quotas(Protocol):
    """What there is of quotas, perhaps not of the latest version."""

    def of(self, namespace: str) -> list[Quota]: ...


class CachedQuotas:
    """The quotas in the watch cache, each read once for each version."""

    def __init__(self, cache: WatchCache) -> None:
        self._collection = cache.collections["resourcequotas"]
        self._at = -1
        self._read: dict[bytes, Quota] = {}
        self._by_namespace: Mapping[str, list[Quota]] = {}

    def of(self, namespace: str) -> list[Quota]:
        if self._at != self._collection.last:
            self._refresh()
        return self._by_namespace.get(namespace, [])

    def _refresh(self) -> None:
        entries = self._collection.entries
        self._at = self._collection.last
        before, self._read = self._read, {}
        by_namespace: dict[str, list[Quota]] = {}
        for key in sorted(entries):
            quota = before.get(key)
            if quota is None or quota.version != entries[key].revision:
                quota = quotas.read(core_v1_pb2.ResourceQuota.FromString(entries[key].wire))
            self._read[key] = quota
            by_namespace.setdefault(quota.namespace, []).append(quota)
        self._by_namespace = by_namespace


class CachedSurroundings(Surroundings):
    """What the watch cache has."""

    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache
        self._at = -1
        self._classes: dict[str, str] = {}

    def classes(self) -> Mapping[str, str]:
        collection = self._cache.collections["deviceclasses"]
        if self._at != collection.last:
            self._at = collection.last
            found = (DeviceClass.FromString(entry.wire) for entry in collection.entries.values())
            self._classes = {one.metadata.name: one.spec.extendedResourceName for one in found}
        return self._classes

    def pod(self, namespace: str, name: str) -> core_v1_pb2.Pod | None:
        entry = self._cache.collections["pods"].entries.get(resources.key(_PODS, namespace, name))
        return None if entry is None else core_v1_pb2.Pod.FromString(entry.wire)

    def claims(self, namespace: str) -> Iterable[ResourceClaim]:
        start = resources.key(_CLAIMS, namespace, "")
        entries = self._cache.collections["resourceclaims"].entries
        return (ResourceClaim.FromString(entry.wire) for key, entry in entries.items() if key.startswith(start))


class Accounts:
    """
    found = accounts.of(namespace)
    await accounts.charge(changed)
    """

    def __init__(self, known: Quotas, write_status: WriteStatus) -> None:
        self._known = known
        self._write_status = write_status
        self._charged: dict[tuple[str, str], Quota] = {}
        """What this server wrote last, until the watch cache has it."""

    def of(self, namespace: str) -> list[Quota]:
        found = []
        for quota in self._known.of(namespace):
            charged = self._charged.get((namespace, quota.name))
            if charged is not None:
                if quota.version < charged.version:
                    quota = charged
                else:
                    del self._charged[namespace, quota.name]
            found.append(quota)
        return found

    async def charge(self, quota: Quota) -> None:
        """Write what is used. Raises :class:`kemu.errors.ApiError`, a Conflict if the quota has changed since."""
        message = core_v1_pb2.ResourceQuota()
        metadata, status = message.metadata, message.status
        metadata.namespace, metadata.name = quota.namespace, quota.name
        metadata.resourceVersion = self._precondition(quota)
        resource_lists.write(status.hard, quota.hard)
        resource_lists.write(status.used, quota.used)
        version = await self._write_status(message)
        key = quota.namespace, quota.name
        self._charged.pop(key, None)
        self._charged[key] = Quota(
            quota.namespace, quota.name, version, quota.selectors, quota.wanted, quota.hard, quota.used
        )
        if len(self._charged) > MOST_CHARGED:
            del self._charged[next(iter(self._charged))]

    def _precondition(self, quota: Quota) -> str:
        """The resource version that the quota must have to be charged."""
        return str(quota.version)
