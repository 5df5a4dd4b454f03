"""With the package ``kubernetes``: run as ``python -m tests.clients.programs.synchronous KUBECONFIG NAMESPACE``."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from kubernetes import client, config, dynamic, watch
from kubernetes.client import ApiException
from kubernetes.leaderelection import leaderelection
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock


class Steps:
    """A record of what was done and what came of it."""

    def __init__(self) -> None:
        self.done: list[list[Any]] = []

    def add(self, step: str, result: Any) -> None:
        self.done.append([step, result])

    def attempt(self, step: str, call: Any) -> Any:
        """Call it and note ``ok`` or the status and reason."""
        try:
            result = call()
        except ApiException as error:
            try:
                reason = json.loads(error.body or "{}").get("reason")
            except (TypeError, ValueError):
                reason = None
            self.add(step, f"{error.status} {reason}")
            return None
        self.add(step, "ok")
        return result


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "python"}},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}],
            **spec,
        },
    }


def typed(api: client.ApiClient, namespace: str) -> list[Any]:
    steps = Steps()
    core = client.CoreV1Api(api)
    made = steps.attempt("create", lambda: core.create_namespaced_pod(namespace, pod("a")))
    assert made is not None
    steps.add("defaults", [made.status.phase, made.spec.restart_policy, made.metadata.generation])
    steps.attempt("create again", lambda: core.create_namespaced_pod(namespace, pod("a")))
    steps.attempt("create invalid", lambda: core.create_namespaced_pod(namespace, pod("B_")))
    steps.attempt("read missing", lambda: core.read_namespaced_pod("nosuch", namespace))
    made.metadata.labels["round"] = "1"
    replaced = steps.attempt("replace", lambda: core.replace_namespaced_pod("a", namespace, made))
    steps.add("label", replaced.metadata.labels["round"])
    steps.attempt("replace stale", lambda: core.replace_namespaced_pod("a", namespace, made))
    patched = steps.attempt(
        "strategic patch",
        lambda: core.patch_namespaced_pod(
            "a", namespace, {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}
        ),
    )
    steps.add("image", patched.spec.containers[0].image)
    patched = steps.attempt(
        "JSON patch",
        lambda: core.patch_namespaced_pod("a", namespace, [{"op": "add", "path": "/metadata/labels/j", "value": "1"}]),
    )
    steps.add("label", patched.metadata.labels["j"])
    condition = {"type": "Example", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    patched = steps.attempt(
        "patch status",
        lambda: core.patch_namespaced_pod_status("a", namespace, {"status": {"conditions": [condition]}}),
    )
    steps.add("conditions", [one.type for one in patched.status.conditions])
    steps.attempt(
        "dry run", lambda: core.create_namespaced_pod(namespace, pod("dry"), dry_run="All", field_manager="python")
    )
    steps.attempt("read it", lambda: core.read_namespaced_pod("dry", namespace))
    for number in range(5):
        core.create_namespaced_config_map(
            namespace, {"metadata": {"name": f"m-{number}", "labels": {"n": str(number)}}}
        )
    page = core.list_namespaced_config_map(namespace, limit=3)
    rest = core.list_namespaced_config_map(namespace, limit=3, _continue=page.metadata._continue)
    steps.add("pages", [len(page.items), len(rest.items), rest.metadata._continue])
    chosen = core.list_namespaced_config_map(namespace, label_selector="n in (1,2),n!=2")
    steps.add("label selector", [one.metadata.name for one in chosen.items])
    steps.attempt("bad selector", lambda: core.list_namespaced_config_map(namespace, label_selector="a in"))
    steps.attempt(
        "evict",
        lambda: core.create_namespaced_pod_eviction(
            "a", namespace, client.V1Eviction(metadata=client.V1ObjectMeta(name="a", namespace=namespace))
        ),
    )
    steps.attempt("evict missing", lambda: core.create_namespaced_pod_eviction("a", namespace, client.V1Eviction()))
    steps.attempt("delete", lambda: core.delete_namespaced_config_map("m-0", namespace))
    steps.attempt(
        "delete collection", lambda: core.delete_collection_namespaced_config_map(namespace, label_selector="n")
    )
    steps.add("left", len(core.list_namespaced_config_map(namespace, label_selector="n").items))
    access = client.V1SelfSubjectAccessReview(
        spec={"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": namespace}}
    )
    review = client.AuthorizationV1Api(api).create_self_subject_access_review(access)
    steps.add("may create pods", review.status.allowed)
    steps.add("version", client.VersionApi(api).get_code().major)
    steps.add("node kinds", core.list_node().kind)
    return steps.done


def watched(api: client.ApiClient, namespace: str) -> list[Any]:
    steps = Steps()
    core = client.CoreV1Api(api)
    listed = core.list_namespaced_config_map(namespace)

    def write() -> None:
        time.sleep(0.2)
        core.create_namespaced_config_map(namespace, {"metadata": {"name": "w"}, "data": {"n": "0"}})
        core.patch_namespaced_config_map("w", namespace, {"data": {"n": "1"}})
        core.delete_namespaced_config_map("w", namespace)

    writer = threading.Thread(target=write)
    writer.start()
    watcher = watch.Watch()
    for event in watcher.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=listed.metadata.resource_version,
        timeout_seconds=10,
    ):
        obj = event["object"]
        steps.add(event["type"], [obj.metadata.name, obj.data])
        if event["type"] == "DELETED":
            watcher.stop()
    writer.join()
    start = time.monotonic()
    events = list(watch.Watch().stream(core.list_namespaced_secret, namespace, timeout_seconds=1))
    steps.add("watch of nothing ends", [len(events), 0.5 < time.monotonic() - start < 5])
    return steps.done


def expired(api: client.ApiClient, namespace: str) -> str:
    """What a watch from resource version 1 raises, after a compaction."""
    core = client.CoreV1Api(api)
    try:
        for event in watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version="1", timeout_seconds=2
        ):
            return str(event["type"])
    except ApiException as error:
        return f"ApiException {error.status}"
    return "nothing"


def dynamic_client(api: client.ApiClient, namespace: str) -> list[Any]:
    steps = Steps()
    found = dynamic.DynamicClient(api)
    deployments = found.resources.get(api_version="apps/v1", kind="Deployment")
    steps.add("found", [deployments.name, deployments.namespaced, sorted(deployments.verbs)])
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"a": "1"}}
    steps.attempt("create", lambda: maps.create(body=body, namespace=namespace))
    patched = steps.attempt(
        "merge patch",
        lambda: maps.patch(
            body={"data": {"a": None, "b": "2"}},
            name="d",
            namespace=namespace,
            content_type="application/merge-patch+json",
        ),
    )
    steps.add("data", patched.data.to_dict())
    applied = dict(body, data={"c": "3"})
    done = steps.attempt(
        "apply",
        lambda: maps.server_side_apply(body=applied, name="d", namespace=namespace, field_manager="python"),
    )
    steps.add("data", done.data.to_dict())
    applied = dict(body, data={"b": "4"})
    steps.attempt(
        "apply against another",
        lambda: maps.server_side_apply(body=applied, name="d", namespace=namespace, field_manager="python"),
    )
    steps.add("listed", [one.metadata.name for one in maps.get(namespace=namespace, label_selector="!n").items])
    steps.attempt("delete", lambda: maps.delete(name="d", namespace=namespace))
    try:
        found.resources.get(api_version="example.com/v1", kind="Nothing")
    except dynamic.exceptions.ResourceNotFoundError:
        steps.add("unknown kind", "ResourceNotFoundError")
    return steps.done


def elected(api: client.ApiClient, namespace: str) -> list[Any]:
    """Leader election with a lock on a Lease: wins, holds it for some rounds, and ends by losing the connection."""
    steps = Steps()
    led = threading.Event()
    lock = LeaseLock("python-leader", namespace, "one")
    settings = Config(
        lock, lease_duration=3, renew_deadline=2, retry_period=1, onstarted_leading=led.set, onstopped_leading=None
    )
    threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True).start()
    steps.add("leads", led.wait(10))
    time.sleep(2.5)
    lease = client.CoordinationV1Api(api).read_namespaced_lease("python-leader", namespace)
    spec = lease.spec
    steps.add("held", [spec.holder_identity, spec.lease_duration_seconds, spec.renew_time > spec.acquire_time])
    return steps.done


def run(kubeconfig: str, namespace: str) -> dict[str, Any]:
    config.load_kube_config(kubeconfig)
    api = client.ApiClient()
    client.CoreV1Api(api).create_namespace({"metadata": {"name": namespace}})
    return {
        "typed": typed(api, namespace),
        "watched": watched(api, namespace),
        "dynamic": dynamic_client(api, namespace),
        "elected": elected(api, namespace),
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2])))
