"""What the store holds in the end, without what differs by nature, and how two such states differ.

No difference is, whoever has made the object:

* identities, versions, times, addresses, random ends of names, and text that holds them
* on which node a pod is, and where its volumes were made for that
* the order of a list whose items are the same
* what conditions say beside their type and status; of a pod's status all but its phase and conditions
* what Kubernetes' own controllers keep: Events, Leases, EndpointSlices, ControllerRevisions, Nodes, VolumeAttachments,
  old ReplicaSets; those that a controller of the hunt has written are compared, but for Events and Leases
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kemu.emulated.objects.volumes import migration
from kemu.lab.hunt.courses import Course

Fields = Mapping[str, Any]
"""Leaves of an object by their paths."""

NEVER_COMPARED = frozenset(("Event", "Lease"))
KEPT_BY_KUBERNETES = frozenset(
    ("Node", "CSINode", "EndpointSlice", "Endpoints", "ControllerRevision", "VolumeAttachment")
)
_BY_NATURE = frozenset(
    (
        "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation", "observedGeneration",
        "managedFields", "selfLink", "podIP", "podIPs", "hostIP", "hostIPs", "clusterIP", "clusterIPs",
        "nodePort", "healthCheckNodePort",
        "nodeName", "containerID", "imageID", "startTime", "lastTransitionTime", "lastUpdateTime", "lastProbeTime",
        "lastHeartbeatTime", "lastScheduleTime", "lastSuccessfulTime", "completionTime",
        "volumeName", "claimRef", "currentRevision", "updateRevision", "collisionCount",
        "kubectl.kubernetes.io/last-applied-configuration", "pod-template-hash", "controller-revision-hash",
        "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history",
        "volume.kubernetes.io/selected-node",
    )
)  # fmt: skip
_OF_CONDITIONS = frozenset(("message", "reason"))
_OF_POD_STATUS = ("phase", "conditions")
_OF_PLACES = (migration.ZONE, migration.REGION)
"""Labels that a pod, and a volume that is made for it, have from the node that it is bound to."""
_OF_NODE = ("metadata", "spec")
_PROVISIONED = "pv.kubernetes.io/provisioned-by"
_LABELS = ("name", "type", "key", "id", "ip", "uid")
"""Fields by which the items of a list are told apart."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|UTC|[+-]\d\d:?\d\d))?")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.])")
_TOKEN = re.compile(r"(kube-api-access-)[a-z0-9]{5}\b")
_WORD = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_OF_UID = re.compile(r"(?!000)(\d{5}|(?=.*[a-f])[0-9a-f]{5,})")
"""But no counter and no time: ``00012``, ``29384723``."""
_VERSION = re.compile(
    r"(hash|checksum|digest|resource-?version|revision|generation|timestamp|uid|nonce)$", re.IGNORECASE
)
_OPAQUE = re.compile(r"\d+|[0-9a-f]{6,}|[a-z0-9]{8,10}|(sha256:|md5:)[0-9a-f]+", re.IGNORECASE)


class Difference(NamedTuple):
    path: str
    before: Any
    after: Any


def normalised(course: Course, written: Collection[str]) -> dict[str, Fields]:
    """Objects in the end by kind, namespace and name. ``written``: keys that controllers of a hunt have written."""
    return {name: fields for name, (_, fields) in with_keys(course, written).items()}


def with_keys(course: Course, written: Collection[str]) -> dict[str, tuple[str, Fields]]:
    """As :func:`normalised`, with the key of each."""
    objects = {
        key: one
        for key, one in course.objects().items()
        if is_compared(course.named(key).kind, key, written) and not _is_old(one)
    }
    names = names_of(objects.values())
    groups: dict[str, list[tuple[str, Fields]]] = defaultdict(list)
    for key, one in objects.items():
        named = course.named(key)
        name = plain(names.get(named.name, named.name), {})
        groups[f"{named.kind} {named.namespace}/{name}"].append((key, fields_of(one, names)))
    found: dict[str, tuple[str, Fields]] = {}
    for identity, alike in groups.items():
        if len(alike) > 1:  # by what they are, as their names say nothing
            alike.sort(key=lambda each: repr(each[1]))
        for number, each in enumerate(alike, 1):
            found[identity if len(alike) == 1 else f"{identity}#{number}"] = each
    return found


