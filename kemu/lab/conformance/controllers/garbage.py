"""Recorded cascades of deletions, repeated with the actor ``controller/garbage-collector``.

Both answer the steps of a case (create, delete with a policy, release finalizers, change owners) and wait until nothing
changes. The answer has the codes of each step, what is left after it, and which references the collector warned about.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.controllers.garbage import collector
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance import comparisons
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

Json = dict[str, Any]

FACTORY = "kemu.lab.conformance.controllers.garbage:Collector"
QUIET_S = 20
"""Longer than a collector needs that meets no failures."""
WATCH_S = 0.001
DELETE_S = 0.003
"""A deletion takes longer than other requests and than news of them, which may come before it."""
PAUSE_S = 1
"""Between two requests of a step."""
HOLD = "example.com/hold"
"""The finalizer that users take away."""
KINDS = ("ConfigMap", "Secret", "ReplicaSet", "ReplicationController", "Job", "Role", "Pod", "ClusterRole")
LABEL = "case"
_TEMPLATE: Json = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]},
}
BODIES: dict[str, Json] = {
    "ReplicaSet": {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE}},
    "ReplicationController": {"spec": {"replicas": 0, "selector": {"app": "x"}, "template": _TEMPLATE}},
    "Job": {"spec": {"template": {"spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}}},
    "Pod": {"spec": _TEMPLATE["spec"]},
    "Deployment": {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE}},
    "Service": {"spec": {"ports": [{"port": 80}]}},
}
"""What a valid object of a kind needs."""


def answer(case: Json) -> Json:
    """Raises ConversionError for a case that makes no sense."""
    plane = ControlPlane(watch_s=WATCH_S)
    return plane.run(lambda: _play(plane, case))


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs from the record; where workers raced, from the nearest of its outcomes."""
    found = [list(comparisons.all_differences("", one, answered)) for one in expect.get("outcomes") or [expect]]
    return min(found, key=len)


