"""Whether a scenario speaks of devices, and what follows: only then do kubelets have drivers and controllers of claims
run, and drivers get their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kemu import errors
from kemu.emulated.kubelet.devices import drivers
from kemu.emulated.kubelet.settings.devices import Devices
from kemu.emulated.objects import names, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.fields import resource_v1
from kemu.emulated.settings.declared import plain
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.format.clusters import Node, NodeFields
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.workloads import Workload
from kemu.lab.scenario.loading.objects import manifests
from kemu.messages.k8s.resource_v1_pb2 import DeviceClass, ResourceSlice


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
            ("name", names.dns_label(f"{group.prefix}-{(group.count or 1) - 1}")),
        ):
            if wrong:
                report.add((*where, key if key == "driver" or group.name else "driver"), wrong[0])
        if group.count and (group.driver, group.prefix) in seen:
            report.add(
                where, f"devices of {group.driver} are called {group.prefix}-0 already", "give them another name"
            )
        seen[group.driver, group.prefix] = None
        try:
            drivers.devices_of(group)
            drivers.counters_of(group)
        except (ValueError, errors.KemuError) as error:
            report.add(where, str(error))
        found.append(plain(group))
    return tuple(found)


def is_slice(data: object) -> bool:
    """Whether it may be a ResourceSlice: then :func:`drivers_of` takes it."""
    return isinstance(data, Mapping) and (data.get("apiVersion"), data.get("kind")) == (
        "resource.k8s.io/v1",
        "ResourceSlice",
    )


def drivers_of(slices: Sequence[ResourceSlice], nodes: Sequence[Node]) -> list[Node]:
    """The same nodes with the drivers that have published these slices, as kubelets delete what they find of their node
    when they start. A driver whose slices name no node runs on every one, and somebody else publishes them there.

    Of a pool, the slices of its newest generation count.
    """
    newest: dict[tuple[str, str], int] = {}
    for one in slices:
        pool = one.spec.driver, one.spec.pool.name
        newest[pool] = max(newest.get(pool, 0), one.spec.pool.generation)
    found: dict[str, dict[tuple[str, str], Devices]] = {}
    everywhere: dict[str, None] = {}
    for one in slices:
        spec = one.spec
        if not spec.nodeName:
            everywhere[spec.driver] = None
        elif spec.pool.generation == newest[spec.driver, spec.pool.name]:
            of_node = found.setdefault(spec.nodeName, {})
            group = of_node.setdefault((spec.driver, spec.pool.name), Devices(driver=spec.driver, pool=spec.pool.name))
            group.devices.extend(convert.to_json(device) for device in spec.devices)
            group.shared_counters.extend(convert.to_json(counters) for counters in spec.sharedCounters)
    made = []
    for node in nodes:
        have = {str(group["driver"]) for group in node.devices}
        groups = [plain(group) for group in found.get(node.name, {}).values() if group.driver not in have]
        have |= {group["driver"] for group in groups}
        groups += [plain(Devices(driver=driver)) for driver in everywhere if driver not in have]
        made.append(replace(node, devices=(*node.devices, *groups)) if groups else node)
    return made


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
