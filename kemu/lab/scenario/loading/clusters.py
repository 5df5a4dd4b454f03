"""Nodes, schedulers and priority classes of a scenario, from the checked document.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from kemu.emulated.apiserver.authorization.nodes import NAMES
from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.settings.kubelet_configurations import KubeletConfiguration
from kemu.emulated.kubelet.usage import curves, usages
from kemu.emulated.objects import meta, names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.conversion import yaml_texts
from kemu.emulated.objects.fields import refusals, scheduler_configuration
from kemu.emulated.objects.validation import kinds, placement
from kemu.emulated.objects.validation.causes import invalid
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle import profiles
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.extenders import servers as extender_classes
from kemu.emulated.scheduler.framework import interfaces
from kemu.emulated.scheduler.plugins import in_tree
from kemu.emulated.settings.declared import restored
from kemu.emulated.settings.documents import Path, follow
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.format.clusters import Extender, Node, NodeFields, Nodes, Scheduler
from kemu.lab.scenario.loading.objects import devices, manifests
from kemu.messages.k8s import core_v1_pb2, scheduling_v1_pb2
from kemu.runtime import user_code
from kemu.runtime.words import did_you_mean

DEFAULT_RESOURCES = {"cpu": "8", "ephemeral-storage": "100Gi", "memory": "32Gi", "pods": "110"}

SYSTEM_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Every cluster has them."""
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Every cluster has them."""

MAX_NODES = 200_000
"""Most nodes of a scenario; Kubernetes itself promises to work with 5,000."""
_LONGEST_HOSTNAME = 63
_NONE: Mapping[str, Any] = {}


def nodes(stated: Nodes, raw: Mapping[str, Any], path: Path, report: Report, room: int = MAX_NODES) -> list[Node]:
    """The nodes of one entry: one, or ``count`` of them, but no more than ``room``. ``raw``: as its author wrote it."""
    count, prefix = stated.count, stated.name_prefix
    if stated.name is not None:
        if count is not None:
            report.add((*path, "count"), "needs namePrefix, not name", key=True)
        return alike(stated, [stated.name], raw, path, report)
    if prefix is None:
        return []
    if count is None:
        if "count" not in raw:
            report.add(path, "namePrefix needs count")
        return []
    if count > room:
        before = f", and {MAX_NODES - room} came before" if room < MAX_NODES else ""
        report.add((*path, "count"), f"{count} are too many: a scenario has at most {MAX_NODES} nodes{before}")
        return []
    wrong = names.dns_subdomain(f"{prefix}1")
    if wrong:
        report.add((*path, "namePrefix"), f"{prefix}1 cannot be the name of a node: {wrong[0]}")
        return []
    return alike(stated, [f"{prefix}{number}" for number in range(1, count + 1)], raw, path, report)


def alike(stated: NodeFields, called: Sequence[str], raw: Mapping[str, Any], path: Path, report: Report) -> list[Node]:
    """Nodes of these names."""
    problems = len(report.problems)
    template = node_template(stated, path, report)
    kubelet = raw["kubelet"] if stated.kubelet is not None else {}
    try:
        usages.parse_node(stated.usage)
    except curves.CurveError as error:
        report.add((*path, "usage"), str(error))
    static_pods = _static_pods(kubelet, (*path, "kubelet", "staticPods"), report)
    rest = (kubelet, stated.usage, stated.machine, stated.policy, static_pods, devices.read(stated, path, report))
    made = [named(template, name, *rest) for name in called]
    longest = max(called, key=len, default="")
    if len(longest) > _LONGEST_HOSTNAME:
        is_one = "name" in raw
        text = f"{'the name' if is_one else longest} has {len(longest)} characters; as the label "
        text += f"kubernetes.io/hostname, which every kubelet sets, it may have {_LONGEST_HOSTNAME}"
        report.add((*path, "name" if is_one else "namePrefix"), text)
    if made and len(report.problems) == problems:
        _check_as_registered(made[0].message, raw, path, report)
    return made


_AMOUNTS = ("capacity", "allocatable")


def _check_as_registered(node: core_v1_pb2.Node, raw: Any, path: Path, report: Report) -> None:
    """Complain as the API server would when the kubelet registers its node, and of resources that no pod can name."""
    odd = [
        invalid(f"{section}[{name}]", name, problem)
        for section in _AMOUNTS
        for name in sorted(getattr(node.status, section))
        for problem in names.label_key(name)
    ]
    for cause in (*odd, *kinds.validate_create(node)):
        field = cause.field
        for part in ("metadata.", "spec.", "status."):
            field = field.removeprefix(part)
        section = re.split(r"[.\[]", field, maxsplit=1)[0]
        if section in _AMOUNTS:
            if section not in raw:
                continue  # follows from the other, which says it
            if field.startswith(f"{section}."):
                field = f"{section}[{field.removeprefix(f'{section}.')}]"
        where, rest = follow(raw, field)
        report.add((*path, *where), f"{cause.field}: {cause.message}" if rest else cause.message)


def _static_pods(kubelet: Mapping[str, Any], path: Path, report: Report) -> tuple[core_v1_pb2.Pod, ...]:
    """The manifests of the static pods that every one of these nodes runs."""
    found: dict[tuple[str, str], core_v1_pb2.Pod] = {}
    listed = kubelet.get("staticPods")
    for index, data in enumerate(listed if isinstance(listed, list) else ()):
        where = (*path, index)
        pod = manifests.read(data, where, report)
        if pod is None:
            continue
        if not isinstance(pod, core_v1_pb2.Pod):
            report.add(where, "must be a Pod")
        elif pod.spec.nodeName:
            report.add(
                (*where, "spec", "nodeName"), "a static pod runs on the node whose kubelet has its manifest", key=True
            )
        elif (pod.metadata.namespace, pod.metadata.name) in found:
            report.add((*where, "metadata", "name"), f"a second static pod is called {pod.metadata.name}")
        elif referenced := _referenced(pod):
            report.add(where, f"static pods may not reference {referenced}")
        else:
            found[pod.metadata.namespace, pod.metadata.name] = pod
    return tuple(found.values())


def _referenced(pod: core_v1_pb2.Pod) -> str:
    """What the API server would have to be asked for (``HasAPIObjectReference`` of ``pkg/api/pod``); mostly empty."""
    for plural in ("serviceaccounts", "secrets", "configmaps"):
        if any(NAMES[plural](pod)):
            return plural
    if pod.spec.resourceClaims:
        return "resourceclaims"
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        for field, what in _VOLUMES.items():
            if source.HasField(field):  # type: ignore[arg-type]
                return what
        for one in source.projected.sources:
            for field, what in _PROJECTIONS.items():
                if one.HasField(field):  # type: ignore[arg-type]
                    return what
    return ""


_VOLUMES = {
    "csi": "csidrivers (via CSI volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
}
_PROJECTIONS = {
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def named(
    template: core_v1_pb2.Node,
    name: str,
    kubelet: Mapping[str, Any],
    usage: Mapping[str, Any] = _NONE,
    machine: Mapping[str, Any] = _NONE,
    policy: Mapping[str, Any] = _NONE,
    static_pods: tuple[core_v1_pb2.Pod, ...] = (),
    its_devices: tuple[Mapping[str, Any], ...] = (),
) -> Node:
    """A node made from a template. ``kubelet``: its configuration as written."""
    node = meta.copied(template)
    node.metadata.name = name
    node.metadata.labels["kubernetes.io/hostname"] = name
    return Node(
        name, node.SerializeToString(deterministic=True), kubelet, usage, machine, policy, its_devices, static_pods
    )


_OF_MACHINES = ("capacity", "allocatable", "addresses", "nodeInfo", "images")


def node_of(stated: core_v1_pb2.Node, data: Any, path: Path, report: Report) -> Node:
    """The node that an object describes, as ``kubectl get nodes -o yaml`` shows it, with a kubelet."""
    metadata, status = data.get("metadata", {}), data.get("status") or {}
    for field in ("generateName", "finalizers", "ownerReferences"):
        if isinstance(metadata, Mapping) and metadata.get(field):
            report.add((*path, "metadata", field), "a node that its kubelet registers has none", key=True)
    for field in status if isinstance(status, Mapping) else ():
        if field not in _OF_MACHINES:
            hint = f"leave it out; {', '.join(_OF_MACHINES)} may be stated"
            report.add((*path, "status", field), "the kubelet of the node writes that", hint, key=True)
    capacity, allocatable = (
        {name: amounts[name].string for name in amounts}
        for amounts in (stated.status.capacity, stated.status.allocatable)
    )
    fields = NodeFields(labels=stated.metadata.labels, capacity=capacity, allocatable=allocatable)
    node = node_template(fields, (*path, "metadata"), report)
    node.metadata.annotations.update(stated.metadata.annotations)
    node.spec.CopyFrom(stated.spec)
    node.status.addresses.extend(stated.status.addresses)
    for image in stated.status.images:
        node.status.images.add(names=[names.tagged_image(name) for name in image.names])
    if stated.status.HasField("nodeInfo"):
        node.status.nodeInfo.CopyFrom(stated.status.nodeInfo)
    return named(node, stated.metadata.name, {}, _own_usage(stated, path, report))


def _own_usage(node: core_v1_pb2.Node, path: Path, report: Report) -> Mapping[str, Any]:
    """What its annotation says that it uses besides its pods."""
    text = node.metadata.annotations.get(usages.USAGE)
    if text is None:
        return _NONE
    where = (*path, "metadata", "annotations", usages.USAGE)
    try:
        found: Any = yaml_texts.safe_load(text)
        usages.parse_node(found)
        return dict(found)
    except curves.CurveError as error:
        report.add(where, str(error))
    except yaml.YAMLError as error:
        report.add(where, f"is not YAML: {error}")
    return _NONE


def node_template(stated: NodeFields, path: Path, report: Report) -> core_v1_pb2.Node:
    """A Node without a name."""
    node = core_v1_pb2.Node()
    labels = node.metadata.labels
    labels["kubernetes.io/arch"] = "amd64"
    labels["kubernetes.io/os"] = "linux"
    for key, value in stated.labels.items():
        complaints = names.label_key(key) or names.label_value(value)
        if complaints:
            report.add((*path, "labels", key), complaints[0])
        labels[key] = value
    node.metadata.annotations.update(stated.annotations)
    for index, taint in enumerate(stated.taints):
        where = (*path, "taints", index)
        message = manifests.read_part(core_v1_pb2.Taint, taint, where, report)
        if message is None:
            continue
        if not message.key:
            report.add(where, "key is missing")
        if message.effect not in placement.TAINT_EFFECTS:
            report.add((*where, "effect"), "effect must be NoSchedule, PreferNoSchedule or NoExecute")
        node.spec.taints.append(message)
    if stated.unschedulable:
        node.spec.unschedulable = True
    for image in stated.images:
        if isinstance(image, str):
            node.status.images.add(names=[names.tagged_image(image)])
    capacity, allocatable = node_resources(stated)
    for name, amount in sorted(capacity.items()):
        node.status.capacity[name].string = amount
    for name, amount in sorted(allocatable.items()):
        node.status.allocatable[name].string = amount
    return node


def node_resources(stated: NodeFields) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable. What is reserved comes off the capacity where only that was given, as in the kubelet:
    kubeReserved, systemReserved and the hard eviction thresholds of memory and of the disk."""
    kubelet = stated.kubelet or KubeletConfiguration()
    capacity, allocatable = dict(stated.capacity), dict(stated.allocatable)
    defaults = dict(DEFAULT_RESOURCES)
    defaults["pods"] = str(kubelet.max_pods)
    reserved: dict[str, list[str]] = {}
    for amounts in (kubelet.kube_reserved, kubelet.system_reserved):
        for name, amount in amounts.items():
            reserved.setdefault(name, []).append(amount)
    for name, amount in _hard_thresholds(kubelet, capacity).items():
        reserved.setdefault(name, []).append(amount)
    for name, amount in capacity.items():
        if name not in allocatable:
            allocatable[name] = _less(amount, reserved.get(name, []))
    for name, amount in allocatable.items():
        capacity.setdefault(name, amount)
    for name, amount in defaults.items():
        if name not in capacity:
            capacity[name] = amount
            allocatable[name] = amount
    return capacity, allocatable


