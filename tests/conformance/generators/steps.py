"""Steps of sequences of writes to objects of several kinds."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from kemu.emulated.objects import resources

Json = dict[str, Any]
Draw = random.Random

SPACE, OTHER = "n", "m"
"""Namespaces."""
WORKLOADS = ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs", "replicationcontrollers",
              "podtemplates")  # fmt: skip


def step(
    verb: str, plural: str, name: str, body: Json | list[Json] | None = None, space: str = SPACE, **more: Any
) -> Json:
    resource = resources.BY_PLURAL[plural]
    found = {"verb": verb, "resource": plural, "name": name, "manager": "alice", **more}
    if resource.namespaced:
        found["namespace"] = space
    if body is not None:
        found["body"] = body
    return found


def create(plural: str, body: Json, space: str = SPACE, **more: Any) -> Json:
    return step("create", plural, body["metadata"]["name"], body, space, **more)


def made(plural: str, name: str, space: str = SPACE, **fields: Any) -> Json:
    resource = resources.BY_PLURAL[plural]
    metadata: Json = {"name": name, **({"namespace": space} if resource.namespaced else {})}
    for field in ("labels", "annotations", "ownerReferences"):
        if field in fields:
            metadata[field] = fields.pop(field)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}


def new_space(draw: Draw, labels: Json | None = None, name: str = SPACE) -> Iterator[Json]:
    yield create("namespaces", made("namespaces", name, **({"labels": labels} if labels else {})))
    yield create("serviceaccounts", made("serviceaccounts", "default", name), name)


def plain_spec(draw: Draw) -> Json:
    return {"containers": [{"name": "c", "image": "i"}]}


def pod_step(name: str, spec: Json, space: str = SPACE, **metadata: Any) -> Json:
    return create("pods", made("pods", name, space, spec=spec, **metadata), space)


def workload(draw: Draw, plural: str, name: str, template: Json, space: str = SPACE) -> Json:
    template = copy.deepcopy(template)
    template.setdefault("metadata", {}).setdefault("labels", {})["app"] = "a"
    spec: Json = {"template": template}
    if plural == "podtemplates":
        return made(plural, name, space, template=template)
    if plural in ("jobs", "cronjobs"):
        template["spec"]["restartPolicy"] = "Never"
        if plural == "cronjobs":
            return made(plural, name, space, spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": spec}})
        spec |= {"manualSelector": True, "selector": {"matchLabels": {"app": "a"}}}
    elif plural == "replicationcontrollers":
        spec["selector"] = {"app": "a"}
    else:
        spec["selector"] = {"matchLabels": {"app": "a"}}
        if plural == "statefulsets":
            spec["serviceName"] = "s"
    return made(plural, name, space, spec=spec)
