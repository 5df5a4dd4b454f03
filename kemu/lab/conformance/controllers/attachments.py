"""Recorded attachments and detachments of volumes, repeated with the actor ``controller/attach-detach``.

The case says what users and kubelets do; an external-attacher takes its time. Compared are the attachments that are
created and deleted, each with its time, and the Multi-Attach errors.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from kemu.emulated.objects.volumes import claims
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

Json = dict[str, Any]
M = TypeVar("M", bound=KubernetesObject)

FACTORY = "kemu.emulated.controllers.volumes.attachments:AttachDetachController"
DRIVER, FINALIZER = "d.example.com", "external-attacher/d-example-com"
WAITED_MS = 1500
"""So much later than that it happens the real controller may notice that a volume is attached or detached: it looks
after half a second, and then ever more rarely, at random."""
_USED = "is already used by pod(s) "
_MS_NS = 1_000_000


def answer(case: Json) -> Json:
    """Raises ConversionError for a case that makes no sense."""
    play = _Play(case)
    return play.plane.run(play.run)


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs: of the actions of each volume on each node in turn, also times, if by more than the real controller
    may be late."""
    wanted, given = (_by_place(one["actions"]) for one in (expect, answered))
    found = []
    for place in sorted({*wanted, *given}):
        theirs, ours = wanted.get(place, []), given.get(place, [])
        is_same = [one for one, _ in theirs] == [one for one, _ in ours]
        if not is_same or any(abs(one - other) > WAITED_MS for (_, one), (_, other) in zip(theirs, ours, strict=True)):
            found.append(f"{place}: recorded {theirs}, kemu {ours}")
    told, events = (_in_order(one["events"]) for one in (expect, answered))
    if told != events:
        found.append(f"events: recorded {told}, kemu {events}")
    return found


def _in_order(events: list[str]) -> list[str]:
    """The real controller names pods in the order of a Go map."""
    found = []
    for text in events:
        head, used, names = text.partition(_USED)
        names, together, others = names.partition(" and ")
        found.append(head + used + ", ".join(sorted(names.split(", "))) + together + others)
    return sorted(found)


def _by_place(actions: list[Json]) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for one in actions:
        found.setdefault(f"{one['volume']} on {one['node']}", []).append((one["do"], one["atMs"]))
    return found


class _Play:
    """One case, and its external-attacher: a handler for attachments."""

    def __init__(self, case: Json) -> None:
        self.case = case
        self.plane = ControlPlane()
        self._actions: list[Json] = []
        self._initial: set[str] = set()

    async def run(self) -> Json:
        plane = self.plane
        for one in self.case["volumes"]:
            await plane.put(*_volume(one["name"], one["mode"]))
        for one in self.case["nodes"]:
            await plane.put(_node(one))
        for one in self.case["attachments"]:
            attachment = _attachment(one["volume"], one["node"])
            attachment.status.attached = one["reported"]
            self._initial.add(attachment.metadata.name)
            await plane.put(attachment)
        for one in self.case["pods"]:
            await plane.put(_pod(one))
        await plane.watch("volumeattachments", self)
        await plane.launch("controller/attach-detach", FACTORY, {"events": "all"})
        await plane.runtime.begin()
        for event in self.case["events"]:
            await plane.clock.sleep_until_ns(event["atMs"] * _MS_NS)
            await self._happen(event)
        await plane.clock.sleep_until_ns(self.case["horizonMs"] * _MS_NS)
        texts = {
            f"{one.involvedObject.name} {one.type} {one.reason}: {one.message}"
            for one in cast(list[core_v1_pb2.Event], (await plane.client.list("events")).items)
            if "Multi-Attach" in one.message
        }
        return {"actions": self._actions, "events": sorted(texts)}

    def on_add(self, obj: storage_v1_pb2.VolumeAttachment) -> None:
        if obj.metadata.name not in self._initial:
            self._act("attach", obj)
        self._initial.discard(obj.metadata.name)
        if not obj.status.attached:
            self.plane.env.spawn(self._attach(obj), f"attach {obj.metadata.name}")

    def on_update(self, old: KubernetesObject, new: storage_v1_pb2.VolumeAttachment) -> None:
        if new.metadata.HasField("deletionTimestamp") and not old.metadata.HasField("deletionTimestamp"):
            self._act("detach", new)
            self.plane.env.spawn(self._detach(new), f"detach {new.metadata.name}")

    def on_delete(self, old: storage_v1_pb2.VolumeAttachment) -> None:
        pass

    def _act(self, do: str, one: storage_v1_pb2.VolumeAttachment) -> None:
        at_ms = self.plane.clock.now_ns() // _MS_NS
        volume, node = one.spec.source.persistentVolumeName, one.spec.nodeName
        self._actions.append({"atMs": at_ms, "do": do, "volume": volume, "node": node})

    async def _attach(self, one: storage_v1_pb2.VolumeAttachment) -> None:
        if not one.metadata.finalizers:
            await self.plane.change(one, lambda now: now.metadata.finalizers.append(FINALIZER))
        await self.plane.clock.sleep(self.case["attachMs"] / 1000)
        await self.plane.change(one, lambda now: setattr(now.status, "attached", True))

    async def _detach(self, one: storage_v1_pb2.VolumeAttachment) -> None:
        await self.plane.clock.sleep(self.case["detachMs"] / 1000)
        await self.plane.remove(one)

    async def _happen(self, event: Json) -> None:
        plane, do = self.plane, event["do"]
        if do == "pod":
            await plane.put(_pod(event))
        elif do == "gone":
            await plane.remove(_named(core_v1_pb2.Pod, event["name"], "default"))
        elif do == "finish":
            finished = _named(core_v1_pb2.Pod, event["name"], "default")
            await plane.change(finished, lambda now: setattr(now.status, "phase", "Succeeded"))
        elif do == "add":
            await plane.put(_node(event))
        else:
            node = _named(core_v1_pb2.Node, event["node"])
            if do == "remove":
                await plane.remove(node)
                return
            await plane.change(node, lambda now: _change(now, event))


