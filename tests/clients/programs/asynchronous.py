"""With the package ``kubernetes_asyncio``: ``python -m tests.clients.programs.asynchronous KUBECONFIG NAMESPACE``."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable
from typing import Any

from kubernetes_asyncio import client, config, dynamic, watch
from kubernetes_asyncio.client import ApiException


class Steps:
    """A record of what was done and what came of it."""

    def __init__(self) -> None:
        self.done: list[list[Any]] = []

    def add(self, step: str, result: Any) -> None:
        self.done.append([step, result])

    async def attempt(self, step: str, call: Awaitable[Any]) -> Any:
        """Wait for it and note ``ok`` or the status and reason."""
        try:
            result = await call
        except ApiException as error:
            self.add(step, f"{error.status} {json.loads(error.body or '{}').get('reason')}")
            return None
        self.add(step, "ok")
        return result


async def typed(api: client.ApiClient, namespace: str) -> list[Any]:
    steps = Steps()
    core = client.CoreV1Api(api)
    body = {"metadata": {"name": "a"}, "data": {"n": "0"}}
    await steps.attempt("create", core.create_namespaced_config_map(namespace, body))
    await steps.attempt("create again", core.create_namespaced_config_map(namespace, body))
    await steps.attempt("read missing", core.read_namespaced_config_map("nosuch", namespace))
    patched = await steps.attempt("patch", core.patch_namespaced_config_map("a", namespace, {"data": {"n": "1"}}))
    steps.add("data", patched.data)
    names = [f"c-{number}" for number in range(20)]
    await asyncio.gather(*(core.create_namespaced_config_map(namespace, {"metadata": {"name": one}}) for one in names))
    listed = await core.list_namespaced_config_map(namespace)
    steps.add(
        "listed", sorted(one.metadata.name for one in listed.items if one.metadata.name in names) == sorted(names)
    )
    await steps.attempt(
        "delete collection",
        core.delete_collection_namespaced_config_map(namespace, field_selector="metadata.name!=a"),
    )
    return steps.done


async def watched(api: client.ApiClient, namespace: str) -> list[Any]:
    steps = Steps()
    core = client.CoreV1Api(api)
    listed = await core.list_namespaced_secret(namespace)

    async def write() -> None:
        await asyncio.sleep(0.2)
        await core.create_namespaced_secret(namespace, {"metadata": {"name": "w"}, "stringData": {"n": "0"}})
        await core.patch_namespaced_secret("w", namespace, {"metadata": {"labels": {"x": "y"}}})
        await core.delete_namespaced_secret("w", namespace)

    writer = asyncio.create_task(write())
    version = listed.metadata.resource_version
    async with watch.Watch() as watcher:
        async for event in watcher.stream(
            core.list_namespaced_secret, namespace, resource_version=version, timeout_seconds=10
        ):
            obj = event["object"]
            steps.add(event["type"], [obj.metadata.name, obj.data, obj.metadata.labels])
            if event["type"] == "DELETED":
                break
    await writer
    return steps.done


async def dynamic_client(api: client.ApiClient, namespace: str) -> list[Any]:
    steps = Steps()
    found = await dynamic.DynamicClient(api)
    maps = await found.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"a": "1"}}
    made = await steps.attempt("create", maps.create(body=body, namespace=namespace))
    steps.add("data", made.data.to_dict())
    listed = await maps.get(namespace=namespace, field_selector="metadata.name=d")
    steps.add("listed", [one.metadata.name for one in listed.items])
    await steps.attempt("delete", maps.delete(name="d", namespace=namespace))
    return steps.done


async def run(kubeconfig: str, namespace: str) -> dict[str, Any]:
    await config.load_kube_config(kubeconfig)
    async with client.ApiClient() as api:
        await client.CoreV1Api(api).create_namespace({"metadata": {"name": namespace}})
        return {
            "typed": await typed(api, namespace),
            "watched": await watched(api, namespace),
            "dynamic": await dynamic_client(api, namespace),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1], sys.argv[2]))))
