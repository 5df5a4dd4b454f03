"""Courses of trials written down by hand: what the store changed, and what a controller asked for and was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.lab.hunt.courses import Course, Notice, Read, Start, message
from kemu.lab.hunt.judging.oracles import Reference, Symptom
from kemu.lab.hunt.projects import Ignored
from kemu.lab.hunt.running.trials import Outcome
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import Transaction

OPERATOR = "operator"
END_S = 200.0
_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}
_TIME = "2026-01-01T00:00:00Z"


class Recording:
    """Times in seconds of virtual time. Objects: manifests; uids come by themselves."""

    def __init__(self) -> None:
        self.course = Course()
        self.outcome = Outcome(Path("nowhere"), self.course, now_s=END_S)
        self._versions: dict[str, int] = {}
        self._uids = -1  # that of the definition is 0
        self.put(0, _DEFINITION)

    def put(self, at_s: float, one: Mapping[str, Any], by: str = "") -> str:
        """Somebody writes an object; ``by``: a controller. Returns its key."""
        metadata = {"namespace": "default", "creationTimestamp": _TIME, **one["metadata"]}
        if one is _DEFINITION:
            del metadata["namespace"]
        key = self.key(one)
        if "uid" not in metadata:
            if not self._versions.get(key):
                self._uids += 1
            metadata["uid"] = f"{key}-{self._uids}" if not self._versions.get(key) else self._uid(key)
        version = self._versions[key] = self._versions.get(key, 0) + 1
        revision = self.course.revision + 1
        metadata["resourceVersion"] = str(revision)
        value = convert.from_manifest({**one, "metadata": metadata}).SerializeToString()
        self.course.take(_ns(at_s), Transaction(rev=revision, changes=[[0, key, value, revision, version]]))
        self._writes(at_s, by, "create" if version == 1 else "update", key)
        return key

    def remove(self, at_s: float, one: Mapping[str, Any], by: str = "") -> None:
        key = self.key(one)
        revision = self.course.revision + 1
        self.course.take(_ns(at_s), Transaction(rev=revision, changes=[[1, key, b"", 0, 0]]))
        self._versions[key] = 0
        self._writes(at_s, by, "delete", key)

    def wrote_nothing(self, at_s: float, one: Mapping[str, Any], by: str = OPERATOR, verb: str = "update") -> None:
        """A write that was accepted, and changed nothing."""
        self._writes(at_s, by, verb, self.key(one))

    def told(self, at_s: float, one: Mapping[str, Any], revision: int = 0, to: str = OPERATOR) -> None:
        self.course.notices.append(Notice(_ns(at_s), to, self.key(one), revision or self.course.revision, "MODIFIED"))

    def read(self, at_s: float, place: str, revision: int = 0, by: str = OPERATOR) -> None:
        self.course.reads.append(Read(_ns(at_s), by, place, revision or self.course.revision))

    def start(self, at_s: float, name: str = OPERATOR) -> None:
        self.course.starts.append(Start(_ns(at_s), name))

    def key(self, one: Mapping[str, Any]) -> str:
        plurals = {"PersistentVolumeClaim": "persistentvolumeclaims", "StatefulSet": "statefulsets"}
        kind = one["kind"]
        if kind == "CustomResourceDefinition":
            return f"/registry/customresourcedefinitions/{one['metadata']['name']}"
        group = one["apiVersion"].partition("/")[0]
        plural = f"{kind.lower()}s.{group}" if "example.com" in group else plurals.get(kind, f"{kind.lower()}s")
        return f"/registry/{plural}/{one['metadata'].get('namespace', 'default')}/{one['metadata']['name']}"

    def _uid(self, key: str) -> str:
        return str(message(key, self.course.values[key]).metadata.uid)

    def _writes(self, at_s: float, by: str, verb: str, key: str) -> None:
        """It was answered with the state of now. ``by``: empty for who is no controller."""
        if by:
            count = self.course.count_write(by, resources.plural_of(key), key, verb, compares=verb == "update")
            self.course.writes.append(count.answered(_ns(at_s), 200, self.course.revision))


def reference(*recordings: Recording, ignored: Sequence[Ignored] = ()) -> Reference:
    return Reference([one.outcome for one in recordings], ignored, ())


def symptoms(normal: Recording, found: Recording, *, is_stale: bool = False) -> list[Symptom]:
    found.outcome.is_stale = is_stale
    return reference(normal, normal).symptoms(found.outcome)


def _ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def config(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": dict(data or {})}


def widget(name: str, size: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
        "spec": {"size": size},
    }


def claim(name: str, modes: Sequence[str] = ("ReadWriteOnce",), **metadata: Any) -> dict[str, Any]:
    spec = {"accessModes": list(modes), "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, **metadata}, "spec": spec}


def stateful(name: str, replicas: int, **metadata: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "a:1"}]}}
    spec = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": labels},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim("x")["spec"]}],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, **metadata}, "spec": spec}


def pod(name: str, volumes: Sequence[Mapping[str, Any]] = (), node: str = "", **metadata: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "a:1"}], "volumes": list(volumes)}
    status: dict[str, Any] = {"phase": "Pending"}
    if node:
        spec["nodeName"] = node
        running = {"name": "main", "image": "a:1", "ready": True, "state": {"running": {"startedAt": _TIME}}}
        status = {"phase": "Running", "containerStatuses": [running]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec, "status": status}


def going(one: Mapping[str, Any]) -> dict[str, Any]:
    """An object that is being deleted."""
    return {**one, "metadata": {**one["metadata"], "deletionTimestamp": _TIME}}


def owned(kind: str, name: str, uid: str) -> list[dict[str, Any]]:
    version = "apps/v1" if kind == "StatefulSet" else "example.com/v1"
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}]
