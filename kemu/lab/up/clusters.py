"""The cluster of ``kemu up``: that of a scenario, or so many nodes with everything that a cluster has.

Nodes get what the kubelet of a real machine tells about it (version, addresses, the range of their pods' addresses),
unless the scenario says so itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import kemu
from kemu.emulated.kubelet.settings import references
from kemu.emulated.objects.facts import KUBERNETES
from kemu.emulated.objects.kinds import service_ranges
from kemu.lab.scenario import forms
from kemu.lab.scenario.format.clusters import Node
from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Manifest, Scenario
from kemu.lab.up import bootstrap_objects
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

FOREVER_S = 10 * 365 * 24 * 3600
"""The duration of a cluster that has to be ended."""

ZONES = ("zone-a", "zone-b", "zone-c")
_REGION = "kemu"
_TYPE = "kemu.large"
PLUGINS = ("ServiceAccount",)
"""Admission plugins that a cluster of clients has and a scenario only if it says so."""
MISSING_IMAGES = ("*.invalid/*", "invalid.*/*", "*:non-existent", "*:nonexistent", "*:404")
"""Images that no registry has: those of hosts that are none, and of tags that say so."""

MOST_EVENTS = 20_000
"""Event objects that the cluster keeps."""

_LEFT_OUT = (
    controller_keys.RESCHEDULER,
    controller_keys.CLUSTER_AUTOSCALER,
    controller_keys.DESCHEDULER,
    controller_keys.KUEUE,
    controller_keys.NODE_AFFINITY_EVICTION,
    controller_keys.SERVICE_LB,
)
"""Controllers that a cluster has only if they are asked for."""

_FIRST_POD_RANGE = 10 << 24 | 128 << 16
"""10.128.0.0: a /24 for each node."""
_FIRST_NODE_ADDRESS = 172 << 24 | 18 << 16
"""172.18.0.0"""
KUBELET_PORT = 10250


DEFAULT_NODES = 3


def of_nodes(
    count: int | None, settings: Mapping[str, Any] | None = None, manifests: Sequence[str | Path] = ()
) -> Scenario:
    """So many equal nodes in three zones beside the Nodes among the manifests, the default scheduler and everything
    that a cluster has. None: three, unless there are Nodes among the manifests."""
    if count is None:
        count = DEFAULT_NODES
        if manifests and (found := len(_of_nodes(count, settings, manifests).nodes) - count):
            count = 0 if found else count
    return _of_nodes(count, settings, manifests)


def _of_nodes(count: int, settings: Mapping[str, Any] | None, manifests: Sequence[str | Path]) -> Scenario:
    nodes = []
    for index, zone in enumerate(ZONES):
        share = (count - index + len(ZONES) - 1) // len(ZONES)
        nodes += [
            {
                "name": f"node-{index + 1 + number * len(ZONES)}",
                "labels": {
                    "topology.kubernetes.io/zone": zone,
                    "topology.kubernetes.io/region": _REGION,
                    "node.kubernetes.io/instance-type": _TYPE,
                    "node-role.kubernetes.io/worker": "",
                },
                "usage": {"cpu": "100m", "memory": "400Mi"},
            }
            for number in range(share)
        ]
    nodes.sort(key=lambda node: int(str(node["name"]).rpartition("-")[2]))
    spec = {
        "duration": f"{FOREVER_S}s",
        "nodes": nodes,
        "schedulers": [{"name": "default-scheduler"}],
        "eventObjects": "all",
        # Some pods a second for an hour leave a gigabyte of them, too many to read.
        "apiServers": {"mostEvents": MOST_EVENTS},
        "references": {"contents": references.STRICT, "missingImages": list(MISSING_IMAGES)},
        **_everywhere(),
    }
    if manifests:
        spec["manifests"] = [{"file": str(Path(one).absolute())} for one in manifests]
    return forms.load(spec, settings, name="up")


def _everywhere() -> dict[str, Any]:
    """What every cluster has, whatever is in it at first: clients may bring anything at any time."""
    return {
        "controllers": [name for name in controller_keys.KINDS if name not in _LEFT_OUT],
        "storage": {"expansion": True},
        "programs": True,
    }


def with_controller(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Overrides below ``spec`` with this controller beside those that every cluster has."""
    stated = settings.get("controllers")
    chosen = _everywhere()["controllers"] if stated is None else stated
    return {**settings, "controllers": [*chosen, name]}


