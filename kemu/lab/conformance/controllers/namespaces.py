"""Recorded deletions of a namespace, repeated with the actor ``controller/namespace``.

Compared are the times of its looks at the contents, each of its writes with phase, conditions and finalizers, and what
there is before each event of the case and at its end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.controllers import namespaces
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.validation import finalizers
from kemu.lab.conformance import comparisons
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.lab.conformance.controllers import garbage
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env

Json = dict[str, Any]
M = TypeVar("M", bound=KubernetesObject)

NAME = "x"
FACTORY = "kemu.lab.conformance.controllers.namespaces:Namespaces"
RESOURCES = ("pods", "configmaps", "secrets", "services", "deployments", "roles", "leases")
_MS_NS = 1_000_000


def answer(case: Json) -> Json:
    """Raises ConversionError for a case that makes no sense."""
    play = _Play(case)
    return play.plane.run(play.run)


def agrees(expect: Json, answered: Json) -> list[str]:
    return list(comparisons.all_differences("", expect, answered))


class Namespaces(namespaces.NamespaceController):
    """The actor, whose requests fail as the case says."""

    client: _Client

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.client = _Client(env)
        self.client.play = _Play.current

    async def _estimate_s(self, namespace: core_v1_pb2.Namespace) -> int:
        self.client.play.looks.append(self.client.play.now_ms())
        self.client.estimates = True
        try:
            return await super()._estimate_s(namespace)
        finally:
            self.client.estimates = False


class _Client(clients.Client):
    play: _Play
    estimates = False
    """Asks for the pods' grace periods, which never fails."""

    async def get(self, resource: str, name: str, namespace: str = "", resource_version: str = "") -> KubernetesObject:  # type: ignore[override]
        self.play.fail(resource, "get")
        return await super().get(resource, name, namespace, resource_version)

    async def list(self, resource: str, *arguments: Any, **options: Any) -> clients.ListResult:
        if not self.estimates:
            self.play.fail(resource, "list")
        return await super().list(resource, *arguments, **options)

    async def delete_collection(self, resource: str, *arguments: Any, **options: Any) -> clients.ListResult:
        self.play.fail(resource, "deletecollection")
        return await super().delete_collection(resource, *arguments, **options)

    async def update_status(self, obj: M) -> M:
        self.play.fail("namespaces", "status")
        return self.play.written("status", await super().update_status(obj))

    async def update(self, obj: M, subresource: str = "", kind: str = "") -> M:
        self.play.fail("namespaces", subresource)
        return self.play.written(subresource, await super().update(obj, subresource, kind))


class _Play:
    """One case."""

    current: _Play

    def __init__(self, case: Json) -> None:
        _Play.current = self
        self.case = case
        self.plane = ControlPlane()
        self.looks: list[int] = []
        self._writes: list[Json] = []
        self._moments: list[Json] = []
        self._faults: list[Json] = []

    def now_ms(self) -> int:
        return self.plane.clock.now_ns() // _MS_NS

    async def run(self) -> Json:
        plane = self.plane
        space = core_v1_pb2.Namespace()
        space.metadata.name, space.metadata.uid, space.status.phase = NAME, "uid-x", "Active"
        space.spec.finalizers.extend([finalizers.KUBERNETES, *self.case["finalizers"]])
        await plane.put(space)
        for one in self.case["objects"]:
            await plane.client.create(_content(one))
        await plane.launch("controller/namespace", FACTORY)
        await plane.runtime.begin()
        for event in self.case["events"]:
            await plane.clock.sleep_until_ns(event["atMs"] * _MS_NS)
            await self._look(event["atMs"])
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                await self._happen(event)
        await plane.clock.sleep_until_ns(self.case["horizonMs"] * _MS_NS)
        await self._look(self.case["horizonMs"])
        return {"looks": self.looks, "writes": self._writes, "moments": self._moments}

    async def _happen(self, event: Json) -> None:
        client, do = self.plane.client, event["do"]
        if do == "create":
            await self.plane.put(_content(event["object"]))
        elif do == "fail":
            self._faults.append(dict(event))
        elif do == "end":
            await client.delete(event["resource"], event["name"], NAME, 0)
        elif do == "release":
            await client.patch(event["resource"], event["name"], NAME, {"metadata": {"finalizers": None}})
        elif do == "delete":
            await client.delete("namespaces", NAME)
        else:
            space = meta.copied(await client.get("namespaces", NAME))
            kept = [one for one in space.spec.finalizers if one == finalizers.KUBERNETES]
            del space.spec.finalizers[:]
            space.spec.finalizers.extend(kept)
            await client.update(space, "finalize")

    def fail(self, resource: str, verb: str) -> None:
        """Raises ApiError if the case says so."""
        for one in self._faults:
            if one["times"] and (one["resource"], one["verb"]) == (resource, verb):
                one["times"] -= 1
                if one["code"] == errors.Conflict.code:
                    raise errors.Conflict("the object has been modified")
                raise errors.InternalError(f"Internal error occurred: {verb} of {resource} fails")

    def written(self, verb: str, obj: M) -> M:
        space = cast(core_v1_pb2.Namespace, obj)
        start_s = self.plane.clock.unix_offset_ns // SECOND_NS
        conditions = {}
        for one in space.status.conditions:
            since_s = meta.unix_ns(one.lastTransitionTime) // SECOND_NS - start_s
            conditions[one.type] = f"{one.status} {one.reason} @{since_s}: {one.message}"
        self._writes.append(
            {
                "atMs": self.now_ms(),
                "verb": verb,
                "phase": space.status.phase,
                "finalizers": list(space.spec.finalizers),
                "conditions": conditions,
            }
        )
        return obj

    async def _look(self, at_ms: int) -> None:
        client = self.plane.client
        spaces = (await client.list("namespaces")).items
        contents = [
            f"{plural}/{one.metadata.name}" + " deleting" * one.metadata.HasField("deletionTimestamp")
            for plural in RESOURCES
            for one in (await client.list(plural, NAME)).items
        ]
        phase = next((one.status.phase for one in cast(Any, spaces) if one.metadata.name == NAME), "")
        self._moments.append({"atMs": at_ms, "namespace": phase, "contents": sorted(contents)})


def _content(one: Json) -> KubernetesObject:
    row = resources.BY_PLURAL[one["resource"]]
    metadata = {"name": one["name"], "namespace": NAME, "finalizers": one.get("finalizers", [])}
    obj: KubernetesObject = convert.from_json(row.message, {"metadata": metadata, **garbage.BODIES.get(row.kind, {})})
    if isinstance(obj, core_v1_pb2.Pod):
        obj.spec.terminationGracePeriodSeconds = one["graceS"]
        obj.spec.nodeName = "n" if one["runs"] else ""
    return obj
