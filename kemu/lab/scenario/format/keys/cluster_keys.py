"""The keys of nodes, schedulers and extenders, and of the times of the cluster's own work.

:mod:`kemu.lab.scenario.loading.clusters` makes actors of what they hold.
"""

from __future__ import annotations

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.scheduler.experiments import switches
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

NODE_FIELDS = {
    "labels": Key(MapOf(Text(".*")), "Labels; kubernetes.io/hostname, os and arch are always set."),
    "annotations": Key(MapOf(Text(".*")), "Annotations."),
    "taints": Key(ListOf(Free()), "Taints as in a Node: key, value, effect."),
    "unschedulable": Key(Switch(), "Cordoned from the start."),
    "capacity": Key(MapOf(QUANTITY), "What the machine has; by default the allocatable."),
    "allocatable": Key(
        MapOf(QUANTITY),
        "What pods may request; by default the capacity less what the kubelet reserves. Where neither names them: "
        "cpu 8, memory 32Gi, ephemeral-storage 100Gi, pods 110.",
    ),
    "kubelet": Key(kubelet_configurations.SHAPE, "Fields of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)."),
    "kubeletFile": Key(Text(), "The same in a file, relative to the scenario."),
    "images": Key(ListOf(Text()), "Names of the images that it has from the start."),
    "usage": Key(
        Free(),
        "What it uses besides its pods: cpu, memory, active_file, inactive_file, disk, images, deadContainers, inodes, "
        "pids.",
    ),
    "policy": Key(
        Record(
            {
                "evictionRanking": Key(
                    Choice(("current", "percentage", "priority-first")),
                    "In which order pods are evicted; current: by whether they exceed their request, priority, bytes.",
                )
            }
        ),
        "Experiment switches of the kubelet; the defaults are today's Kubernetes.",
    ),
    "machine": Key(
        Record(
            {
                "nodefs": Key(Record({"inodes": Key(QUANTITY, "How many.")}), "The file system of logs and volumes."),
                "imagefs": Key(
                    Record(
                        {"capacity": Key(QUANTITY, "Its size.", required=True), "inodes": Key(QUANTITY, "How many.")}
                    ),
                    "A file system of their own for images and writable layers.",
                ),
                "splitImages": Key(Switch(), "Only images lie on imagefs."),
                "pids": Key(QUANTITY, "How many processes there can be; 32768 by default."),
            }
        ),
        "What the kubelet measures beside memory and the size of the disk.",
    ),
}
NODE = Named(
    "node",
    Record(
        NODE_FIELDS | {"count": Key(Whole(0), "How many, with namePrefix.")},
        choices={
            "name": Key(NAME, "The node's name."),
            "namePrefix": Key(Text(what="a prefix such as node-"), "With count: node- gives node-1, node-2, …"),
        },
        noun="name",
    ),
)

SCHEDULER = Record(
    {
        "name": Key(NAME, "Serves the pods whose schedulerName it is.", required=True),
        "replicas": Key(Whole(1, 100), "More than one race, without leader election, on the same pods."),
        "policy": Key(switches.SHAPE, "Experiment switches; the defaults are today's Kubernetes."),
        "factory": Key(Text(), "module:Class of a scheduler of your own, called as Class(env, config)."),
    },
    choices={
        "config": Key(
            Free(), "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), or what the factory is given."
        ),
        "configFile": Key(Text(), "The same in a file, relative to the scenario."),
    },
    noun="configuration",
    choice_required=False,
)

EXTENDER = Record(
    {
        "name": Key(NAME, "The actor is extender/<name>; a scheduler calls it kemu://extender/<name>.", required=True),
        "plugin": Key(Text(), "Its class: module:Class, or the name of one that comes with kemu.", required=True),
        "args": Key(Free(), "What the class is given."),
    }
)
