"""Extended resources that devices stand behind: the special claim that the scheduler makes for a pod.

``containers[].resources.requests`` name a resource that a DeviceClass is mapped to. On a node whose device plugin does
not offer it, the pod gets devices of the class, by a claim of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.scheduler.devices.trackers import ANNOTATION, IMPLICIT, Claim, DeviceClass
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2

IN_MEMORY = "<extended-resources>"
"""The name of a claim that is not written yet."""


class ForContainer(NamedTuple):
    """Which request of the claim is for a resource of a container."""

    container: str
    resource: str
    request: str


def may_be_devices(resource: str) -> bool:
    """``IsDRAExtendedResourceName``."""
    return requests.is_extended(resource) or resource.startswith(IMPLICIT)


def claim_in_memory(pod: core_v1_pb2.Pod, uid: str) -> Claim:
    """One of that UID, without requests."""
    metadata = pod.metadata
    made = Claim()
    own = made.metadata
    own.namespace, own.name, own.uid = metadata.namespace, IN_MEMORY, uid
    own.generateName = f"{metadata.name}-extended-resources-"
    own.ownerReferences.add(apiVersion="v1", kind="Pod", name=metadata.name, uid=metadata.uid, controller=True)
    own.annotations[ANNOTATION] = "true"
    return made


class _Asked:
    """A request that is to be made, as long as its count may grow or not."""

    __slots__ = ("class_name", "count", "name")

    def __init__(self, name: str, class_name: str, count: int) -> None:
        self.name = name
        self.class_name = class_name
        self.count = count


def requests_for(
    pod: core_v1_pb2.Pod, resources: Iterable[str], classes: Mapping[str, DeviceClass]
) -> tuple[list[resource_v1_pb2.DeviceRequest], list[ForContainer]]:
    """The requests of the claim for a node that offers none of these resources, and for which containers they are
    (``createRequestsAndMappings``). Init containers that end use the devices of those that come later."""
    containers = [*pod.spec.initContainers, *pod.spec.containers]
    inits = len(pod.spec.initContainers)
    ending = [at for at, one in enumerate(containers) if at < inits and one.restartPolicy != "Always"]
    lasting = [at for at in range(len(containers)) if at not in ending]
    found: list[_Asked] = []
    mappings: list[ForContainer] = []
    for resource in sorted(resources):
        class_ = classes.get(resource)
        if class_ is None:
            continue
        name = class_.metadata.name
        long_lived: list[_Asked | None] = [None] * len(containers)
        for at in lasting:
            long_lived[at], mapped = _asked(at, containers[at], resource, name, ())
            mappings += mapped
        largest: _Asked | None = None
        names: set[str] = set()
        of_ending: list[ForContainer] = []
        for at in ending:
            asked, mapped = _asked(at, containers[at], resource, name, long_lived[at:])
            of_ending += mapped
            if asked is not None:
                names.add(asked.name)
                if largest is None or largest.count < asked.count:
                    largest = asked
        if largest is not None:
            # They run one after another: the largest request serves all of them.
            of_ending = [one._replace(request=largest.name) if one.request in names else one for one in of_ending]
            found.append(largest)
        found += [one for one in long_lived if one is not None]
        mappings += of_ending
    found.sort(key=lambda one: one.name)
    return [_message(one) for one in found], mappings


def _message(asked: _Asked) -> resource_v1_pb2.DeviceRequest:
    made = resource_v1_pb2.DeviceRequest(name=asked.name)
    made.exactly.deviceClassName = asked.class_name
    made.exactly.allocationMode = "ExactCount"
    made.exactly.count = asked.count
    return made


def _asked(
    at: int, container: core_v1_pb2.Container, resource: str, class_name: str, reusable: Sequence[_Asked | None]
) -> tuple[_Asked | None, list[ForContainer]]:
    """The request of one container; None where it has none, or where those of later containers are enough."""
    own = container.resources.requests
    amount = quantities.parse(own[resource].string) if resource in own else None
    if amount is None or amount.nano == 0 or amount.nano % quantities.NANO:
        return None, []
    wanted, reused = amount.value, 0
    mappings: list[ForContainer] = []
    for other in reusable:
        if other is not None:
            reused += other.count
            mappings.append(ForContainer(container.name, resource, other.name))
            if reused >= wanted:
                return None, mappings
    asked = _Asked(f"container-{at}-request-{sorted(own).index(resource)}", class_name, wanted - reused)
    mappings.append(ForContainer(container.name, resource, asked.name))
    return asked, mappings
