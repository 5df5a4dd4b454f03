"""What the annotations of pods and their templates say about the pods.

Mirrors ``ValidatePodSpecificAnnotations``, ``ValidatePodSpecificAnnotationUpdates`` and the checks that profiles in
annotations and in fields match, of ``pkg/apis/core/validation``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kemu.emulated.objects.validation import volume_sources
from kemu.emulated.objects.validation.causes import forbidden, invalid, shown
from kemu.emulated.objects.validation.pod_specs import security
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_LOCALHOST = "localhost/"
_COST = re.compile(r"0|-?[0-9]+", re.ASCII)
_VALUES = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}


def check_annotations(annotations: Mapping[str, str], spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``path``: of the annotations."""
    if MIRROR in annotations and not spec.nodeName:
        detail = "must set spec.nodeName if mirror pod annotation is set"
        found.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail))
    if _DELETION_COST in annotations:
        cost = annotations[_DELETION_COST]
        is_number = _COST.fullmatch(cost) and (cost == "0" or not cost.startswith("0"))
        if not is_number or not -(2**31) <= int(cost) < 2**31:
            found.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    of_containers = [key for key in sorted(annotations) if key.startswith((_SECCOMP, _APP_ARMOR))]
    if _SECCOMP_OF_POD in annotations:
        _check_seccomp(annotations[_SECCOMP_OF_POD], f"{path}.{_SECCOMP_OF_POD}", found)
    for key in of_containers:
        if key.startswith(_SECCOMP):
            _check_seccomp(annotations[key], f"{path}.{key}", found)
    for key in of_containers:
        if key.startswith(_APP_ARMOR):
            name, profile = key.removeprefix(_APP_ARMOR), annotations[key]
            if all(container.name != name for container, _ in security.containers_of(spec, "")):
                found.append(invalid(f"{path}[{key}]", name, "container not found"))
            if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCALHOST):
                found.append(invalid(f"{path}[{key}]", profile, f"invalid AppArmor profile name: {shown(profile)}"))


def _check_seccomp(profile: str, path: str, found: list[Cause]) -> None:
    if profile.startswith(_LOCALHOST):
        volume_sources.check_descending(profile.removeprefix(_LOCALHOST), path, found)
    elif profile not in ("runtime/default", "docker/default", "unconfined"):
        found.append(invalid(path, profile, "must be a valid seccomp profile"))


def check_profiles(annotations: Mapping[str, str], spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """Profiles that annotations and fields state must be the same. ``path``: of the spec."""
    if not any("security" in key for key in annotations):
        return
    of_pod = spec.securityContext
    if of_pod.HasField("seccompProfile") and _SECCOMP_OF_POD in annotations:
        here = f"{path}.securityContext.seccompProfile"
        _check_same(annotations[_SECCOMP_OF_POD], of_pod.seccompProfile, here, "seccomp", found)
    all_containers = list(security.containers_of(spec, path))
    for container, here in all_containers:
        key = f"{_SECCOMP}{container.name}"
        if key in annotations and container.securityContext.HasField("seccompProfile"):
            profile = container.securityContext.seccompProfile
            _check_same(annotations[key], profile, f"{here}.securityContext.seccompProfile", "seccomp", found)
    if spec.os.name == "windows":
        return
    for container, here in all_containers:
        key = f"{_APP_ARMOR}{container.name}"
        own = container.securityContext
        holder = own if own.HasField("appArmorProfile") else of_pod
        if key in annotations and holder.HasField("appArmorProfile"):
            place = f"{here}.securityContext.appArmorProfile"
            _check_same(annotations[key], holder.appArmorProfile, place, "apparmor", found)


def _check_same(
    said: str,
    profile: core_v1_pb2.SeccompProfile | core_v1_pb2.AppArmorProfile,
    path: str,
    what: str,
    found: list[Cause],
) -> None:
    if profile.type in _VALUES:
        known = _VALUES[profile.type][: 2 if what == "seccomp" else 1]
        if said not in known:
            found.append(forbidden(f"{path}.type", f"{what} type in annotation and field must match"))
    elif profile.type == "Localhost":
        if not said.startswith(_LOCALHOST):
            found.append(forbidden(f"{path}.type", f"{what} type in annotation and field must match"))
        elif not profile.HasField("localhostProfile") or said.removeprefix(_LOCALHOST) != profile.localhostProfile:
            detail = f"{what} profile in annotation and field must match"
            found.append(forbidden(f"{path}.localhostProfile", detail))


def check_update(new: Mapping[str, str], old: Mapping[str, str], path: str, found: list[Cause]) -> None:
    """What of them cannot change."""
    for key in sorted(old):
        if new.get(key) != old[key] or key not in new:
            _refuse(key, path, "remove or update", found)
    for key in sorted(new):
        if key not in old:
            _refuse(key, path, "add", found)


def _refuse(key: str, path: str, what: str, found: list[Cause]) -> None:
    if key.startswith(_APP_ARMOR):
        found.append(forbidden(f"{path}[{key}]", f"may not {what} AppArmor annotations"))
    if key == MIRROR:
        found.append(forbidden(f"{path}[{key}]", f"may not {what} mirror pod annotation"))
