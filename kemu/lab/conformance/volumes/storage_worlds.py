"""The API server of recorded cases about volumes: objects with versions, and what others do to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance import storages
from kemu.lab.conformance.merges import merged
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

Json = dict[str, Any]

_MESSAGES: dict[str, Any] = {
    "PersistentVolume": core_v1_pb2.PersistentVolume,
    "PersistentVolumeClaim": core_v1_pb2.PersistentVolumeClaim,
    "StorageClass": storage_v1_pb2.StorageClass,
    "Node": core_v1_pb2.Node,
    "Pod": core_v1_pb2.Pod,
}


def objects(case: Json) -> Iterator[Any]:
    """All objects of a case."""
    for data in case.get("nodes", ()):
        yield convert.from_json(core_v1_pb2.Node, data)
    for data in case.get("pods", ()):
        yield convert.from_json(core_v1_pb2.Pod, data)
    for key in storages.MESSAGES:
        yield from storages.objects(case, key)


def changed_by(event: Json, find: Callable[[str, str, str], Any | None]) -> tuple[Any | None, Any | None]:
    """The object before and after an event: (None, new), (old, new) or (old, None). ``find``: by kind, namespace,
    name."""
    message = _MESSAGES[event["kind"]]
    if event["do"] == "create":
        return None, convert.from_json(message, event["object"])
    old = find(event["kind"], event.get("namespace", ""), event["name"])
    if old is None or event["do"] == "delete":
        return old, None
    return old, convert.from_json(message, merged(convert.to_json(old), event["patch"]))


class Objects:
    """By kind, namespace and name."""

    def __init__(self) -> None:
        self._versions = itertools.count(1)
        self.by_key: dict[tuple[str, str, str], Any] = {}

    def put(self, obj: KubernetesObject) -> Any:
        """Store an object under a new version."""
        obj.metadata.resourceVersion = str(next(self._versions))
        self.by_key[self._key(obj)] = obj
        return obj

    def remove(self, obj: KubernetesObject) -> None:
        del self.by_key[self._key(obj)]

    def find(self, kind: str, namespace: str, name: str) -> KubernetesObject | None:
        return self.by_key.get((kind, namespace, name))

    def of_kind(self, kind: str) -> Iterator[Any]:
        return (obj for (of, _namespace, _name), obj in self.by_key.items() if of == kind)

    def _key(self, obj: Any) -> tuple[str, str, str]:
        return resources.of(obj).kind, obj.metadata.namespace, obj.metadata.name


def volume_state(volume: core_v1_pb2.PersistentVolume) -> Json:
    """What the record says about a volume."""
    state: Json = {"annotations": dict(volume.metadata.annotations), "finalizers": list(volume.metadata.finalizers)}
    state |= {"phase": volume.status.phase, "message": volume.status.message}
    if volume.spec.HasField("claimRef"):
        reference = volume.spec.claimRef
        state |= {"claim": f"{reference.namespace}/{reference.name}", "claimUID": reference.uid}
    return {key: value for key, value in state.items() if value}


def claim_state(claim: core_v1_pb2.PersistentVolumeClaim) -> Json:
    """What the record says about a claim."""
    status = claim.status
    state: Json = {"volume": claim.spec.volumeName, "annotations": dict(claim.metadata.annotations)}
    state |= {"phase": status.phase, "accessModes": list(status.accessModes)}
    if "storage" in status.capacity:
        state["capacity"] = status.capacity["storage"].string
    state = {key: value for key, value in state.items() if value}
    if claim.spec.HasField("storageClassName"):
        state["class"] = claim.spec.storageClassName
    return state