_RESOURCE_OF = {thresholds.MEMORY: "memory", thresholds.NODEFS: "ephemeral-storage"}
"""What a hard threshold takes off (``hardEvictionReservation``)."""


def _hard_thresholds(kubelet: KubeletConfiguration, capacity: Mapping[str, str]) -> dict[str, str]:
    """By resource, of those whose capacity is given."""
    try:
        found = thresholds.parse(kubelet.hard, {}, {}, {})
    except ValueError:
        return {}  # a complaint of the configuration
    return {
        resource: str(threshold.value.of(quantities.value(capacity[resource])))
        for threshold in found
        if (resource := _RESOURCE_OF.get(threshold.signal, "")) in capacity
    }


def image_sizes(
    checked: Mapping[str, str], nodes: Iterable[core_v1_pb2.Node], path: Path, report: Report
) -> dict[str, int]:
    """In bytes, by name with tag. Those that the scenario states, and those that Nodes among its manifests have."""
    stated = _stated_sizes(checked, path, report)
    held = {
        names.tagged_image(name): image.sizeBytes
        for node in nodes
        for image in node.status.images
        for name in image.names
        if image.sizeBytes
    }
    return held | stated


def _stated_sizes(checked: Mapping[str, str], path: Path, report: Report) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, amount in checked.items():
        tagged = names.tagged_image(str(name))
        if tagged in found:
            report.add((*path, name), f"the size of {tagged} stands here already", key=True)
        found[tagged] = quantities.value(amount)
    return found


