"""A control plane for recorded cases: store, API server and the actors under test, in virtual time.

The actors are those that run in production, with their clients and informers. Objects of a case are put into the store
directly: they were recorded without defaulting and validation, which the API server would apply.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.client import clients, informers
from kemu.emulated.objects import resources
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import ActorSpec
from kemu.runtime.sim.simulation import SimRuntime

M = TypeVar("M", bound=KubernetesObject)
T = TypeVar("T")

_AT_ONCE = {"apiLatency": 0, "watchLatency": 0, "storeLatency": 0}


class ControlPlane:
    """Requests take no time, and watch events as much as is said."""

    def __init__(self, watch_s: float = 0, *, admission: Sequence[str] | None = None, **settings: bool) -> None:
        """``admission``: the plugins that the API server has; None: those of a scenario. ``settings``: its others."""
        self.runtime = SimRuntime(0, self._log, {**_AT_ONCE, "watchLatency": watch_s})
        self.clock = self.runtime.clock
        self.env = self.runtime.env("conformance")
        self._settings: dict[str, Any] = dict(settings)
        if admission is not None:
            self._settings["admission"] = list(admission)
        self.client = clients.Client(self.env)
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        """What the actors log, by kind."""
        self.removed: set[str] = set()
        """UIDs of the objects that the case itself has deleted."""
        self._storage = Storage(self.env, self.env.dial("store"))

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def play() -> T:
            await self.runtime.launch([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "none"})])
            server = ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", self._settings)
            await self.runtime.launch([server])
            return await main()

        return self.runtime.run(play())

    async def launch(self, name: str, factory: str, config: Mapping[str, Any] | None = None) -> None:
        await self.runtime.launch([ActorSpec(name, factory, config or {})])

    async def watch(self, resource: str, handler: informers.Handler[Any]) -> dict[str, Any]:
        """The objects of a resource as they are, kept up to date; ``handler`` is told of changes."""
        informer = informers.Informer(self.client, resource, handler=handler)
        await informer.synced()
        return informer.store

    async def put(self, *objects: Message) -> None:
        """Create objects, as they are."""
        for obj in objects:
            await self._storage.swap(_key(obj), 0, obj.SerializeToString(deterministic=True))

    async def get(self, obj: M) -> M:
        """The stored object that has the name of ``obj``."""
        metadata = obj.metadata
        return cast(M, await self.client.get(resources.of(obj).plural, metadata.name, metadata.namespace))

    async def change(self, obj: M, change: Callable[[M], object]) -> None:
        """Change the stored object that has the name of ``obj``; nothing happens if there is none."""
        key = _key(obj)
        while (entry := await self._storage.read(key)) is not None:
            now = type(obj).FromString(entry.value)
            change(now)
            value = now.SerializeToString(deterministic=True)
            if value == entry.value or (await self._storage.swap(key, entry.revision, value))[1] is None:
                return

    async def remove(self, obj: KubernetesObject) -> None:
        """Delete the stored object that has the name of ``obj``; nothing happens if there is none."""
        key = _key(obj)
        while (entry := await self._storage.read(key)) is not None:
            if (await self._storage.swap(key, entry.revision, None))[1] is None:
                return

    def _log(self, now_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self.events.append((kind, data))


def _key(obj: Any) -> bytes:
    return resources.key(resources.of(obj), obj.metadata.namespace, obj.metadata.name)


class Deletions:
    """A handler for pods: one that an actor deletes is gone at once, and it is noted when."""

    def __init__(self, plane: ControlPlane) -> None:
        self.found: list[tuple[int, str]] = []
        """When, in ns, and the name."""
        self._plane = plane

    def on_add(self, obj: KubernetesObject) -> None:
        pass

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        if new.metadata.HasField("deletionTimestamp"):
            self._plane.env.spawn(self._plane.remove(new), f"end of {new.metadata.name}")

    def on_delete(self, old: KubernetesObject) -> None:
        if old.metadata.uid not in self._plane.removed:
            self.found.append((self._plane.clock.now_ns(), old.metadata.name))
