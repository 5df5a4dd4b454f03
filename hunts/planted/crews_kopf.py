"""A small operator with planted bugs, with kopf: it runs a pod for each member of a Crew. ``BUG`` in the environment
plants one mistake that real operators have made; with ``CAREFUL=1`` it has none.

* ``adopted``: it leaves the names of pods to ``kopf.adopt``, which makes random ones; a handler that is interrupted
  runs again from its beginning
* ``events``: it makes a pod anew when it is told that one has gone, and looks at no other time; after a relist kopf
  tells nobody what has gone meanwhile
* ``plain`` is no mistake: it makes pods when a crew comes, says when it goes, and does not look again
"""

from __future__ import annotations

import os
from typing import Any

import kopf
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

CREWS = "planted.example.com", "v1", "crews"
CREW = "planted.example.com/crew"
"""Label of pods."""
BUG = "" if os.environ.get("CAREFUL") == "1" else os.environ["BUG"]
LOOK_S = 30.0

config.load_kube_config(os.environ["KUBECONFIG"])
core = client.CoreV1Api()
kopf.on.login()(kopf.login_with_kubeconfig)


@kopf.on.create(*CREWS)
def make(name: str, namespace: str, spec: kopf.Spec, body: kopf.Body, **_: Any) -> None:
    for number in range(spec["size"]):
        make_pod(name, namespace, None if BUG == "adopted" else f"{name}-{number}", body)


def make_pod(crew: str, namespace: str, name: str | None, owner: kopf.Body | None = None) -> None:
    """It does no harm to make a pod of a fixed name twice."""
    metadata: dict[str, Any] = {"labels": {CREW: crew}}
    if name is not None:
        metadata["name"] = name
    containers = [{"name": "main", "image": "member:1"}]
    pod = {"metadata": metadata, "spec": {"containers": containers, "terminationGracePeriodSeconds": 1}}
    if owner is not None:
        kopf.adopt(pod, owner)
    try:
        core.create_namespaced_pod(namespace, pod)
    except ApiException as error:
        if error.status != 409:
            raise


if BUG == "events":

    @kopf.on.event("", "v1", "pods", labels={CREW: kopf.PRESENT})
    def replace(event: kopf.RawEvent, name: str, namespace: str, body: kopf.Body, **_: Any) -> None:
        if event["type"] == "DELETED":
            make_pod(body.metadata.labels[CREW], namespace, name)

elif BUG == "plain":

    @kopf.on.delete(*CREWS)
    def let_go(name: str, **_: Any) -> None:
        print(f"{name} goes", flush=True)

elif not BUG:

    @kopf.timer(*CREWS, interval=LOOK_S)
    def look(name: str, namespace: str, spec: kopf.Spec, body: kopf.Body, **_: Any) -> None:
        found = {
            pod.metadata.name for pod in core.list_namespaced_pod(namespace, label_selector=f"{CREW}={name}").items
        }
        for number in range(spec["size"]):
            if f"{name}-{number}" not in found:
                make_pod(name, namespace, f"{name}-{number}", body)
