"""What a cluster is built of: nodes, schedulers and extenders, as a scenario states them.

:mod:`kemu.lab.scenario.loading.clusters` checks them against each other and makes the Nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.kubelet.settings.devices import Devices
from kemu.emulated.kubelet.settings.kubelet_configurations import KubeletConfiguration
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.settings.declared import REQUIRED, Section, setting
from kemu.emulated.settings.shapes import (
    NAME,
    QUANTITY,
    Choice,
    Free,
    Key,
    ListOf,
    MapOf,
    Named,
    Record,
    Switch,
    Text,
    Whole,
)
from kemu.messages.k8s import core_v1_pb2

_MACHINE = Record(
    {
        "nodefs": Key(Record({"inodes": Key(QUANTITY, "How many.")}), "The file system of logs and volumes."),
        "imagefs": Key(
            Record({"capacity": Key(QUANTITY, "Its size.", required=True), "inodes": Key(QUANTITY, "How many.")}),
            "A file system of their own for images and writable layers.",
        ),
        "splitImages": Key(Switch(), "Only images lie on imagefs."),
        "pids": Key(QUANTITY, "How many processes there can be; 32768 by default."),
    }
)
_POLICY = Record(
    {
        "evictionRanking": Key(
            Choice(("current", "percentage", "priority-first")),
            "In which order pods are evicted; current: by whether they exceed their request, priority, bytes.",
        )
    }
)


@dataclass(frozen=True, kw_only=True)
class NodeFields:
    """What nodes are like."""

    labels: Mapping[str, str] = setting(
        MapOf(Text(".*")), "Labels; kubernetes.io/hostname, os and arch are always set.", {}
    )
    annotations: Mapping[str, str] = setting(MapOf(Text(".*")), "Annotations.", {})
    taints: list[Any] = setting(ListOf(Free()), "Taints as in a Node: key, value, effect.", [])
    unschedulable: bool = setting(Switch(), "Cordoned from the start.", False)
    capacity: Mapping[str, str] = setting(MapOf(QUANTITY), "What the machine has; by default the allocatable.", {})
    allocatable: Mapping[str, str] = setting(
        MapOf(QUANTITY),
        "What pods may request; by default the capacity less what the kubelet reserves. Where neither names them: "
        "cpu 8, memory 32Gi, ephemeral-storage 100Gi, pods 110.",
        {},
    )
    kubelet: KubeletConfiguration | None = setting(
        kubelet_configurations.SHAPE, "Fields of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)."
    )
    kubelet_file: str | None = setting(Text(), "The same in a file, relative to the scenario.")
    images: list[str] = setting(ListOf(Text()), "Names of the images that it has from the start.", [])
    usage: Mapping[str, Any] = setting(
        Free(),
        "What it uses besides its pods: cpu, memory, active_file, inactive_file, disk, images, deadContainers, inodes, "
        "pids.",
        {},
    )
    policy: Mapping[str, Any] = setting(
        _POLICY, "Experiment switches of the kubelet; the defaults are today's Kubernetes.", {}
    )
    devices: list[Devices] = setting(
        ListOf(Section(Devices, noun="driver")),
        "Devices that drivers publish in ResourceSlices, for claims of pods.",
        [],
    )
    machine: Mapping[str, Any] = setting(
        _MACHINE, "What the kubelet measures beside memory and the size of the disk.", {}
    )


@dataclass(frozen=True, kw_only=True)
class Nodes(NodeFields):
    """One node, or several that are alike."""

    count: int | None = setting(Whole(0), "How many, with namePrefix.")
    name: str | None = setting(NAME, "The node's name.", choice=True)
    name_prefix: str | None = setting(
        Text(what="a prefix such as node-"), "With count: node- gives node-1, node-2, …", choice=True
    )


@dataclass(frozen=True, slots=True)
class Node:
    """A node and its kubelet."""

    name: str
    data: bytes
    """:attr:`message`, serialised: a parsed Node takes ten times as much."""
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a KubeletConfiguration, as written."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    """What it uses besides its pods, as written."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    """File systems, inodes and processes, as written."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Experiment switches of the kubelet."""
    devices: tuple[Mapping[str, Any], ...] = ()
    """Its devices, by driver: plain data of :class:`kemu.emulated.kubelet.settings.devices.Devices`."""
    static_pods: tuple[core_v1_pb2.Pod, ...] = ()
    """The manifests of its static pods."""

    @property
    def message(self) -> core_v1_pb2.Node:
        """Labels, taints, capacity and allocatable; what the kubelet registers. A copy."""
        return core_v1_pb2.Node.FromString(self.data)


NODES = Named("node", Section(Nodes, noun="name"))


@dataclass(frozen=True, kw_only=True)
class Scheduler:
    """One or more replicas of a scheduler."""

    name: str = setting(NAME, "Serves the pods whose schedulerName it is.", required=True)
    replicas: int = setting(Whole(1, 100), "More than one race, without leader election, on the same pods.", 1)
    policy: Mapping[str, Any] = setting(
        switches.SHAPE.record, "Experiment switches; the defaults are today's Kubernetes.", {}
    )
    factory: str | None = setting(Text(), "module:Class of a scheduler of your own, called as Class(env, config).")
    config: Mapping[str, Any] = setting(
        Free(),
        "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), or what the factory is given.",
        {},
        choice=True,
    )
    config_file: str | None = setting(Text(), "The same in a file, relative to the scenario.", choice=True)


@dataclass(frozen=True, kw_only=True)
class Extender:
    """A process that schedulers ask, the actor ``extender/<name>``."""

    name: str = setting(NAME, "The actor is extender/<name>; a scheduler calls it kemu://extender/<name>.", REQUIRED)
    plugin: str = setting(Text(), "Its class: module:Class, or the name of one that comes with kemu.", REQUIRED)
    args: Mapping[str, Any] = setting(Free(), "What the class is given.", {})
