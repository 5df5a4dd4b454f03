"""Objects as a cluster gives them away (``kubectl get -o yaml``): without what servers have written there.

Role: used by :mod:`kemu.lab.scenario.loading.objects.manifest_files` for every object. What servers write says nothing
about what is wanted: a status of another cluster keeps controllers from acting, UIDs refer to objects that are no more.
An object without any trace of a server was written by a person, who means the status that it states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

OF_SERVERS = (
    "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp",
    "deletionGracePeriodSeconds",
)  # fmt: skip
"""Fields of the metadata that the API server sets, whatever an object states."""
_OF_STATIC_PODS = "kubernetes.io/config."
_MIRROR = f"{_OF_STATIC_PODS}mirror"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_KEPT = {
    "Node": ("capacity", "allocatable", "addresses", "nodeInfo", "images"),
    "Job": ("succeeded", "failed", "completedIndexes", "failedIndexes"),
    "ResourceQuota": ("hard", "used"),
    "ResourceClaim": ("allocation", "reservedFor", "devices"),
    "Pod": ("resourceClaimStatuses", "extendedResourceClaimStatus"),
}
"""What of a status says what machine a Node is, how far a Job has come, so that it counts no pod a second time, and
that a quota counts from the first moment on, and which devices a pod has."""
_TAINTS_BY_CONTROLLERS = (
    "not-ready", "unreachable", "unschedulable", "memory-pressure", "disk-pressure", "pid-pressure",
    "network-unavailable",
)  # fmt: skip
"""Below ``node.kubernetes.io/``: taints that say how a node was."""


class Dropped:
    """What was left out of all objects."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        """By field, or what else it is, and kind."""

    def __str__(self) -> str:
        """``uid, resourceVersion (3 Pod), status (2 Pod)``."""
        fields: dict[str, dict[str, int]] = {}
        for (field, kind), count in self.counts.items():
            fields.setdefault(field, {})[kind] = count
        alike: dict[str, list[str]] = {}
        for field, kinds in fields.items():
            alike.setdefault(_counted(kinds), []).append(field)
        return "; ".join(f"{', '.join(names)} ({counts})" for counts, names in alike.items())


def _counted(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def cleaned(data: Mapping[str, Any], dropped: Dropped, *, is_dumped: bool = False) -> Any:
    """The same object without what servers wrote; itself where there is nothing of that kind.

    ``is_dumped``: it comes from a cluster, also where no trace tells it.
    """
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict) or not isinstance(data.get("kind"), str):
        return data
    kind, spec = data["kind"], data.get("spec")
    status = data.get("status")
    found = [name for name in OF_SERVERS if name in metadata]
    comes_from_server = (
        is_dumped
        or any(metadata[name] is not None for name in found)
        or (isinstance(status, dict) and "observedGeneration" in status)
    )
    is_empty = "status" in data and not status
    if not found and not comes_from_server and not is_empty:
        return data
    data = {**data, "metadata": {key: value for key, value in metadata.items() if key not in found}}
    for name in found:
        if metadata[name] is not None:
            dropped.counts[name, kind] += 1
    if is_empty:
        del data["status"]
    if not comes_from_server:
        return data
    if isinstance(status, dict) and status:
        _clean_status(data, status, dropped)
    if isinstance(spec, dict):
        clean = _SPECS.get(kind)
        if clean is not None:
            clean(data, dict(spec), dropped)
    return data


Name = tuple[str, str, str]
"""Kind, namespace and name."""


def name_of(data: Any) -> Name:
    """Empty for what is no object."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict):
        return "", "", ""
    return str(data.get("kind")), str(metadata.get("namespace", "default")), str(metadata.get("name"))


def owned(data: dict[str, Any], known: Collection[Name], dropped: Dropped) -> dict[str, Any]:
    """The same object without owners that are not there: it would be taken for garbage. A Node that a kubelet
    registers is none of those that are."""
    metadata = data["metadata"]
    stated = metadata.get("ownerReferences")
    if not isinstance(stated, list):
        return data
    namespace = str(metadata.get("namespace", "default"))
    kept = [
        each
        for each in stated
        if not isinstance(each, dict)
        or (each.get("kind") != "Node" and (str(each.get("kind")), namespace, str(each.get("name"))) in known)
    ]
    if len(kept) == len(stated):
        return data
    dropped.counts["owners that are not there", data["kind"]] += 1
    metadata = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    return {**data, "metadata": {**metadata, **({"ownerReferences": kept} if kept else {})}}


