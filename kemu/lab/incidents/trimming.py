"""Objects as a person would have written them: without what the API server fills in.

What is left out is put back by defaulting and admission when the object is created; that it is, is checked for each
object, and one that would come out otherwise is kept as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s.objects import KubernetesObject

_DEFAULTS: Mapping[str, tuple[Json, ...]] = {
    "dnsPolicy": ("ClusterFirst",),
    "restartPolicy": ("Always",),
    "schedulerName": ("default-scheduler",),
    "securityContext": ({},),
    "terminationGracePeriodSeconds": (30,),
    "enableServiceLinks": (True,),
    "imagePullPolicy": ("IfNotPresent", "Always"),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "resources": ({},),
    "failureThreshold": (3,),
    "periodSeconds": (10,),
    "successThreshold": (1,),
    "timeoutSeconds": (1,),
    "scheme": ("HTTP",),
    "protocol": ("TCP",),
    "defaultMode": (420,),
    "progressDeadlineSeconds": (600,),
    "revisionHistoryLimit": (10,),
    "podManagementPolicy": ("OrderedReady", "Parallel"),
    "strategy": ({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},),
    "updateStrategy": (
        {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"},
        {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "RollingUpdate"},
    ),
    "persistentVolumeClaimRetentionPolicy": ({"whenDeleted": "Retain", "whenScaled": "Retain"},),
    "sessionAffinity": ("None",),
    "internalTrafficPolicy": ("Cluster",),
    "ipFamilyPolicy": ("SingleStack",),
    "ipFamilies": (["IPv4"],),
    "backoffLimit": (6,),
    "completionMode": ("NonIndexed",),
    "podReplacementPolicy": ("TerminatingOrFailed",),
    "suspend": (False,),
    "concurrencyPolicy": ("Allow",),
    "failedJobsHistoryLimit": (1,),
    "successfulJobsHistoryLimit": (3,),
    "creationTimestamp": (None,),
    "metadata": ({},),
    "hostNetwork": (False,),
}
"""Field → what stands there unless somebody says otherwise."""
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TOKENS = "kube-api-access-"
"""Volumes of this name are put into each pod by the admission of service accounts."""
_WAITS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def trimmed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same object in fewer lines."""
    plain = _without_remarks(data)
    if not isinstance(plain.get("spec"), dict):
        return plain
    # The default of imagePullPolicy depends on the tag of the image.
    for kept in (frozenset[str](), frozenset(("imagePullPolicy",))):
        shorter = {**plain, "spec": _trim(plain["spec"], kept)}
        if _same(plain, shorter):
            return shorter
    return plain


def _without_remarks(data: Mapping[str, Any]) -> dict[str, Any]:
    """Without annotations that only kubectl reads, and what admission puts into each pod."""
    metadata = dict(data["metadata"])
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _APPLIED}
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    found = {**data, "metadata": metadata}
    if data.get("kind") == "Pod":
        if isinstance(data.get("spec"), dict):
            found["spec"] = _as_created(data["spec"])
        if isinstance(data.get("status"), dict):
            found["status"] = _ending(data["status"])
    elif data.get("kind") == "Node" and isinstance((data.get("status") or {}).get("nodeInfo"), dict):
        told = {key: value for key, value in data["status"]["nodeInfo"].items() if value}
        found["status"] = {**data["status"], "nodeInfo": told}
    return found


def _ending(status: Mapping[str, Any]) -> dict[str, Any]:
    """How a pod ended: its phase, and what became of its containers; and which claims are its own."""
    found = {key: status[key] for key in _OF_PODS if key in status}
    for group in ("initContainerStatuses", "containerStatuses"):
        if status.get(group):
            found[group] = [{key: one[key] for key in _OF_CONTAINERS if key in one} for one in status[group]]
    return found


_OF_PODS = ("phase", "reason", "message", "startTime", "resourceClaimStatuses", "extendedResourceClaimStatus")
_OF_CONTAINERS = ("name", "image", "imageID", "ready", "restartCount", "state")


def _as_created(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a pod before admission."""
    found = {key: value for key, value in spec.items() if key not in ("priority", "preemptionPolicy", "serviceAccount")}
    if found.get("serviceAccountName") == "default":
        del found["serviceAccountName"]
    tokens = {
        one["name"]
        for one in spec.get("volumes") or ()
        if isinstance(one, dict) and str(one.get("name")).startswith(_TOKENS)
    }
    if tokens:
        _put(found, "volumes", [one for one in spec["volumes"] if one.get("name") not in tokens])
        for group in ("initContainers", "containers", "ephemeralContainers"):
            if group in found:
                found[group] = [_without_mounts(one, tokens) for one in found[group]]
    if isinstance(spec.get("tolerations"), list):
        _put(found, "tolerations", [one for one in spec["tolerations"] if not _is_wait(one)])
    return found


def _without_mounts(container: Mapping[str, Any], volumes: set[str]) -> dict[str, Any]:
    found = dict(container)
    mounts = [one for one in container.get("volumeMounts") or () if one.get("name") not in volumes]
    _put(found, "volumeMounts", mounts)
    return found


def _is_wait(toleration: Mapping[str, Any]) -> bool:
    """One that the admission plugin DefaultTolerationSeconds adds."""
    return toleration.get("key") in _WAITS and {**toleration, "key": ""} == {
        "effect": "NoExecute",
        "key": "",
        "operator": "Exists",
        "tolerationSeconds": 300,
    }


def _put(found: dict[str, Any], key: str, value: list[Any]) -> None:
    if value:
        found[key] = value
    else:
        found.pop(key, None)


def _trim(value: Json, kept: Collection[str]) -> Json:
    if isinstance(value, dict):
        return {
            key: _trim(inner, kept)
            for key, inner in value.items()
            if key in kept or not (key in _DEFAULTS and inner in _DEFAULTS[key])
        }
    return [_trim(item, kept) for item in value] if isinstance(value, list) else value


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both become the same object."""
    try:
        return bool(_made(one) == _made(other))
    except convert.ConversionError:
        return False


def _made(data: Mapping[str, Any]) -> KubernetesObject:
    message = convert.from_manifest(data)
    defaults.apply(message)
    return message
