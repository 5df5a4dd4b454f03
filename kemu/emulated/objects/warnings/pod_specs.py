"""Warnings about pods and pod templates (``pkg/api/pod/warnings.go``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.validation.pod_specs import app_armor
from kemu.emulated.objects.warnings import addresses, labels, overlaps
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

Container = core_v1_pb2.Container | core_v1_pb2.EphemeralContainerCommon

_SYSCTLS = 'non-functional in v1.11+; use the "sysctls" field instead'
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": _SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _SYSCTLS,
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_NAMES = {"storageos": "storageOS"}
"""What warnings call a field that JSON names in another way."""
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_NO_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_SELECTOR = "labelSelector: a null labelSelector results in matching no pod"
_OWN_VOLUME = "kube-api-access-"
"""How the volume is called that the API server itself adds to nearly every pod."""
_PARTS = ("m", "u", "n")
"""How amounts end that are not whole."""
_BYTES = ("memory", "ephemeral-storage")


def of_pod(pod: core_v1_pb2.Pod) -> Iterator[str]:
    return _all("", pod.spec, pod.metadata)


def of_template(template: core_v1_pb2.PodTemplateSpec, path: str) -> Iterator[str]:
    return _all(f"{path}.", template.spec, template.metadata)


def fractions(amounts: Mapping[str, Any], path: str, which: Iterable[str] = _BYTES) -> Iterator[str]:
    """Amounts that must be whole bytes."""
    for name in which:
        if name in amounts and quantities.milli(amounts[name].string) % 1000:
            amount = json.dumps(amounts[name].string)
            yield f"{path}[{name}]: fractional byte value {amount} is invalid, must be an integer"


def of_claim(spec: core_v1_pb2.PersistentVolumeClaimSpec, path: str) -> Iterator[str]:
    """Those of a claim's spec (``pkg/api/persistentvolumeclaim/util.go``)."""
    yield from fractions(spec.resources.requests, f"{path}.resources.requests", ("storage",))
    yield from fractions(spec.resources.limits, f"{path}.resources.limits", ("storage",))