def _less(amount: str, reserved: list[str]) -> str:
    left = quantities.parse(amount)
    for part in reserved:
        left -= quantities.parse(part)
    return str(left) if left.milli > 0 else "0"


def schedulers(stated: Sequence[Any] | None, configs: Mapping[int, Any], path: Path, report: Report) -> list[Scheduler]:
    """The schedulers. ``configs``: by index, the configurations that stand in files of their own."""
    if stated is None:
        return [Scheduler(name=scenarios.DEFAULT_SCHEDULER)]
    found = []
    for index, one in enumerate(stated):
        if not isinstance(one, Scheduler) or one.name is None:
            continue
        one = dataclasses.replace(one, config=configs.get(index, one.config))
        if one.factory is not None:
            _check_factory(one.factory, (*path, index, "factory"), report)
            if one.policy:
                report.add((*path, index, "policy"), "cannot stand beside factory: kemu's scheduler has these switches")
        found.append(one)
    return found


def _check_factory(name: str, path: Path, report: Report) -> None:
    """There is such a class. Raises UserCodeFailed where its module raises."""
    if not user_code.NAME.fullmatch(name):
        report.add(path, f"must be module:Class, not {name!r}")
        return
    try:
        found = user_code.load(name)
    except (ImportError, AttributeError) as error:
        report.add(path, f"{name} cannot be loaded: {error}")
        return
    if not callable(found) or not callable(getattr(found, "run", None)):
        report.add(path, f"{name} is no actor: a class called with (env, config) that has async def run(self) is")


