"""Recorded cases of the controllers of devices, repeated with the actors ``controller/resourceclaim`` and
``controller/device-taint-eviction``.

How claims and pods stand before each event of a case and at its end, the Events that were written, and which pods were
deleted when. Generated claims are called ``@UID/ENTRY#N``: the Nth for that entry of the pod.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.controllers.devices.resource_claims import ResourceClaimController, User
from kemu.emulated.objects import meta, resources, times
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.devices import claims
from kemu.lab.conformance import comparisons
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.lab.conformance.merges import merged
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim
from kemu.runtime.env import SECOND_NS

Json = dict[str, Any]

ACTORS = {
    "claims": ("resourceclaim", "kemu.lab.conformance.controllers.devices:Bounded"),
    "device-taints": (
        "device-taint-eviction",
        "kemu.emulated.controllers.devices.taint_evictions:DeviceTaintEvictionController",
    ),
}
WATCH_S = 1e-6
"""A watch shows a claim a moment after its creation was answered, as in the record: two claims of one pod are created
before the informer has shown the first."""
MOST_APPLIED = 500
"""What the API server of the record takes: the controller can apply without an end."""
KINDS = ("Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
_MILLISECOND_NS = 1_000_000


def answer(case: Json) -> Json:
    """Raises ConversionError for a case that makes no sense."""
    play = _Play(case)
    texts = [f"{one.involvedObject.name} {one.type} {one.reason}: {one.message}" for one in play.plane.run(play.run)]
    deletions = [{"atMs": at_ms, "pod": pod} for at_ms, pod in sorted(play.deletions)]
    return {"moments": play.moments, "events": sorted(dict.fromkeys(texts)), "deletions": deletions}


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs from the record; where workers raced, from the nearest of its outcomes."""
    found = [list(comparisons.all_differences("", one, answered)) for one in expect.get("outcomes") or [expect]]
    return min(found, key=len)


class Bounded(ResourceClaimController):
    """Whose API server refuses what the controller applies, once that is too much. What changes nothing is not
    counted."""

    applied = 0

    async def state(self, user: User, made: Mapping[str, str]) -> None:
        key = meta.namespaced_name(user)  # of a pod: no case has groups
        known = {one.name: one.resourceClaimName for one in self._pods.store[key].status.resourceClaimStatuses}
        self.applied += known != made
        if self.applied > MOST_APPLIED and known != made:
            raise errors.InternalError("Internal error occurred: the controller applies without an end")
        await super().state(user, made)