def furnishings(scenario: Scenario) -> list[KubernetesObject]:
    """What the cluster has beside the scenario's objects: a default StorageClass, if somebody makes its volumes, and
    the scenario has none."""
    has_one = any(isinstance(one.message, storage_v1_pb2.StorageClass) for one in scenario.setup)
    if controller_keys.CSI_DRIVERS not in scenario.controllers or has_one:
        return []
    return [bootstrap_objects.default_class()]


def equipped(scenario: Scenario, data: Path | None = None) -> Scenario:
    """The same, with everything that a cluster has and of which it does not say that it is otherwise."""
    stated = scenario.resolved["spec"]
    lacking = {key: value for key, value in _everywhere().items() if stated.get(key) is None}
    if not lacking:
        return scenario
    found = loader.loads(scenario.to_yaml(), scenario.file, data, lacking)
    return dataclasses.replace(found, warnings=scenario.warnings)


def completed(scenario: Scenario) -> Scenario:
    """The same, with nodes that tell what kubelets tell, and a range of addresses for Services."""
    nodes = tuple(_completed(node, index) for index, node in enumerate(scenario.nodes))
    ranges = scenario.api_servers.service_ranges or [*service_ranges.USUAL]
    api_servers = dataclasses.replace(scenario.api_servers, service_ranges=ranges)
    return dataclasses.replace(scenario, nodes=nodes, api_servers=api_servers)


def with_accounts(scenario: Scenario) -> Scenario:
    """The same, whose pods have service accounts as in every cluster, which ``bootstrap_objects`` make and keep, unless
    it says that they have none."""
    servers = scenario.api_servers
    stated = (*servers.enable_admission_plugins, *servers.disable_admission_plugins)
    missing = [one for one in PLUGINS if one not in stated]
    plugins = [*servers.enable_admission_plugins, *missing]
    return dataclasses.replace(scenario, api_servers=dataclasses.replace(servers, enable_admission_plugins=plugins))


def without_kubelets(scenario: Scenario) -> Scenario:
    """The same, but its nodes are objects: a client that wants them Ready has to say so (KWOK)."""
    objects = tuple(Manifest(node.message, scenario.file, 0, 0, f"nodes/{node.name}") for node in scenario.nodes)
    return dataclasses.replace(scenario, nodes=(), setup=(*scenario.setup, *objects))


def _completed(node: Node, index: int) -> Node:
    message = core_v1_pb2.Node()
    message.CopyFrom(node.message)
    spec, status = message.spec, message.status
    if not spec.podCIDR:
        spec.podCIDR = f"{_dotted(_FIRST_POD_RANGE + (index << 8))}/24"
        spec.podCIDRs.append(spec.podCIDR)
    if not status.addresses:
        status.addresses.add(type="InternalIP", address=_dotted(_FIRST_NODE_ADDRESS + index + 2))
        status.addresses.add(type="Hostname", address=node.name)
    info = status.nodeInfo
    for field, value in (
        ("kernelVersion", "6.12.0-kemu"),
        ("osImage", f"kemu {kemu.__version__} (emulated)"),
        ("containerRuntimeVersion", f"kemu://{kemu.__version__}"),
        ("kubeletVersion", KUBERNETES),
        ("operatingSystem", "linux"),
        ("architecture", "amd64"),
    ):
        if not getattr(info, field):
            setattr(info, field, value)
    if not status.daemonEndpoints.kubeletEndpoint.Port:
        status.daemonEndpoints.kubeletEndpoint.Port = KUBELET_PORT
    return dataclasses.replace(node, data=message.SerializeToString(deterministic=True))


def _dotted(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