def _change(node: core_v1_pb2.Node, event: Json) -> None:
    if event["do"] == "use":
        del node.status.volumesInUse[:]
        node.status.volumesInUse.extend(event["volumes"])
    elif event["do"] == "ready":
        node.status.conditions[0].status = "True" if event["is"] else "Unknown"
    else:
        del node.spec.taints[:]
        if event["is"]:
            node.spec.taints.add(key="node.kubernetes.io/out-of-service", effect="NoExecute")


def _named(message: type[M], name: str, namespace: str = "") -> M:
    obj = message()
    obj.metadata.name, obj.metadata.namespace, obj.metadata.uid = name, namespace, f"uid-{name}"
    return obj


def _node(one: Json) -> core_v1_pb2.Node:
    node = _named(core_v1_pb2.Node, one["node"])
    node.status.conditions.add(type="Ready", status="True")
    node.status.volumesInUse.extend(one["volumes"])
    return node


def _pod(one: Json) -> core_v1_pb2.Pod:
    pod = _named(core_v1_pb2.Pod, one["name"], "default")
    pod.spec.nodeName = one["node"]
    for volume in one["volumes"]:
        pod.spec.volumes.add(name=volume).volumeSource.persistentVolumeClaim.claimName = f"c-{volume}"
    return pod


def _volume(name: str, mode: str) -> tuple[core_v1_pb2.PersistentVolume, core_v1_pb2.PersistentVolumeClaim]:
    volume = _named(core_v1_pb2.PersistentVolume, name)
    volume.spec.accessModes.append(mode)
    source = volume.spec.persistentVolumeSource.csi
    source.driver, source.volumeHandle = DRIVER, name
    reference = volume.spec.claimRef
    reference.namespace, reference.name, reference.uid = "default", f"c-{name}", f"uid-c-{name}"
    claim = _named(core_v1_pb2.PersistentVolumeClaim, f"c-{name}", "default")
    claim.metadata.annotations[claims.BIND_COMPLETED] = "yes"
    claim.spec.volumeName, claim.status.phase = name, claims.BOUND
    return volume, claim


def _attachment(volume: str, node: str) -> storage_v1_pb2.VolumeAttachment:
    name = claims.attachment_name(volume, DRIVER, node)
    attachment = _named(storage_v1_pb2.VolumeAttachment, name)
    attachment.metadata.finalizers.append(FINALIZER)
    attachment.spec.attacher, attachment.spec.nodeName = DRIVER, node
    attachment.spec.source.persistentVolumeName = volume
    return attachment
