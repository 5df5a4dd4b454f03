"""Recorded cases of the PersistentVolume controller, repeated with the actor ``controller/persistentvolume-binder``."""

from __future__ import annotations

from typing import Any

from kemu.emulated.objects import meta, resources
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.lab.conformance.volumes import storage_worlds
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS

Json = dict[str, Any]
FACTORY = "kemu.emulated.controllers.volumes.persistent_volumes:PersistentVolumeController"


def answer(case: Json) -> Json:
    """How claims and volumes stand before each event of the case and at its end, and the Events that were written."""
    plane = ControlPlane()
    moments: list[Json] = []

    async def play() -> list[Any]:
        await plane.put(*storage_worlds.objects(case))
        volumes = await plane.watch("persistentvolumes", _Deaf())
        claims = await plane.watch("persistentvolumeclaims", _Deaf())
        stores = {"PersistentVolume": volumes, "PersistentVolumeClaim": claims}
        for kind in ("StorageClass", "Node", "Pod"):
            stores[kind] = await plane.watch(resources.BY_KIND[kind].plural, _Deaf())

        def look(at_s: float) -> None:
            state = {"volumes": {one.metadata.name: storage_worlds.volume_state(one) for one in volumes.values()}}
            state["claims"] = {meta.namespaced_name(one): storage_worlds.claim_state(one) for one in claims.values()}
            moments.append({"atS": at_s, **state})

        await plane.launch("controller/persistentvolume-binder", FACTORY, {"events": "all"})
        await plane.runtime.begin()
        for event in case.get("events", ()):
            await plane.clock.sleep_until_ns(round(event["atS"] * SECOND_NS))
            look(event["atS"])
            await _happen(plane, stores, event)
        await plane.clock.sleep_until_ns(round(case["horizonS"] * SECOND_NS))
        look(case["horizonS"])
        return (await plane.client.list("events")).items

    texts = [f"{one.involvedObject.name} {one.type} {one.reason}: {one.message}" for one in plane.run(play)]
    return {"moments": moments, "events": sorted(dict.fromkeys(texts))}


async def _happen(plane: ControlPlane, stores: dict[str, dict[str, Any]], event: Json) -> None:
    def find(kind: str, namespace: str, name: str) -> KubernetesObject | None:
        return stores[kind].get(f"{namespace}/{name}" if namespace else name)

    old, new = storage_worlds.changed_by(event, find)
    if old is None and new is not None:
        await plane.put(new)
    elif new is None and old is not None:
        await plane.remove(old)
    elif new is not None:
        await plane.change(new, lambda now: now.CopyFrom(new))


class _Deaf:
    """A handler that does nothing."""

    def on_add(self, obj: KubernetesObject) -> None:
        pass

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        pass

    def on_delete(self, old: KubernetesObject) -> None:
        pass
