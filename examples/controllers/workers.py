"""A small controller, with the official Python client: it runs a pod for each ConfigMap labelled ``work: "yes"``, and
writes the pod's name into it.

``careful=False`` has three bugs that many controllers have had:

* it gives up when its update meets a conflict, or another error;
* when its watch is told 410 Expired, it goes on watching from the same revision, and never lists again;
* it creates a pod under a new name whenever it sees none, though what it sees may be old.

``test_workers.py`` finds each of them by a fault of kemu, in a cluster whose minutes take no time.
"""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

import kubernetes
from kubernetes.client.exceptions import ApiException

NAMESPACE = "default"


class Workers(threading.Thread):
    def __init__(self, kubeconfig: str, *, careful: bool) -> None:
        super().__init__(name="workers", daemon=True)
        client = kubernetes.config.new_client_from_config(kubeconfig)
        client.user_agent = "workers/1.0"
        self._client = client
        self._api = kubernetes.client.CoreV1Api(client)
        self._careful = careful
        self._over = threading.Event()
        self._watch: Any = None

    def close(self) -> None:
        self._over.set()
        if self._watch is not None:
            self._watch.stop()

    def run(self) -> None:
        revision = self._list()
        while not self._over.is_set():
            try:
                revision = self._follow(revision)
            except ApiException as error:
                if error.status == 410 and self._careful:
                    revision = self._list()
                self._over.wait(0.02)
            except Exception:  # the connection was lost
                self._over.wait(0.02)
        self._client.close()

    def _list(self) -> str:
        found = self._api.list_namespaced_config_map(NAMESPACE, label_selector="work=yes")
        for each in found.items:
            self._handle(each.metadata.name)
        return str(found.metadata.resource_version)

    def _follow(self, revision: str) -> str:
        self._watch = kubernetes.watch.Watch()
        events = self._watch.stream(
            self._api.list_namespaced_config_map,
            NAMESPACE,
            label_selector="work=yes",
            resource_version=revision,
            timeout_seconds=5,
        )
        for event in events:
            revision = event["object"].metadata.resource_version
            if event["type"] != "DELETED":
                self._handle(event["object"].metadata.name)
        return revision

    def _handle(self, name: str) -> None:
        pods = self._api.list_namespaced_pod(NAMESPACE, label_selector=f"work-of={name}").items
        pod = pods[0].metadata.name if pods else self._create(name)
        while True:
            work = self._api.read_namespaced_config_map(name, NAMESPACE)
            if (work.data or {}).get("pod"):
                return
            work.data = {**(work.data or {}), "pod": pod}
            try:
                self._api.replace_namespaced_config_map(name, NAMESPACE, work)
                return
            except ApiException as error:
                if not self._careful:
                    return
                if error.status != 409:
                    raise

    def _create(self, name: str) -> str:
        """A fixed name makes it harmless to create the same pod twice."""
        named = {"name": f"{name}-worker"} if self._careful else {"generateName": f"{name}-"}
        pod = {
            "metadata": {**named, "labels": {"work-of": name}},
            "spec": {"containers": [{"name": "main", "image": "worker:1"}]},
        }
        try:
            return str(self._api.create_namespaced_pod(NAMESPACE, pod).metadata.name)
        except ApiException as error:
            if error.status != 409:
                raise
            return f"{name}-worker"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--careful", action="store_true", help="without the three bugs")
    options = parser.parse_args()
    Workers(options.kubeconfig, careful=options.careful).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
