"""Resizes of pods that run: the subresource ``resize``.

Mirrors ``podResizeStrategy`` of ``pkg/registry/core/pod`` and ``ValidatePodResize`` of ``pkg/apis/core/validation``,
with the feature gates of v1.36: init containers and pod-level resources may be resized, too. A pod need not show the
resources of its containers: all kubelets here can resize.
"""

from __future__ import annotations

from google.protobuf.internal.containers import MessageMap

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import qos, quantities
from kemu.emulated.objects.validation import metadata
from kemu.emulated.objects.validation.causes import forbidden, invalid
from kemu.emulated.objects.validation.pod_specs import pods
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

RESIZABLE = ("cpu", "memory")
_MIRROR = "kubernetes.io/config.mirror"
_NOWHERE = "[]"
"""How Kubernetes writes a path without a name."""
_ONLY = "only cpu and memory resources are mutable"


def prepare(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> None:
    """Put back everything but resources and resize policies (``dropNonResizeUpdates``). Added, removed or renamed
    containers stay: validation complains about them."""
    for name in ("containers", "initContainers"):
        if len(getattr(new.spec, name)) != len(getattr(old.spec, name)):
            return
    sent = type(new.spec)()
    sent.CopyFrom(new.spec)
    new.spec.CopyFrom(old.spec)
    new.spec.ClearField("resources")
    if sent.HasField("resources"):
        new.spec.resources.CopyFrom(sent.resources)
    for name in ("containers", "initContainers"):
        theirs, kept = getattr(sent, name), getattr(new.spec, name)
        if any(one.name != other.name for one, other in zip(theirs, kept, strict=True)):
            del kept[:]
            kept.extend(theirs)
            continue
        for one, other in zip(theirs, kept, strict=True):
            other.ClearField("resources")
            if one.HasField("resources"):
                other.resources.CopyFrom(one.resources)
            del other.resizePolicy[:]
            other.resizePolicy.extend(one.resizePolicy)
    new.status.CopyFrom(old.status)
    fields = new.metadata.managedFields[:]
    new.metadata.CopyFrom(old.metadata)
    new.metadata.ClearField("resourceVersion")
    del new.metadata.managedFields[:]
    new.metadata.managedFields.extend(fields)
    if new.spec != old.spec:
        new.metadata.generation = old.metadata.generation + 1
        _state_resources(new.status, old.spec)


def _state_resources(status: core_v1_pb2.PodStatus, spec: core_v1_pb2.PodSpec) -> None:
    """What the containers have so far. A real kubelet says so from their start; those here do from the first resize on,
    and one that is down by then shall know what it had allocated when it comes back."""
    for name, statuses in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        known = {one.name: one.resources for one in getattr(spec, name)}
        for one in getattr(status, statuses):
            if one.name in known and not one.HasField("resources"):
                one.resources.CopyFrom(known[one.name])
                _copy_requests(one.allocatedResources, known[one.name])
    if _states_any(spec) and status.HasField("startTime") and not status.HasField("resources"):
        status.resources.CopyFrom(spec.resources)
        _copy_requests(status.allocatedResources, spec.resources)


def _copy_requests(amounts: MessageMap[str, meta_v1_pb2.Quantity], resources: core_v1_pb2.ResourceRequirements) -> None:
    for name in sorted(resources.requests):
        amounts[name].string = resources.requests[name].string


def validate(new: core_v1_pb2.Pod, old: core_v1_pb2.Pod) -> list[Cause]:
    """Whether the pod may be resized so."""
    found: list[Cause] = []
    metadata.check_update(new.metadata, old.metadata, metadata.AS_MOST, names.dns_subdomain, found)
    pods.check_pod_spec(new.spec, "spec", found, pod_name=new.metadata.name, old=old.spec)
    if _MIRROR in old.metadata.annotations:
        return [forbidden(_NOWHERE, "static pods cannot be resized")]
    if old.spec.HasField("os") and old.spec.os.name == "windows":
        return [forbidden(_NOWHERE, "windows pods cannot be resized")]
    if qos.qos_class(old) != qos.computed_qos_class(new):
        found.append(invalid("spec", new.status.qosClass, "Pod QOS Class may not change as a result of resizing"))
    if _states_any(old.spec) or _states_any(new.spec):
        _check_pod_level(new.spec, old.spec, found)
    order = _check_order(new.spec, old.spec)
    if order:
        return found + order
    for name in ("initContainers", "containers"):
        pairs = zip(getattr(new.spec, name), getattr(old.spec, name), strict=True)
        for index, (one, other) in enumerate(pairs):
            path = f"spec.{name}[{index}].resources"
            _check_removed(one.resources, other.resources, path, "resource", found)
    for one, other in zip(new.spec.containers, old.spec.containers, strict=True):
        if _without_resizes(one, other) != other:
            found.append(forbidden("spec", _ONLY))
    for index, (one, other) in enumerate(zip(new.spec.initContainers, old.spec.initContainers, strict=True)):
        _check_init(one, other, f"spec.initContainers[{index}]", found)
    if not found and _differs_beside(new.spec, old.spec):
        found.append(forbidden("spec", _ONLY))
    return found


def _differs_beside(new: core_v1_pb2.PodSpec, old: core_v1_pb2.PodSpec) -> bool:
    """Whether anything but resources and containers has changed."""
    one, other = type(new)(), type(old)()
    one.CopyFrom(new)
    other.CopyFrom(old)
    for spec in (one, other):
        for name in ("containers", "initContainers", "resources"):
            spec.ClearField(name)
    return bool(one != other)


def _check_init(new: core_v1_pb2.Container, old: core_v1_pb2.Container, path: str, found: list[Cause]) -> None:
    if _without_resizes(new, old) != old:
        detail = "only cpu and memory resources for init or sidecar containers are mutable"
        found.append(forbidden(path, detail))
    if new != old and new.restartPolicy != "Always":
        detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        found.extend(forbidden(path, detail) for one in new.resizePolicy if one.restartPolicy == "RestartContainer")


def _check_pod_level(new: core_v1_pb2.PodSpec, old: core_v1_pb2.PodSpec, found: list[Cause]) -> None:
    had = old.HasField("resources")
    if had and not new.HasField("resources"):
        found.append(forbidden("spec.resources", "pod-level resources cannot be removed"))
        return
    if had:
        _check_removed(new.resources, old.resources, "spec.resources", "pod-level resource", found)
    masked = _masked(new.resources, old.resources)
    if not _same(masked, old.resources):
        found.append(forbidden("spec", f"{_ONLY} at pod-level"))


def _check_order(new: core_v1_pb2.PodSpec, old: core_v1_pb2.PodSpec) -> list[Cause]:
    found = []
    for name in ("containers", "initContainers"):
        ours, theirs = getattr(new, name), getattr(old, name)
        if len(ours) != len(theirs):
            found.append(forbidden(f"spec.{name}", f"{name} may not be added or removed on resize"))
            continue
        detail = f"{name} may not be renamed or reordered on resize"
        found.extend(
            forbidden(f"spec.{name}[{index}].name", detail)
            for index, (one, other) in enumerate(zip(ours, theirs, strict=True))
            if one.name != other.name
        )
    return found


def _check_removed(
    new: core_v1_pb2.ResourceRequirements,
    old: core_v1_pb2.ResourceRequirements,
    path: str,
    what: str,
    found: list[Cause],
) -> None:
    for part in ("requests", "limits"):
        ours, theirs = getattr(new, part), getattr(old, part)
        if any(name not in ours for name in theirs):
            found.append(forbidden(f"{path}.{part}", f"{what} {part} cannot be removed"))


def _states_any(spec: core_v1_pb2.PodSpec) -> bool:
    return spec.HasField("resources") and bool(len(spec.resources.requests) + len(spec.resources.limits))


def _without_resizes(new: core_v1_pb2.Container, old: core_v1_pb2.Container) -> core_v1_pb2.Container:
    """A container with the cpu and memory that it had."""
    masked = type(new)()
    masked.CopyFrom(new)
    resources = _masked(new.resources, old.resources)
    masked.ClearField("resources")
    if _same(resources, old.resources):
        # Equal amounts may be written in other ways.
        if old.HasField("resources"):
            masked.resources.CopyFrom(old.resources)
    else:
        masked.resources.CopyFrom(resources)
    return masked


def _masked(
    new: core_v1_pb2.ResourceRequirements, old: core_v1_pb2.ResourceRequirements
) -> core_v1_pb2.ResourceRequirements:
    masked = type(new)()
    masked.CopyFrom(new)
    for part in ("requests", "limits"):
        ours, theirs = getattr(masked, part), getattr(old, part)
        for name in RESIZABLE:
            if name in ours:
                del ours[name]
            if name in theirs:
                ours[name].string = theirs[name].string
    return masked


def _same(one: core_v1_pb2.ResourceRequirements, other: core_v1_pb2.ResourceRequirements) -> bool:
    """Equal amounts (``apiequality.Semantic``)."""
    for part in ("requests", "limits"):
        ours, theirs = getattr(one, part), getattr(other, part)
        if sorted(ours) != sorted(theirs):
            return False
        if any(quantities.parse(ours[name].string).nano != quantities.parse(theirs[name].string).nano for name in ours):
            return False
    return [claim.name for claim in one.claims] == [claim.name for claim in other.claims]


def differs(one: core_v1_pb2.ResourceRequirements, other: core_v1_pb2.ResourceRequirements) -> bool:
    """Whether cpu or memory of two ResourceRequirements differ."""
    return not _same(one, other)