class _Play:
    """One case."""

    def __init__(self, case: Json) -> None:
        self.case = case
        self.plane = ControlPlane(watch_s=WATCH_S)
        self.moments: list[Json] = []
        self.deletions: list[tuple[int, str]] = []
        self._stores: dict[str, dict[str, Any]] = {}
        self._labels: dict[str, str] = {}
        """By name, of generated claims."""
        self._counts: dict[str, int] = {}
        self._by_user: set[str] = set()

    async def run(self) -> list[Any]:
        plane = self.plane
        for one in self.case["objects"]:
            await plane.put(self._read(one["kind"], one["object"]))
        for kind in KINDS:
            self._stores[kind] = await plane.watch(resources.BY_KIND[kind].plural, self)
        name, factory = ACTORS[self.case["family"]]
        await plane.launch(f"controller/{name}", factory, {"events": "all"})
        await plane.runtime.begin()
        for event in self.case["events"]:
            await plane.clock.sleep_until_ns(event["atMs"] * _MILLISECOND_NS)
            self._look(event["atMs"])
            await self._happen(event)
        await plane.clock.sleep_until_ns(self.case["horizonMs"] * _MILLISECOND_NS)
        self._look(self.case["horizonMs"])
        return (await plane.client.list("events")).items

    def _read(self, kind: str, data: Json) -> Any:
        return convert.from_json(resources.BY_KIND[kind].message, self._dated(data))

    def _dated(self, data: Any) -> Any:
        """With times in the place of seconds since the start."""
        if isinstance(data, Mapping):
            return {key: self._dated(value) for key, value in data.items()}
        if isinstance(data, list):
            return [self._dated(value) for value in data]
        if isinstance(data, str) and data.startswith("@"):
            return times.format_time(self.plane.clock.unix_offset_ns // SECOND_NS + int(data[1:]))
        return data

    # --- what is seen ------------------------------------------------------------------------------------------------

    def on_add(self, obj: KubernetesObject) -> None:
        if isinstance(obj, ResourceClaim) and obj.metadata.generateName:
            owner = meta.controller_of(obj)
            assert owner is not None
            entry = f"@{owner.uid}/{obj.metadata.annotations[claims.POD_CLAIM]}"
            self._counts[entry] = self._counts.get(entry, 0) + 1
            self._labels[obj.metadata.name] = f"{entry}#{self._counts[entry]}"

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        is_told = new.metadata.HasField("deletionTimestamp") and not old.metadata.HasField("deletionTimestamp")
        if isinstance(new, core_v1_pb2.Pod) and is_told:
            self._note(new)

    def on_delete(self, old: KubernetesObject) -> None:
        if isinstance(old, core_v1_pb2.Pod) and not old.metadata.HasField("deletionTimestamp"):
            self._note(old)

    def _note(self, pod: core_v1_pb2.Pod) -> None:
        if pod.metadata.uid not in self._by_user:
            self.deletions.append((self.plane.clock.now_ns() // _MILLISECOND_NS, pod.metadata.name))

    def _look(self, at_ms: int) -> None:
        self.moments.append(
            {
                "atMs": at_ms,
                "claims": {
                    self._labels.get(one.metadata.name, one.metadata.name): _claim_state(one)
                    for one in self._stores["ResourceClaim"].values()
                },
                "pods": {one.metadata.name: self._pod_state(one) for one in self._stores["Pod"].values()},
            }
        )

    def _pod_state(self, pod: core_v1_pb2.Pod) -> Json:
        named = {one.name: one.resourceClaimName for one in pod.status.resourceClaimStatuses}
        condition = meta.get_condition(pod.status.conditions, "DisruptionTarget")
        return _filled(
            {
                "claims": {entry: self._labels.get(name, name) for entry, name in named.items()},
                "deleting": pod.metadata.HasField("deletionTimestamp"),
                "disrupted": f"{condition.reason}: {condition.message}" if condition is not None else "",
            }
        )

    # --- what happens ------------------------------------------------------------------------------------------------

    async def _happen(self, event: Json) -> None:
        plane, kind = self.plane, event["kind"]
        if event["do"] == "create":
            obj = self._read(kind, event["object"])
            if meta.namespaced_name(obj) not in self._stores[kind]:
                await plane.put(obj)
            return
        name = self._resolve(event["name"])
        old = self._stores[kind].get(f"default/{name}" if resources.BY_KIND[kind].namespaced else name)
        if old is None:
            return
        if event["do"] == "patch":
            new = self._read(kind, merged(convert.to_json(old), event["patch"]))
            new.metadata.ClearField("resourceVersion")
            await plane.change(old, lambda now: now.CopyFrom(new))
            return
        self._by_user.add(old.metadata.uid)
        if event["do"] == "remove":
            await plane.remove(old)
            return
        with contextlib.suppress(errors.NotFound):
            await plane.client.delete(resources.BY_KIND[kind].plural, name, old.metadata.namespace)

    def _resolve(self, name: str) -> str:
        """The newest claim of an entry of a pod."""
        if not name.startswith("@"):
            return name
        label = f"{name}#{self._counts.get(name, 0)}"
        return next((one for one, known in self._labels.items() if known == label), "")


def _claim_state(claim: ResourceClaim) -> Json:
    metadata, owner = claim.metadata, meta.controller_of(claim)
    return _filled(
        {
            "allocated": claim.status.HasField("allocation"),
            "reservedFor": [f"{one.name}/{one.uid}" for one in claim.status.reservedFor],
            "finalizers": list(metadata.finalizers),
            "deleting": metadata.HasField("deletionTimestamp"),
            "labels": dict(metadata.labels),
            "annotations": dict(metadata.annotations),
            "owner": "" if owner is None else f"{owner.kind}/{owner.name}/{owner.uid}",
            "base": metadata.generateName,
        }
    )


def _filled(data: Json) -> Json:
    return {key: value for key, value in data.items() if value}