def _all(path: str, spec: core_v1_pb2.PodSpec, metadata: meta_v1_pb2.ObjectMeta) -> Iterator[str]:
    at = f"{path}spec"
    containers = _containers(spec, at)
    if spec.nodeSelector or spec.topologySpreadConstraints or spec.HasField("affinity"):
        yield from _placement(spec, at)
    if metadata.annotations:
        for key, told in _ANNOTATIONS.items():
            if key in metadata.annotations:
                yield f"{path}metadata.annotations[{key}]: {told}"
    for index, volume in enumerate(spec.volumes):
        if not volume.volumeSource.HasField("projected"):
            yield from _volume(volume.volumeSource, f"{at}.volumes[{index}]")
    for volume in spec.volumes:
        if not volume.name.startswith(_OWN_VOLUME):
            yield from overlaps.of(volume)
    if len(spec.hostAliases) > 1:
        yield from _twice((one.ip for one in spec.hostAliases), f"{at}.hostAliases", "ip")
    if len(spec.imagePullSecrets) > 1:
        yield from _twice((one.name for one in spec.imagePullSecrets), f"{at}.imagePullSecrets", "name")
    for index, secret in enumerate(spec.imagePullSecrets):
        if not secret.name:
            yield f'{at}.imagePullSecrets[{index}].name: invalid empty name ""'
    if spec.overhead:
        yield from fractions(spec.overhead, f"{at}.overhead")
    if not spec.securityContext.HasField("seccompProfile") and _SECCOMP in metadata.annotations:
        yield f"{path}metadata.annotations[{_SECCOMP}]: {_NO_SECCOMP}"
    has_ports = False
    for place, one in containers:
        yield from _container(one, place, path, spec, metadata)
        has_ports = has_ports or bool(one.ports)
    if has_ports:
        yield from _ports(containers)
    if spec.HasField("terminationGracePeriodSeconds") and spec.terminationGracePeriodSeconds < 0:
        yield (
            f"{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    if spec.HasField("affinity"):
        yield from _pod_terms(spec.affinity, f"{at}.affinity")
    for index, server in enumerate(spec.dnsConfig.nameservers):
        yield from addresses.of_address(server, f"{at}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.hostAliases):
        yield from addresses.of_address(alias.ip, f"{at}.hostAliases[{index}].ip")


def of_source(source: core_v1_pb2.VolumeSource | core_v1_pb2.PersistentVolumeSource, at: str) -> Iterator[str]:
    """Sources of volumes that do nothing any more."""
    for field, _ in source.ListFields():
        if field.name in _VOLUMES:
            yield f"{at}.{_NAMES.get(field.name, field.name)}: {_VOLUMES[field.name]}"


def _volume(source: core_v1_pb2.VolumeSource, at: str) -> Iterator[str]:
    yield from of_source(source, at)
    if source.HasField("ephemeral"):
        yield from of_claim(source.ephemeral.volumeClaimTemplate.spec, f"{at}.ephemeral.volumeClaimTemplate.spec")


def _containers(spec: core_v1_pb2.PodSpec, at: str) -> list[tuple[str, Container]]:
    found: list[tuple[str, Container]] = []
    for index, one in enumerate(spec.initContainers):
        found.append((f"{at}.initContainers[{index}]", one))
    for index, one in enumerate(spec.containers):
        found.append((f"{at}.containers[{index}]", one))
    for index, late in enumerate(spec.ephemeralContainers):
        found.append((f"{at}.ephemeralContainers[{index}]", late.ephemeralContainerCommon))
    return found


def _placement(spec: core_v1_pb2.PodSpec, at: str) -> Iterator[str]:
    known = labels.DEPRECATED
    yield from (f"{at}.nodeSelector[{key}]: {known[key]}" for key in sorted(spec.nodeSelector) if key in known)
    path = f"{at}.affinity.nodeAffinity"
    needed = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    for index, term in enumerate(needed.nodeSelectorTerms):
        place = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        yield from labels.of_term(term, place)
    for index, liked in enumerate(spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution):
        place = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
        yield from labels.of_term(liked.preference, place, values=True)
    for index, spread in enumerate(spec.topologySpreadConstraints):
        place = f"{at}.topologySpreadConstraints[{index}]"
        if spread.topologyKey in known:
            yield f"{place}.topologyKey: {spread.topologyKey} is {known[spread.topologyKey]}"
        if not spread.HasField("labelSelector"):
            yield f"{place}.{_NO_SELECTOR}"


def _pod_terms(affinity: core_v1_pb2.Affinity, at: str) -> Iterator[str]:
    for name, one in (("podAffinity", affinity.podAffinity), ("podAntiAffinity", affinity.podAntiAffinity)):
        for index, term in enumerate(one.requiredDuringSchedulingIgnoredDuringExecution):
            if not term.HasField("labelSelector"):
                yield f"{at}.{name}.requiredDuringSchedulingIgnoredDuringExecution[{index}].{_NO_SELECTOR}"
        for index, liked in enumerate(one.preferredDuringSchedulingIgnoredDuringExecution):
            if not liked.podAffinityTerm.HasField("labelSelector"):
                place = f"{at}.{name}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
                yield f"{place}.podAffinityTerm.{_NO_SELECTOR}"


def _twice(values: Iterable[str], path: str, field: str) -> Iterator[str]:
    seen = set[str]()
    for index, value in enumerate(values):
        if value in seen:
            yield f"{path}[{index}].{field}: duplicate {field} {json.dumps(value)}"
        seen.add(value)


def _container(
    one: Container, at: str, path: str, spec: core_v1_pb2.PodSpec, metadata: meta_v1_pb2.ObjectMeta
) -> Iterator[str]:
    if metadata.annotations:
        yield from _profiles(one, path, spec, metadata)
    for name in _BYTES:
        for kind, amounts in (("limits", one.resources.limits), ("requests", one.resources.requests)):
            if name in amounts and amounts[name].string[-1:] in _PARTS:
                yield from fractions(amounts, f"{at}.resources.{kind}", (name,))
    seen = set[str]()
    for index, variable in enumerate(one.env):
        if variable.name in seen and (variable.HasField("valueFrom") or not _extends(variable)):
            name = json.dumps(variable.name)
            yield f"{at}.env[{index}]: hides previous definition of {name}, which may be dropped when using apply"
        seen.add(variable.name)


def _profiles(one: Container, path: str, spec: core_v1_pb2.PodSpec, metadata: meta_v1_pb2.ObjectMeta) -> Iterator[str]:
    key = _CONTAINER_SECCOMP + one.name
    if key in metadata.annotations and not one.securityContext.HasField("seccompProfile"):
        yield f"{path}metadata.annotations[{key}]: {_NO_SECCOMP}"
    key = app_armor.PREFIX + one.name
    # Those of pods themselves become fields.
    if path and key in metadata.annotations and not one.securityContext.HasField("appArmorProfile"):
        profile = spec.securityContext.appArmorProfile
        if (
            not spec.securityContext.HasField("appArmorProfile")
            or app_armor.field_of(metadata.annotations[key]) != profile
        ):
            yield f"{path}metadata.annotations[{key}]: {app_armor.DEPRECATED}"


def _extends(variable: core_v1_pb2.EnvVar) -> bool:
    """Whether its value holds the one that had the name before, and more."""
    before = f"$({variable.name})"
    return before in variable.value and variable.value != before


def _ports(containers: Iterable[tuple[str, Container]]) -> Iterator[str]:
    every = [(f"{at}.ports[{index}]", port) for at, one in containers for index, port in enumerate(one.ports)]
    before: dict[tuple[int, str], list[tuple[str, core_v1_pb2.ContainerPort]]] = {}
    for place, port in every:
        if port.hostIP and not port.hostPort:
            shown = f"Name:{port.name} HostPort:0 ContainerPort:{port.containerPort} Protocol:{port.protocol}"
            yield f"{place}: hostIP set without hostPort: {{{shown} HostIP:{port.hostIP}}}"
        others = before.setdefault((port.containerPort, port.protocol), [])
        for other_place, other in others:
            if how := _clash(port, other):
                yield f"{place}: {how} port definition with {other_place}"
        others.append((place, port))
    first: dict[str, str] = {}
    for place, port in every:
        if port.name in first:
            yield (
                f"{place}: duplicate port name {json.dumps(port.name)} with {first[port.name]}, services and probes"
                f" that select ports by name will use {first[port.name]}"
            )
        elif port.name:
            first[port.name] = place


def _clash(port: core_v1_pb2.ContainerPort, other: core_v1_pb2.ContainerPort) -> str:
    if (port.hostIP, port.hostPort) == (other.hostIP, other.hostPort):
        return "duplicate"
    if not port.hostPort or not other.hostPort:
        return "overlapping"
    one_has_none = (not port.hostIP) != (not other.hostIP)
    return "dangerously ambiguous" if port.hostPort == other.hostPort and one_has_none else ""