class Collector(collector.GarbageCollector):
    """The actor, with an API server that takes its time for deletions."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.client = _Client(env)


class _Client(clients.Client):
    __slots__ = ()

    async def delete(self, *arguments: Any, **options: Any) -> KubernetesObject:
        await self.env.clock.sleep(DELETE_S)
        return await super().delete(*arguments, **options)


async def _play(plane: ControlPlane, case: Json) -> Json:
    await plane.launch("controller/garbage-collector", FACTORY, {"events": "all"})
    await plane.runtime.begin()
    world = World(case, case["id"])
    for space in world.spaces:
        await plane.client.create(convert.from_json(resources.BY_KIND["Namespace"].message, space))
    steps = []
    for step in case["steps"]:
        codes = []
        for name in step["names"]:
            try:
                await _act(plane, world, step, name)
                codes.append(0)
            except errors.ApiError as error:
                codes.append(error.code)
            await plane.clock.sleep(PAUSE_S)
        await plane.clock.sleep(QUIET_S)
        left = [
            convert.to_manifest(obj)
            for kind in KINDS
            for obj in (await plane.client.list(resources.BY_KIND[kind].plural, label_selector=world.selector)).items
        ]
        steps.append({"codes": codes, "left": world.left(left)})
    found = [convert.to_manifest(event) for event in (await plane.client.list("events")).items]
    return {"steps": steps, "events": world.warnings(found)}


async def _act(plane: ControlPlane, world: World, step: Json, name: str) -> None:
    kind, where = world.kind(name), world.place(name)
    row = resources.BY_KIND[kind]
    if step["do"] == "create":
        obj: Any = convert.from_json(row.message, world.manifest(name))
        world.made(name, (await plane.client.create(obj)).metadata.uid)
    elif step["do"] == "delete":
        await plane.client.delete(row.plural, *where, propagation_policy=step.get("policy", ""))
    else:
        now = convert.to_manifest(await plane.client.get(row.plural, *where))
        await plane.client.patch(row.plural, *where, world.patch(step, now))


class World:
    """What the objects of a case are called in a cluster that may have those of others, too."""

    def __init__(self, case: Json, called: str) -> None:
        self._objects = {one["name"]: one for one in case["objects"]}
        self._called = called
        self._uids = {"nothing": f"{called}-nothing"}
        self.selector = f"{LABEL}={called}"
        self.spaces = [self._named({"apiVersion": "v1", "kind": "Namespace"}, f"{called}-{i}") for i in range(2)]

    def _named(self, body: Json, name: str) -> Json:
        return {**copy.deepcopy(body), "metadata": {"name": name, "labels": {LABEL: self._called}}}

    def kind(self, name: str) -> str:
        return str(self._objects[name]["kind"])

    def place(self, name: str) -> tuple[str, str]:
        """The name of an object in the cluster, and its namespace."""
        namespaced = resources.BY_KIND[self.kind(name)].namespaced
        return f"{self._called}-{name}", f"{self._called}-{self._objects[name]['space']}" if namespaced else ""

    def made(self, name: str, uid: str) -> None:
        self._uids[name] = uid

    def manifest(self, name: str) -> Json:
        one, row = self._objects[name], resources.BY_KIND[self.kind(name)]
        full, namespace = self.place(name)
        found = self._named({"apiVersion": row.api_version, "kind": row.kind, **BODIES.get(row.kind, {})}, full)
        if namespace:
            found["metadata"]["namespace"] = namespace
        found["metadata"]["finalizers"] = one.get("finalizers", [])
        found["metadata"]["ownerReferences"] = self._references(one["owners"])
        return found

    def _references(self, owners: Iterable[Json]) -> list[Json]:
        found = []
        for owner in owners:
            of = owner["of"]
            kind = owner.get("kind") or (self.kind(of) if of in self._objects else "ConfigMap")
            version = resources.BY_KIND[kind].api_version if kind in resources.BY_KIND else "example.com/v1"
            reference: Json = {
                "apiVersion": version,
                "kind": kind,
                "name": owner.get("name") or f"{self._called}-{of}",
                "uid": self._uids.get(of, f"{self._called}-{of}"),
            }
            if "block" in owner:
                reference["blockOwnerDeletion"] = owner["block"]
            if "controller" in owner:
                reference["controller"] = owner["controller"]
            found.append(reference)
        return found

    def patch(self, step: Json, now: Mapping[str, Any]) -> Json:
        """A JSON merge patch, which another write must not come before."""
        metadata = now["metadata"]
        changes: Json = {"resourceVersion": metadata["resourceVersion"]}
        if step["do"] == "release":
            changes["finalizers"] = [one for one in metadata.get("finalizers", []) if one != HOLD]
        else:
            changes["ownerReferences"] = self._references(step["owners"])
        return {"metadata": changes}

    def left(self, manifests: Iterable[Json]) -> Json:
        """What is compared of the objects that there are."""
        return {
            one["metadata"]["name"].removeprefix(f"{self._called}-"): {
                "deleting": "deletionTimestamp" in one["metadata"],
                "finalizers": one["metadata"].get("finalizers", []),
                "owners": [self._plain(owner) for owner in one["metadata"].get("ownerReferences", [])],
            }
            for one in manifests
        }

    def _plain(self, owner: Json) -> str:
        flags = [flag for flag in ("blockOwnerDeletion", "controller") if owner.get(flag)]
        text = f"{owner['apiVersion']} {owner['kind']} {owner['name']} {owner['uid']}"
        return " ".join([self._without_names(text), *flags])

    def _without_names(self, text: str) -> str:
        for name, uid in self._uids.items():
            text = text.replace(uid, f"uid-of-{name}")
        return text.replace(self._called, "case")

    def warnings(self, events: Iterable[Json]) -> list[str]:
        texts = {
            self._without_names(f"{one['involvedObject']['name']} {one['type']} {one['reason']}: {one['message']}")
            for one in events
            if one["involvedObject"]["name"].startswith(f"{self._called}-")
        }
        return sorted(texts)