def has_its_own_queue(scheduler: Scheduler) -> bool:
    """Whether anything but Kubernetes' own plugins decides which of its pods is tried, and where one fits.

    Of a scheduler of the user's own the checks see no queue at all, so they judge nothing in it."""
    if scheduler.factory:
        return False
    if scheduler.policy.get("queue", "priority") != "priority":
        return True
    profiles = scheduler.config.get("profiles") if isinstance(scheduler.config, Mapping) else None
    points = ("queueSort", "preEnqueue", "multiPoint", "filter")
    return any(
        point in profile.get("plugins", {})
        for profile in (profiles if isinstance(profiles, list) else [])
        for point in points
    )


def extenders(stated: Sequence[Any], schedulers: list[Scheduler], path: Path, report: Report) -> list[Extender]:
    """The extenders, whose classes exist, and which are there for the schedulers that call them."""
    for index, one in enumerate(stated):
        try:
            if isinstance(one, Extender):
                extender_classes.load(one.plugin)
        except ValueError as error:
            report.add((*path, index, "plugin"), str(error))
    found = [one for one in stated if isinstance(one, Extender)]
    actors = [f"kemu://extender/{extender.name}" for extender in found]
    for index, scheduler in enumerate(schedulers):
        for number, address in enumerate(addresses(scheduler)):
            if address.startswith("kemu://") and address not in actors:
                place = ("spec", "schedulers", index, "config", "extenders", number, "urlPrefix")
                report.add(place, f"there is no {address}", did_you_mean(address, actors))
    return found


def addresses(scheduler: Scheduler) -> list[str]:
    """Addresses of the extenders that a scheduler calls, as far as they are written down well."""
    entries = None if scheduler.factory else scheduler.config.get("extenders")
    listed = entries if isinstance(entries, list) else ()
    prefixes = [entry.get("urlPrefix") if isinstance(entry, dict) else None for entry in listed]
    return [prefix.rstrip("/") if isinstance(prefix, str) else "" for prefix in prefixes]


def outside_extenders(scenario: scenarios.Scenario) -> list[str]:
    """Addresses of extenders that are no actors."""
    called = [address for scheduler in scenario.schedulers for address in addresses(scheduler)]
    return [address for address in called if address.startswith(configurations.OUTSIDE_PREFIXES)]


def check_config(scheduler: Scheduler, config: Mapping[str, Any], path: Path, report: Report) -> None:
    """Complain as the scheduler itself would when it reads its configuration, and of what kemu does not simulate."""
    if not config:
        return
    manifests.complain(refusals.in_configuration(config, scheduler_configuration.SORTS), config, path, report)
    handle = interfaces.Handle(Cluster(), random.Random(0), restored(switches.Policy, scheduler.policy))
    try:
        caps = scheduler.policy.get("percentageAbove100") == "cap"
        name = scheduler.name or scenarios.DEFAULT_SCHEDULER
        found = configurations.configuration_of(config, name, caps_percentages=caps)
        for profile in found.profiles:
            profiles.Profile(profile, handle, in_tree.REGISTRY)
    except configurations.ConfigurationError as error:
        where, rest = follow(config, error.path)
        key = error.path if rest else ""
        report.add((*path, *where), f"{key}: {error.message}" if key else error.message, error.suggestion)


def priority_class(name: str, checked: int | Mapping[str, Any]) -> scheduling_v1_pb2.PriorityClass:
    """``checked``: its value, or its fields."""
    message = scheduling_v1_pb2.PriorityClass(**({"value": checked} if isinstance(checked, int) else checked))
    message.metadata.name = name
    return message
