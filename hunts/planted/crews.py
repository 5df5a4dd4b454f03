"""A small controller with planted bugs, with the official Python client: it runs a pod for each member of a Crew.

Watches tell it that something has changed, and it decides by what it reads then. ``--bug`` plants one mistake that real
operators have made; with ``CAREFUL=1`` in the environment it has none.

* ``forgetful``: pods get random names, which are written down after all are there
* ``orphans``: when it starts, it removes pods of crews that it does not see; but its view may be old
* ``moment``: it cleans up when it sees that a crew is going, and has no finalizer that waits for it
* ``relist``: when a watch has expired, it lists anew, and does not notice what is no longer there
* ``overwrite``: it writes the whole crew, as it knows it, to change one annotation
"""

from __future__ import annotations

import argparse
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

import kubernetes
from kubernetes.client.exceptions import ApiException

GROUP, VERSION, PLURAL = "planted.example.com", "v1", "crews"
NAMESPACE = "default"
CREW = f"{GROUP}/crew"
"""Label of pods, and finalizer of crews."""
READY = "ready"
"""Annotation of crews: how many pods are."""
BUGS = ("forgetful", "orphans", "moment", "relist", "overwrite")

Object = dict[str, Any]


class Crews:
    def __init__(self, kubeconfig: str, bug: str) -> None:
        client = kubernetes.config.new_client_from_config(kubeconfig)
        client.user_agent = "crews/1.0"
        self._client = client
        self._crews = kubernetes.client.CustomObjectsApi(client)
        self._pods = kubernetes.client.CoreV1Api(client)
        self._bug = bug
        self._wanted: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Names of crews that have to be looked at."""
        self._seen: dict[str, dict[str, Object]] = {"crews": {}, "pods": {}}
        """What watches have told, by name."""
        self._listed = {what: threading.Event() for what in self._seen}

    def run(self) -> None:
        for what in self._seen:
            threading.Thread(target=self._follow, args=(what,), daemon=True).start()
        for listed in self._listed.values():
            listed.wait()
        if self._bug == "orphans":
            self._remove_orphans()
        while True:
            name = self._wanted.get()
            try:
                self._reconcile(name)
            except Exception as error:  # a conflict, or a lost connection: it is tried again
                print(f"{name}: {error!r}", flush=True)
                self._wanted.put(name)

    # What is seen

    def _follow(self, what: str) -> None:
        revision = ""
        while True:
            try:
                if not revision:
                    revision = self._list(what)
                    self._listed[what].set()
                revision = self._watch(what, revision)
            except ApiException as error:
                print(f"watch of {what}: {error.status}", flush=True)
                revision = ""
            except Exception as error:  # a lost connection: it goes on from there
                print(f"watch of {what}: {error!r}", flush=True)

    def _list(self, what: str) -> str:
        """As informers do: from the cache of the API server, which may be old."""
        found = self._lister(what)(resource_version="0")
        found = found if isinstance(found, dict) else self._client.sanitize_for_serialization(found)
        seen = {one["metadata"]["name"]: one for one in found["items"]}
        gone = {} if self._bug == "relist" else self._seen[what].keys() - seen.keys()
        for name in gone:
            self._tell(what, self._seen[what].pop(name))
        for name, one in seen.items():
            self._seen[what][name] = one
            self._tell(what, one)
        return str(found["metadata"]["resourceVersion"])

    def _watch(self, what: str, revision: str) -> str:
        events = kubernetes.watch.Watch().stream(self._lister(what), resource_version=revision, timeout_seconds=300)
        for event in events:
            one = event["raw_object"]
            revision = one["metadata"]["resourceVersion"]
            if event["type"] == "DELETED":
                self._seen[what].pop(one["metadata"]["name"], None)
            else:
                self._seen[what][one["metadata"]["name"]] = one
            self._tell(what, one)
        return revision

    def _lister(self, what: str) -> Callable[..., Any]:
        def crews(**options: object) -> object:
            return self._crews.list_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, **options)

        def pods(**options: object) -> object:
            return self._pods.list_namespaced_pod(NAMESPACE, label_selector=CREW, **options)

        crews.__doc__ = pods.__doc__ = ":return: object"  # of which class events are, for Watch
        return crews if what == "crews" else pods

    def _tell(self, what: str, one: Object) -> None:
        self._wanted.put(one["metadata"]["name"] if what == "crews" else one["metadata"]["labels"][CREW])

    # What is done

    def _reconcile(self, name: str) -> None:
        crew = self._crew(name)
        if crew is None:
            return
        if crew["metadata"].get("deletionTimestamp"):
            self._clean_up(crew)
            return
        if self._bug != "moment" and CREW not in crew["metadata"].get("finalizers", ()):
            self._finalizers(crew, [*crew["metadata"].get("finalizers", ()), CREW])
            return
        if self._bug == "forgetful":
            self._run_by_random_names(crew)
        else:
            self._run_by_fixed_names(crew)
        pods = [pod for pod in self._own_pods(name) if _is_ready(pod)]
        if self._bug == "overwrite":
            annotations = crew["metadata"].setdefault("annotations", {})
            if annotations.get(READY) != str(len(pods)):
                annotations[READY] = str(len(pods))
                del crew["metadata"]["resourceVersion"]
                self._crews.patch_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, name, crew)
        elif crew["metadata"].get("annotations", {}).get(READY) != str(len(pods)):
            change = {"metadata": {"annotations": {READY: str(len(pods))}}}
            self._crews.patch_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, name, change)

    def _crew(self, name: str) -> Object | None:
        if self._bug == "overwrite":
            return self._seen["crews"].get(name)
        try:
            found: Object = self._crews.get_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, name)
            return found
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    def _own_pods(self, name: str) -> list[Object]:
        if self._bug == "relist":
            return [pod for pod in list(self._seen["pods"].values()) if pod["metadata"]["labels"][CREW] == name]
        found = self._pods.list_namespaced_pod(NAMESPACE, label_selector=f"{CREW}={name}")
        items: list[Object] = self._client.sanitize_for_serialization(found)["items"]
        return items

    def _run_by_fixed_names(self, crew: Object) -> None:
        """It does no harm to create a pod of a fixed name twice."""
        name = crew["metadata"]["name"]
        wanted = [f"{name}-{number}" for number in range(crew["spec"]["size"])]
        pods = {pod["metadata"]["name"]: pod for pod in self._own_pods(name)}
        for one in wanted:
            if one not in pods:
                try:
                    self._create(crew, {"name": one})
                except ApiException as error:
                    if error.status != 409:
                        raise
        for one in pods.keys() - set(wanted):
            self._delete(pods[one])

    def _run_by_random_names(self, crew: Object) -> None:
        members = crew.get("status", {}).get("members", [])
        if len(members) < crew["spec"]["size"]:
            for _ in range(len(members), crew["spec"]["size"]):
                members.append(self._create(crew, {"generateName": f"{crew['metadata']['name']}-"}))
            change = {"status": {"members": members}}
            name = crew["metadata"]["name"]
            self._crews.patch_namespaced_custom_object_status(GROUP, VERSION, NAMESPACE, PLURAL, name, change)

    def _create(self, crew: Object, named: Object) -> str:
        owner = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Crew", "controller": True, "blockOwnerDeletion": True}
        owner |= {key: crew["metadata"][key] for key in ("name", "uid")}
        metadata = {**named, "labels": {CREW: crew["metadata"]["name"]}}
        if self._bug != "moment":
            metadata["ownerReferences"] = [owner]
        containers = [{"name": "main", "image": "member:1"}]
        spec = {"containers": containers, "terminationGracePeriodSeconds": 1}
        return str(self._pods.create_namespaced_pod(NAMESPACE, {"metadata": metadata, "spec": spec}).metadata.name)

    def _delete(self, pod: Object) -> None:
        """This very pod: not another one that has its name by now."""
        options = {"preconditions": {"uid": pod["metadata"]["uid"]}}
        try:
            self._pods.delete_namespaced_pod(pod["metadata"]["name"], NAMESPACE, body=options)
        except ApiException as error:
            if error.status not in (404, 409):
                raise

    def _clean_up(self, crew: Object) -> None:
        """The end of the last pod brings it here again."""
        pods = self._own_pods(crew["metadata"]["name"])
        for pod in pods:
            self._delete(pod)
        finalizers = crew["metadata"].get("finalizers", ())
        if not pods and CREW in finalizers:
            self._finalizers(crew, [one for one in finalizers if one != CREW])

    def _finalizers(self, crew: Object, finalizers: list[str]) -> None:
        """Only if nobody has changed the crew meanwhile."""
        metadata = {"resourceVersion": crew["metadata"]["resourceVersion"], "finalizers": finalizers}
        name = crew["metadata"]["name"]
        self._crews.patch_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, name, {"metadata": metadata})

    def _remove_orphans(self) -> None:
        alive = {crew["metadata"]["uid"] for crew in self._seen["crews"].values()}
        for pod in list(self._seen["pods"].values()):
            if pod["metadata"]["ownerReferences"][0]["uid"] not in alive:
                self._delete(pod)


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs a pod for each member of a crew.")
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--bug", choices=BUGS, required=True)
    options = parser.parse_args()
    Crews(options.kubeconfig, "" if os.environ.get("CAREFUL") == "1" else options.bug).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
