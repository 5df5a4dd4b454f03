"""What an admission plugin is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kemu.emulated.apiserver.storage import Entry, Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.errors import Cause
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

T = TypeVar("T")
K = TypeVar("K", bound=KubernetesObject)


@dataclass(frozen=True, slots=True)
class Host:
    """What the API server lends to plugins that do more than read its cache."""

    env: Env
    write_status: Callable[[str, str, KubernetesObject], Awaitable[int]]
    """(plural, namespace, object) → the new resource version. Raises :class:`kemu.errors.ApiError`."""
    limited_resources: Sequence[Mapping[str, Any]] = ()
    """``limitedResources`` of the configuration of ResourceQuota."""


class Plugin(Generic[K]):
    """Overrides what it needs. All methods raise an :class:`kemu.errors.ApiError` to refuse.

    Plugins read the watch cache, as those of Kubernetes read informers. The cache may lag: before a request is refused
    because an object is missing, :meth:`live` asks the store.
    """

    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        self.storage = storage
        self.cache = cache

    def attach(self, host: Host) -> None:
        """Once, before the first request."""

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        """Whether the chain asks this plugin about objects of that kind."""
        return True

    async def create(self, resource: Resource, obj: K) -> None:
        """May change ``obj``, whose defaults are filled in."""

    async def objections(self, resource: Resource, obj: K) -> list[Cause]:
        """What Kubernetes says before the mistakes of an object that is not valid."""
        return []

    async def validate(self, resource: Resource, obj: K) -> None:
        """May refuse ``obj``, which is complete and valid, but not change it."""

    def update(self, resource: Resource, new: K, old: K) -> None:
        """May change ``new``."""

    def update_part(self, resource: Resource, subresource: str, new: K, old: K) -> None:
        """An update of a subresource, such as the status. May not change ``new``."""

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        """Whether :meth:`validate_update` can have a say in such updates. Asked once."""
        return True

    def validates_update(self, namespace: str) -> bool:
        """Whether :meth:`validate_update` is to be asked about such an update in that namespace. Asked for each."""
        return True

    async def validate_update(self, resource: Resource, subresource: str, new: K, old: K) -> None:
        """May refuse ``new``, which is complete and valid, but not change it."""

    def delete(self, resource: Resource, name: str, namespace: str) -> None:
        """Before an object is looked up."""

    def evict(self, name: str, namespace: str) -> None:
        """Before a pod is looked up."""

    async def live(self, resource: Resource, name: str) -> KubernetesObject | None:
        """An object of a kind without namespaces, as the store has it now; None when there is none."""
        entry = await self.storage.read(resources.key(resource, "", name))
        return None if entry is None else resource.message.FromString(entry.value)


class Derived(Generic[T]):
    """A value computed from all objects of a kind, and computed again when one of them has changed."""

    __slots__ = ("_at", "_build", "_collection", "_value")

    def __init__(self, cache: WatchCache, plural: str, build: Callable[[Iterable[Any]], T]) -> None:
        self._collection = cache.collections[plural]
        self._build = build
        self._at = -1
        self._value = build(())

    def get(self) -> T:
        collection = self._collection
        if self._at != collection.last:
            self._at = collection.last
            entries: list[Entry] = [collection.entries[key] for key in sorted(collection.entries)]
            self._value = self._build(collection.resource.message.FromString(entry.wire) for entry in entries)
        return self._value
