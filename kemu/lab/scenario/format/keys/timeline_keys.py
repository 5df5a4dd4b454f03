"""The keys of events.

:mod:`kemu.lab.scenario.loading.timelines` makes events of what they hold.
"""

from __future__ import annotations

from kemu.emulated.client import drains
from kemu.emulated.objects.validation import placement
from kemu.emulated.settings.declared import Section
from kemu.emulated.settings.shapes import (
    DURATION,
    NAME,
    POD_REFERENCE,
    ROLLOUT_REFERENCE,
    Choice,
    Free,
    Key,
    Record,
    Text,
    Whole,
)
from kemu.lab.scenario.format.keys.cluster_keys import NODE

_POD = Key(POD_REFERENCE, "A pod: name, or namespace/name.", required=True)
_NODE_NAME = Key(NAME, "A node.", required=True)
_GRACE = Key(Whole(0), "Instead of the pod's own grace period, in seconds.")
_TARGET = {
    "kind": Key(Text(), "Its kind, such as Pod.", required=True),
    "name": Key(NAME, "Its name.", required=True),
    "namespace": Key(NAME, "Its namespace; default by default."),
}

EVENT = Record(
    {
        "at": Key(DURATION, "When.", required=True),
        "as": Key(Text(), "Who does it: one of users, or a user of the system; an administrator by default."),
    },
    choices={
        "create": Key(Free(), "Create this object, those of a List, or those of a file: {file: path.yaml}."),
        "apply": Key(Free(), "Create this object (or List, or file) or, if it exists, patch it to be so."),
        "delete": Key(
            Record(
                {name: Key(key.shape, key.doc) for name, key in _TARGET.items()}
                | {
                    "pod": Key(POD_REFERENCE, "In short for a pod."),
                    "gracePeriodSeconds": _GRACE,
                    "propagationPolicy": Key(
                        Choice(("Background", "Foreground", "Orphan")),
                        "What becomes of its dependents; Background by default, as with kubectl.",
                    ),
                }
            ),
            "Delete an object.",
        ),
        "patch": Key(
            Record(
                {**_TARGET, "subresource": Key(Choice(("status", "resize")), "Patch this part of it.")},
                choices={
                    "merge": Key(Free(), "A JSON merge patch."),
                    "strategic": Key(Free(), "A strategic merge patch."),
                },
                noun="patch",
            ),
            "Patch an object.",
        ),
        "rollout": Key(
            Record(
                {"toRevision": Key(Whole(1), "With undo: to which revision; to the one before by default.")},
                choices={
                    "restart": Key(ROLLOUT_REFERENCE, "Make all pods anew."),
                    "undo": Key(ROLLOUT_REFERENCE, "Go back to a former template."),
                    "pause": Key(ROLLOUT_REFERENCE, "Let changes of the template wait. Deployments only."),
                    "resume": Key(ROLLOUT_REFERENCE, "Roll out what waits. Deployments only."),
                },
                noun="action",
            ),
            "As kubectl rollout: deployment/web, statefulset/db, daemonset/agent.",
        ),
        "evict": Key(
            Record({"pod": _POD, "gracePeriodSeconds": _GRACE}), "Evict a pod through the Eviction subresource."
        ),
        "finish": Key(
            Record({"pod": _POD, "exitCode": Key(Whole(0, 255), "0 by default.")}), "The containers of a pod end."
        ),
        "resize": Key(
            Record(
                {
                    "pod": _POD,
                    "containers": Key(Free(), "By name: the requests and limits that they are to have."),
                    "initContainers": Key(Free(), "The same of sidecars and init containers."),
                    "resources": Key(Free(), "The requests and limits of the pod as a whole."),
                }
            ),
            "Change the cpu and memory of a running pod in place.",
        ),
        "cordon": Key(Record({"node": _NODE_NAME}), "Mark a node unschedulable."),
        "uncordon": Key(Record({"node": _NODE_NAME}), "Mark it schedulable again."),
        "drain": Key(Section(drains.Options), "Cordon a node and evict its pods, as kubectl drain."),
        "taint": Key(
            Record(
                {
                    "node": _NODE_NAME,
                    "key": Key(Text(), "Key of the taint.", required=True),
                    "value": Key(Text(".*"), "Value of the taint."),
                    "effect": Key(Choice(placement.TAINT_EFFECTS), "Effect of the taint.", required=True),
                }
            ),
            "Add a taint to a node, or replace the one of this key and effect.",
        ),
        "untaint": Key(
            Record(
                {
                    "node": _NODE_NAME,
                    "key": Key(Text(), "Key of the taint.", required=True),
                    "effect": Key(Choice(placement.TAINT_EFFECTS), "Only the taint of this effect."),
                }
            ),
            "Remove taints from a node.",
        ),
        "addNode": Key(NODE, "A node and its kubelet come up."),
        "removeNode": Key(Record({"node": _NODE_NAME}), "The kubelet stops and the Node is deleted."),
        "shutdownNode": Key(
            Record({"node": _NODE_NAME}),
            "The machine is shut down, gracefully if its kubelet is configured so; the Node stays.",
        ),
        "startNode": Key(Record({"node": _NODE_NAME}), "A machine that is off boots, and its kubelet starts."),
    },
    noun="action",
)
