"""An operator with ``kubernetes_asyncio``, run as ``python -m tests.clients.programs.asynchronous_operator``.

Its arguments are a kubeconfig and a namespace. Written by hand, as operators without a framework are: an informer that
lists and watches, a queue, a leader that is elected, a finalizer, a child by server-side apply with an owner reference,
and a status with conditions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client import ApiException
from kubernetes_asyncio.leaderelection import electionconfig, leaderelection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock

from tests.clients.programs.asynchronous import Steps

GROUP, VERSION, PLURAL, KIND = "asyncio.example.com", "v1", "sites", "Site"
FINALIZER = f"{GROUP}/cleanup"
WAIT_S = 20.0

DEFINITION = {
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": KIND, "plural": PLURAL, "singular": "site", "shortNames": ["st"]},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["host"],
                                "properties": {
                                    "host": {"type": "string", "pattern": "^[a-z.]+$"},
                                    "pages": {"type": "integer", "minimum": 1, "default": 1},
                                },
                                "x-kubernetes-validations": [
                                    {"rule": "self.host == oldSelf.host", "message": "host is immutable"}
                                ],
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "observedGeneration": {"type": "integer"},
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "required": ["type", "status"],
                                            "properties": {
                                                "type": {"type": "string"},
                                                "status": {"type": "string"},
                                                "reason": {"type": "string"},
                                            },
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


class Informer:
    """A copy of all objects, kept by a list and watches; they end after a second, so they go on often."""

    def __init__(self, custom: client.CustomObjectsApi, namespace: str) -> None:
        self._custom = custom
        self._namespace = namespace
        self.objects: dict[str, Any] = {}
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self.seen: list[list[Any]] = []
        self.lists = 0
        self.watches = 0

    async def run(self) -> None:
        while True:
            listed = await self._custom.list_namespaced_custom_object(GROUP, VERSION, self._namespace, PLURAL)
            self.lists += 1
            fresh = {one["metadata"]["name"]: one for one in listed["items"]}
            for name in sorted({*self.objects, *fresh}):
                self.queue.put_nowait(name)
            self.objects = fresh
            revision = listed["metadata"]["resourceVersion"]
            with contextlib.suppress(ApiException):
                while True:
                    revision = await self._watch(revision)

    async def _watch(self, revision: str) -> str:
        self.watches += 1
        async with watch.Watch() as watcher:
            async for event in watcher.stream(
                self._custom.list_namespaced_custom_object,
                GROUP,
                VERSION,
                self._namespace,
                PLURAL,
                resource_version=revision,
                allow_watch_bookmarks=True,
                timeout_seconds=1,
            ):
                one = event["object"]
                revision = one["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                name = one["metadata"]["name"]
                self.seen.append([event["type"], name, one["metadata"].get("generation"), one["spec"]])
                if event["type"] == "DELETED":
                    self.objects.pop(name, None)
                else:
                    self.objects[name] = one
                self.queue.put_nowait(name)
        return revision


class Operator:
    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._custom = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)
        self.informer = Informer(self._custom, namespace)
        self.done: list[list[Any]] = []
        self.terms: list[str] = []

    async def run(self) -> None:
        lock = LeaseLock("site-operator", self._namespace, "one", self._api)
        settings = electionconfig.Config(
            lock,
            lease_duration=3,
            renew_deadline=2,
            retry_period=1,
            onstarted_leading=self._lead,
            onstopped_leading=self._stopped,
        )
        await leaderelection.LeaderElection(settings).run()

    async def _stopped(self) -> None:
        self.terms.append("stopped")

    async def _lead(self) -> None:
        self.terms.append("leads")
        informer = asyncio.create_task(self.informer.run())
        try:
            while True:
                name = await self.informer.queue.get()
                site = self.informer.objects.get(name)
                if site is None:
                    continue
                try:
                    await self._reconcile(name, site)
                except ApiException as error:
                    if error.status not in (404, 409):
                        raise
                    await asyncio.sleep(0.05)
                    self.informer.queue.put_nowait(name)
        finally:
            informer.cancel()

    async def _reconcile(self, name: str, site: dict[str, Any]) -> None:
        metadata, spec = site["metadata"], site["spec"]
        finalizers = metadata.get("finalizers", [])
        if "deletionTimestamp" in metadata:
            if FINALIZER in finalizers:
                with contextlib.suppress(ApiException):
                    await self._core.delete_namespaced_config_map(f"{name}-pages", self._namespace)
                rest = [one for one in finalizers if one != FINALIZER]
                await self._patch(
                    name, {"metadata": {"finalizers": rest, "resourceVersion": metadata["resourceVersion"]}}
                )
                self.done.append(["cleaned", name])
            return
        if FINALIZER not in finalizers:
            await self._patch(
                name,
                {"metadata": {"finalizers": [*finalizers, FINALIZER], "resourceVersion": metadata["resourceVersion"]}},
            )
            self.done.append(["finalizer", name])
            return
        if site.get("status", {}).get("observedGeneration") == metadata["generation"]:
            return
        owner = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "name": name, "uid": metadata["uid"]}
        child = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-pages", "ownerReferences": [{**owner, "controller": True}]},
            "data": {f"page-{number}": spec["host"] for number in range(spec["pages"])},
        }
        applied = await self._core.patch_namespaced_config_map(
            f"{name}-pages",
            self._namespace,
            child,
            field_manager="site-operator",
            force=True,
            _content_type="application/apply-patch+yaml",
        )
        status = {
            "observedGeneration": metadata["generation"],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Applied"}],
        }
        await self._custom.patch_namespaced_custom_object_status(
            GROUP,
            VERSION,
            self._namespace,
            PLURAL,
            name,
            {"status": status},
            _content_type="application/merge-patch+json",
        )
        self.done.append(["applied", name, metadata["generation"], sorted(applied.data)])

    async def _patch(self, name: str, patch: dict[str, Any]) -> None:
        await self._custom.patch_namespaced_custom_object(
            GROUP, VERSION, self._namespace, PLURAL, name, patch, _content_type="application/merge-patch+json"
        )


async def eventually(what: str, holds: Callable[[], Awaitable[Any]]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := await holds()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {WAIT_S:.0f} s: {what}")
        await asyncio.sleep(0.05)
    return found


class User:
    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self.custom = client.CustomObjectsApi(api)
        self.core = client.CoreV1Api(api)
        self._extensions = client.ApiextensionsV1Api(api)
        self._namespace = namespace
        self._where = GROUP, VERSION, namespace, PLURAL
        self.steps = Steps()

    async def define(self) -> None:
        await self.core.create_namespace({"metadata": {"name": self._namespace}})
        await self._extensions.create_custom_resource_definition(DEFINITION)

        async def established() -> bool:
            found = await self._extensions.read_custom_resource_definition(f"{PLURAL}.{GROUP}")
            return any(one.type == "Established" and one.status == "True" for one in found.status.conditions or ())

        await eventually("the definition is established", established)

        async def served() -> bool:
            with contextlib.suppress(ApiException):
                await self.custom.list_namespaced_custom_object(*self._where)
                return True
            return False

        await eventually("its kind is served", served)

    async def create(self, name: str, **spec: Any) -> Any:
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": name}, "spec": spec}
        return await self.custom.create_namespaced_custom_object(*self._where, body)

    async def patch(self, name: str, **spec: Any) -> Any:
        return await self.custom.patch_namespaced_custom_object(
            *self._where, name, {"spec": spec}, _content_type="application/merge-patch+json"
        )

    async def get(self, name: str) -> Any:
        try:
            return await self.custom.get_namespaced_custom_object(*self._where, name)
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    async def ready(self, name: str, generation: int) -> None:
        async def observed() -> bool:
            found = await self.get(name)
            return found is not None and found.get("status", {}).get("observedGeneration") == generation

        await eventually(f"{name} is ready", observed)
        found = await self.get(name)
        child = await self.core.read_namespaced_config_map(f"{name}-pages", self._namespace)
        owner = child.metadata.owner_references[0]
        self.steps.add(
            f"{name} is ready",
            [
                found["spec"],
                found["status"],
                found["metadata"]["finalizers"],
                found["metadata"]["generation"],
                child.data,
                [owner.kind, owner.name, owner.controller, owner.uid == found["metadata"]["uid"]],
                sorted((one.manager, one.operation) for one in child.metadata.managed_fields),
            ],
        )

    async def refused(self, step: str, call: Awaitable[Any]) -> None:
        try:
            await call
        except ApiException as error:
            self.steps.add(step, [error.status, json.loads(error.body)["message"]])
        else:
            self.steps.add(step, "ok")


@contextlib.asynccontextmanager
async def running(operator: Operator) -> AsyncIterator[None]:
    task = asyncio.create_task(operator.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def run(kubeconfig: str, namespace: str) -> dict[str, Any]:
    await config.load_kube_config(kubeconfig)
    async with client.ApiClient() as api:
        user = User(api, namespace)
        await user.define()
        operator = Operator(api, namespace)
        async with running(operator):

            async def listens() -> bool:
                return operator.informer.lists > 0

            await eventually("the operator leads and has listed", listens)
            await user.create("a", host="example.com")
            await user.ready("a", 1)
            await user.patch("a", pages=3)
            await user.ready("a", 2)
            await user.refused("another host", user.patch("a", host="other.example.com"))
            await user.refused("no host", user.create("b", pages=1))
            await user.refused("no pages", user.create("b", host="example.com", pages=0))
            await user.custom.delete_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, "a")

            async def gone() -> bool:
                return await user.get("a") is None

            await eventually("a is gone", gone)

            async def is_told() -> bool:
                return any(one[0] == "DELETED" for one in operator.informer.seen)

            await eventually("the operator knows", is_told)
            left = await user.core.list_namespaced_config_map(namespace)
            user.steps.add("left", [one.metadata.name for one in left.items if one.metadata.name != "kube-root-ca.crt"])
            user.steps.add("done", operator.done)
            user.steps.add("seen", operator.informer.seen)
            user.steps.add("lists", operator.informer.lists)
            user.steps.add("terms", list(operator.terms))

            async def goes_on() -> bool:
                return operator.informer.watches > 1

            await eventually("a watch that ended goes on", goes_on)
            lease = await client.CoordinationV1Api(api).read_namespaced_lease("site-operator", namespace)
            user.steps.add("leader", [lease.spec.holder_identity, lease.spec.lease_duration_seconds])
    return {"steps": user.steps.done}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1], sys.argv[2]))))
