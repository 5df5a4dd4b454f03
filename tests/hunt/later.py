"""A controller that finishes each ConfigMap a minute after it has seen it."""

from __future__ import annotations

import sys
import threading

import kubernetes


def main(kubeconfig: str) -> None:
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(kubeconfig))

    def finish(name: str) -> None:
        api.patch_namespaced_config_map(name, "default", {"data": {"done": "yes"}})

    for event in kubernetes.watch.Watch().stream(api.list_namespaced_config_map, "default"):
        metadata = event["object"].metadata
        if event["type"] == "ADDED" and metadata.labels == {"work": "yes"}:
            threading.Timer(60, finish, [metadata.name]).start()


if __name__ == "__main__":
    main(sys.argv[1])