def _clean_status(data: dict[str, Any], status: Mapping[str, Any], dropped: Dropped) -> None:
    kind = data["kind"]
    if _has_ended(kind, status):
        return  # It would start anew.
    kept = {key: value for key, value in status.items() if key in _KEPT.get(kind, ())}
    rest = [key for key in status if key not in kept]
    if kept:
        data["status"] = kept
        if rest:
            dropped.counts["rest of status", kind] += 1
    else:
        del data["status"]
        dropped.counts["status", kind] += 1


def _has_ended(kind: str, status: Mapping[str, Any]) -> bool:
    if kind == "Pod":
        return status.get("phase") in ("Succeeded", "Failed")
    conditions = status.get("conditions")
    return kind == "Job" and any(
        isinstance(one, dict) and one.get("type") in ("Complete", "Failed") and one.get("status") == "True"
        for one in (conditions if isinstance(conditions, list) else ())
    )


def _clean_volume(data: dict[str, Any], spec: dict[str, Any], dropped: Dropped) -> None:
    """The claim of a volume is known by its name: its UID is another one now."""
    reference = spec.get("claimRef")
    if isinstance(reference, dict) and "uid" in reference:
        spec["claimRef"] = {key: value for key, value in reference.items() if key not in ("uid", "resourceVersion")}
        data["spec"] = spec
        dropped.counts["spec.claimRef.uid", data["kind"]] += 1


def _clean_claim(data: dict[str, Any], spec: dict[str, Any], dropped: Dropped) -> None:
    """A claim is bound to its volume anew."""
    annotations = data["metadata"].get("annotations")
    if isinstance(annotations, dict) and _BIND_COMPLETED in annotations:
        rest = {key: value for key, value in annotations.items() if key != _BIND_COMPLETED}
        data["metadata"] = {**data["metadata"], "annotations": rest}
        dropped.counts[f"annotation {_BIND_COMPLETED}", data["kind"]] += 1


def _clean_job(data: dict[str, Any], spec: dict[str, Any], dropped: Dropped) -> None:
    """The selector that the API server has made of the UID of a Job stays, as its pods have labels of that UID."""
    if "selector" in spec and not spec.get("manualSelector"):
        data["spec"] = {**spec, "manualSelector": True}


def _clean_node(data: dict[str, Any], spec: dict[str, Any], dropped: Dropped) -> None:
    """Taints that say how a node was, not what it is for."""
    stated = spec.get("taints")
    if not isinstance(stated, list):
        return
    kept = [
        taint
        for taint in stated
        if not isinstance(taint, dict)
        or str(taint.get("key")) not in [f"node.kubernetes.io/{name}" for name in _TAINTS_BY_CONTROLLERS]
    ]
    if len(kept) < len(stated):
        data["spec"] = {**spec, "taints": kept}
        dropped.counts["taints by conditions", data["kind"]] += 1


def _clean_pod(data: dict[str, Any], spec: dict[str, Any], dropped: Dropped) -> None:
    """A mirror pod becomes an ordinary one: a kubelet deletes those of static pods that it does not have."""
    annotations = data["metadata"].get("annotations")
    if isinstance(annotations, dict) and _MIRROR in annotations:
        rest = {key: value for key, value in annotations.items() if not key.startswith(_OF_STATIC_PODS)}
        data["metadata"] = {**data["metadata"], "annotations": rest}
        dropped.counts["annotations of static pods", data["kind"]] += 1


def _clean_service(data: dict[str, Any], spec: dict[str, Any], dropped: Dropped) -> None:
    """Addresses and ports that another cluster has given out; None stays, for a Service without an address."""
    if spec.get("clusterIP") == "None":
        return
    ports = spec.get("ports")
    kept = {key: value for key, value in spec.items() if key not in ("clusterIP", "clusterIPs", "healthCheckNodePort")}
    if isinstance(ports, list):
        kept["ports"] = [
            {key: value for key, value in port.items() if key != "nodePort"} if isinstance(port, dict) else port
            for port in ports
        ]
    if kept != spec:
        data["spec"] = kept
        dropped.counts["addresses", data["kind"]] += 1


_SPECS = {
    "Node": _clean_node, "PersistentVolume": _clean_volume, "PersistentVolumeClaim": _clean_claim, "Job": _clean_job,
    "Pod": _clean_pod,
    "Service": _clean_service,
}  # fmt: skip