def is_compared(kind: str, key: str, written: Collection[str]) -> bool:
    return kind not in NEVER_COMPARED and (kind not in KEPT_BY_KUBERNETES or key in written)


def names_of(objects: Collection[Mapping[str, Any]]) -> dict[str, str]:
    """Names with random ends, as they are shown: without these."""
    found: dict[str, str] = {}
    for one in objects:
        metadata = one["metadata"]
        ending = (metadata.get("labels") or {}).get("pod-template-hash", "")
        if one.get("kind") == "ReplicaSet" and ending and metadata["name"].endswith(f"-{ending}"):
            found[metadata["name"]] = f"{metadata['name'].removesuffix(ending)}*"
    for one in objects:
        prefix = prefix_of(one)
        if prefix:
            stem = prefix.removesuffix("-")
            found.setdefault(one["metadata"]["name"], f"{found[stem]}-*" if stem in found else f"{prefix}*")
    return found


def prefix_of(one: Mapping[str, Any]) -> str:
    """A name without its random end, which the API server has chosen, or a controller has made of the owner's UID, as
    Kueue does: ``job-a-54c52`` of the Job ``a``. Empty: it has none."""
    metadata = one["metadata"]
    name, prefix = metadata["name"], metadata.get("generateName", "")
    if prefix and name.startswith(prefix):
        return str(prefix)
    stem, _, end = name.rpartition("-")
    owners = [str(owner.get("name")) for owner in metadata.get("ownerReferences") or ()]
    return f"{stem}-" if _OF_UID.fullmatch(end) and stem.endswith(tuple(owners)) else ""


def fields_of(one: Mapping[str, Any], names: Mapping[str, str]) -> Fields:
    """What is compared of an object."""
    kind = one.get("kind")
    parts = {key: value for key, value in one.items() if key != "metadata"}
    if kind == "Pod" and "status" in parts:
        parts["status"] = {key: parts["status"][key] for key in _OF_POD_STATUS if key in parts["status"]}
    if kind == "Node":
        parts = {key: value for key, value in parts.items() if key in _OF_NODE}
    metadata = {
        key: value for key, value in one["metadata"].items() if key not in ("name", "namespace", "generateName")
    }
    is_made = kind == "PersistentVolume" and _PROVISIONED in (metadata.get("annotations") or {})
    if is_made and "spec" in parts:
        parts["spec"] = {key: value for key, value in parts["spec"].items() if key != "nodeAffinity"}
    if is_made or (kind == "Pod" and one.get("spec", {}).get("nodeName")):
        labels = metadata.get("labels") or {}
        metadata["labels"] = {key: value for key, value in labels.items() if key not in _OF_PLACES}
    found = dict(_leaves(parts, "", names)) | dict(_leaves(metadata, "metadata", names))
    if "deletionTimestamp" in one["metadata"]:
        found["metadata.deletionTimestamp"] = "set"
    return found


def differences(before: Fields, after: Fields) -> Iterator[Difference]:
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            yield Difference(path, before.get(path), after.get(path))


def is_opaque(found: Difference) -> bool:
    """Whether it is a hash or a version that says nothing by itself: what it is made of is compared, too."""
    leaf = re.split(r"[./\[]", found.path)[-1].rstrip("]")
    sides = [one for one in found[1:] if one is not None]
    return bool(_VERSION.search(leaf)) and len(sides) == 2 and all(_OPAQUE.fullmatch(str(one)) for one in sides)


