"""Whether a scenario speaks of devices, and what follows: only then do kubelets have drivers and controllers of claims
run, and drivers get their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu import errors
from kemu.emulated.kubelet.devices import drivers
from kemu.emulated.kubelet.settings.devices import Devices
from kemu.emulated.objects import names, resources
from kemu.emulated.objects.fields import resource_v1
from kemu.emulated.settings.declared import plain
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.format.clusters import Node, NodeFields
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.workloads import Workload
from kemu.lab.scenario.loading.objects import manifests
from kemu.messages.k8s.resource_v1_pb2 import DeviceClass


def read(stated: NodeFields, path: Path, report: Report) -> tuple[Mapping[str, Any], ...]:
    """The devices of nodes that are alike, as plain data."""
    found = []
    seen: dict[tuple[str, str], None] = {}
    for index, group in enumerate(stated.devices):
        if not isinstance(group, Devices):
            continue  # its mistakes have been reported
        where = (*path, "devices", index)
        for key, wrong in (
            ("driver", names.dns_subdomain(group.driver)),
            ("name", names.dns_label(f"{group.prefix}-{group.count - 1}")),
        ):
            if wrong:
                report.add((*where, key if key == "driver" or group.name else "driver"), wrong[0])
        if (group.driver, group.prefix) in seen:
            report.add(
                where, f"devices of {group.driver} are called {group.prefix}-0 already", "give them another name"
            )
        seen[group.driver, group.prefix] = None
        try:
            drivers.devices_of(group)
        except (ValueError, errors.KemuError) as error:
            report.add(where, str(error))
        found.append(plain(group))
    return tuple(found)


def are_used(
    nodes: Sequence[Node],
    setup: Sequence[scenarios.Manifest],
    events: Sequence[Event],
    workloads: Sequence[Workload],
) -> bool:
    """Some node has devices, some object is about them, or some pod claims one."""
    if any(node.devices for node in nodes) or any(node.devices for event in events for node in event.nodes):
        return True
    objects = [each.message for each in setup] + [one for event in events for one in event.objects]
    objects += [workload.template for workload in workloads if workload.template is not None]
    return any(resources.of(one).kind in resource_v1.ACCEPTED or _claims(one) for one in objects)


def own_claims(obj: Any) -> bool:
    """Whether claims go with a pod, or with the pods that an object makes: the garbage collector deletes them."""
    return _claims(obj)


def _claims(obj: Any) -> bool:
    parts = (obj, manifests.template(obj))
    return any(len(getattr(getattr(one, "spec", None), "resourceClaims", ())) > 0 for one in parts if one is not None)


def default_classes(nodes: Sequence[Node], setup: Sequence[scenarios.Manifest]) -> list[DeviceClass]:
    """A class called after each driver for which the scenario gives none: one that names the driver, or is called
    after it."""
    given = [one.message for one in setup if isinstance(one.message, DeviceClass)]
    found = []
    for driver in dict.fromkeys(str(group["driver"]) for node in nodes for group in node.devices):
        texts = [selector.cel.expression for one in given for selector in one.spec.selectors]
        if any(one.metadata.name == driver for one in given) or any(driver in text for text in texts):
            continue
        made = DeviceClass()
        made.metadata.name = driver
        made.spec.selectors.add().cel.expression = f'device.driver == "{driver}"'
        found.append(made)
    return found