@dataclass(frozen=True)
class Pattern:
    """Names of a kind that are called otherwise each time: the parts that they share, and how many there were."""

    parts: tuple[str, ...]
    """Empty: any."""
    least: int
    most: int

    def fits(self, identity: str) -> bool:
        found = _parts(identity)
        return len(found) == len(self.parts) and all(
            want in ("", part) for want, part in zip(self.parts, found, strict=True)
        )

    def __str__(self) -> str:
        return "-".join(part or "*" for part in self.parts)


def patterns(runs: Sequence[Collection[str]]) -> list[Pattern]:
    """Of objects that are not there in each run, by their identities."""
    groups: dict[tuple[str, int], list[list[tuple[str, ...]]]] = defaultdict(lambda: [[] for _ in runs])
    for place, run in enumerate(runs):
        for identity in run:
            parts = _parts(identity)
            groups[identity.partition("/")[0], len(parts)][place].append(parts)
    found = []
    for alike in groups.values():
        together = [one for run in alike for one in run]
        shared = tuple(each[0] if len(set(each)) == 1 else "" for each in zip(*together, strict=True))
        counts = [len(run) for run in alike]
        found.append(Pattern(shared, min(counts), max(counts)))
    return found


def _parts(identity: str) -> tuple[str, ...]:
    return tuple(re.split(r"[-.]", identity.partition("#")[0]))


def stem_of(identity: str) -> str:
    """An identity without what may be random in it: the last part of its name, and digits."""
    head, dash, _ = identity.partition("#")[0].rpartition("-")
    return f"{re.sub(r'[0-9]+', '*', head)}-*" if dash and " " in head else identity


def _is_old(one: Mapping[str, Any]) -> bool:
    """A ReplicaSet that its Deployment keeps for a way back."""
    owners = one["metadata"].get("ownerReferences") or ()
    is_of_deployment = any(owner.get("kind") == "Deployment" for owner in owners)
    return one.get("kind") == "ReplicaSet" and is_of_deployment and not one.get("spec", {}).get("replicas")


def _leaves(value: object, path: str, names: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key in sorted(value):
            if key not in _BY_NATURE:
                yield from _leaves(value[key], f"{path}.{key}" if path else key, names)
    elif isinstance(value, list):
        if path.endswith("onditions") and all(isinstance(one, Mapping) for one in value):
            value = [{key: each for key, each in one.items() if key not in _OF_CONDITIONS} for one in value]
        for label, one in _items(value, path, names):
            yield from _leaves(one, f"{path}[{label}]", names)
    elif isinstance(value, str):
        parsed = _parsed(value)
        if parsed is not None:
            yield from _leaves(parsed, path, names)
        elif not _TIME.fullmatch(value):
            yield path, plain(value, names)
    elif value not in (None, {}, []):
        yield path, value


def _items(value: Sequence[Any], path: str, names: Mapping[str, str]) -> Iterator[tuple[object, Any]]:
    """Items of a list, each with what tells it from the others, in whatever order they are."""
    for label in _LABELS:
        labels = [one.get(label) if isinstance(one, Mapping) else None for one in value]
        if labels and all(isinstance(one, str) for one in labels) and len(set(labels)) == len(labels):
            yield from ((plain(str(one), names), each) for one, each in zip(labels, value, strict=True))
            return
    if len(value) > 1:
        value = sorted(value, key=lambda one: repr(list(_leaves(one, "", names))))
    yield from enumerate(value)


def _parsed(text: str) -> object | None:
    """JSON within a text, as annotations have it."""
    if text[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) and found else None


def plain(text: str, names: Mapping[str, str]) -> str:
    """A text without identities, times, addresses and random ends of names."""
    if names:
        text = _WORD.sub(lambda found: names.get(found[0], found[0]), text)
    text = _TOKEN.sub(r"\1*", _UID.sub("<uid>", _TIME.sub("<time>", text)))
    return _ADDRESS.sub(_address, text)


def _address(found: re.Match[str]) -> str:
    """Versions of four numbers are none."""
    try:
        address = ipaddress.IPv4Address(found[0])
    except ValueError:
        return found[0]
    return "<address>" if address.is_private and not address.is_loopback and not address.is_unspecified else found[0]
