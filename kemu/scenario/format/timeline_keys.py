"""The keys of what happens at a time: events and faults.

:mod:`kemu.scenario.loading.timelines` makes events and faults of what they hold.
"""

from __future__ import annotations

from kemu.objects.validation import placement
from kemu.scenario.format.cluster_keys import NODE
from kemu.scenario.format.distribution_keys import TIME
from kemu.scenario.format.shapes import (
    DURATION,
    NAME,
    POD_REFERENCE,
    POSITIVE_DURATION,
    SHARE,
    Choice,
    Free,
    Key,
    ListOf,
    ListOr,
    Record,
    Switch,
    Text,
    Whole,
)

_POD = Key(POD_REFERENCE, "A pod: name, or namespace/name.", required=True)
_NODE_NAME = Key(NAME, "A node.", required=True)
_GRACE = Key(Whole(0), "Instead of the pod's own grace period, in seconds.")
_TARGET = {
    "kind": Key(Text(), "Its kind, such as Pod.", required=True),
    "name": Key(NAME, "Its name.", required=True),
    "namespace": Key(NAME, "Its namespace; default by default."),
}

EVENT = Record(
    {"at": Key(DURATION, "When.", required=True)},
    choices={
        "create": Key(Free(), "Create this object."),
        "apply": Key(Free(), "Create this object or, if it exists, patch it to be so."),
        "delete": Key(
            Record(
                {name: Key(key.shape, key.doc) for name, key in _TARGET.items()}
                | {"pod": Key(POD_REFERENCE, "In short for a pod."), "gracePeriodSeconds": _GRACE}
            ),
            "Delete an object.",
        ),
        "patch": Key(
            Record(
                _TARGET,
                choices={
                    "merge": Key(Free(), "A JSON merge patch."),
                    "strategic": Key(Free(), "A strategic merge patch."),
                },
                noun="patch",
            ),
            "Patch an object.",
        ),
        "evict": Key(
            Record({"pod": _POD, "gracePeriodSeconds": _GRACE}), "Evict a pod through the Eviction subresource."
        ),
        "finish": Key(
            Record({"pod": _POD, "exitCode": Key(Whole(0, 255), "0 by default.")}), "The containers of a pod end."
        ),
        "cordon": Key(Record({"node": _NODE_NAME}), "Mark a node unschedulable."),
        "uncordon": Key(Record({"node": _NODE_NAME}), "Mark it schedulable again."),
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

_ACTOR = Text(
    r"(store|apiserver|scheduler|extender|kubelet|controller|\*)[^\s]*",
    "an actor: store, apiserver/0, scheduler/<name>/<replica>, extender/<name>, kubelet/<node>, controller/<name>, "
    "or a pattern",
)
_NODES = Text(r"[^\s/]+", "a node, or a pattern")
_CHOICE = {
    "all": Key(Switch(), "All that match a pattern."),
    "count": Key(Whole(1), "So many of those that match a pattern, picked by the seed."),
    "share": Key(SHARE, "Such a part of those that match a pattern, picked by the seed: 10%."),
}
CHAOS = Record(
    {
        "at": Key(DURATION, "When the fault happens."),
        "every": Key(TIME, "It happens again and again, after such times."),
        "from": Key(DURATION, "With every: not before."),
        "until": Key(DURATION, "With every: not after."),
        "for": Key(POSITIVE_DURATION, "When the fault ends by itself; of a crash: how long the actor is away."),
        "id": Key(Text(), "Its name in the run log."),
    },
    choices={
        "crash": Key(
            Record(
                {**_CHOICE, "restart": Key(Switch(), "Whether it comes back; true by default.")},
                choices={
                    "actor": Key(_ACTOR, "Who; a pattern such as kubelet/* picks one by the seed."),
                    "node": Key(
                        _NODES, "The machine of a node, with its kubelet and all its containers; or a pattern."
                    ),
                },
                noun="victim",
            ),
            "An actor or a machine dies without a word; what it has fsynced survives.",
        ),
        "partition": Key(
            Record(
                {
                    "between": Key(
                        ListOf(ListOr(_ACTOR), 2), "Two sides, each an actor, a pattern or a list.", required=True
                    ),
                    "oneWay": Key(Switch(), "Only messages from the first side to the second are lost."),
                    **_CHOICE,
                }
            ),
            "Messages between two sides are lost and connections break.",
        ),
        **{
            name: Key(Free(mapping=False), doc, built=False)
            for name, doc in (
                ("pause", "An actor stands still."),
                ("delay", "Messages take longer."),
                ("drop", "Messages are lost."),
                ("duplicate", "Messages arrive twice."),
                ("clockSkew", "An actor's clock is wrong."),
                ("diskFull", "Writes to a disk fail."),
                ("tornWrite", "A write is cut by a crash."),
                ("staleReads", "An API server answers from the past."),
                ("cutWatches", "Watches break."),
            )
        },
    },
    noun="fault",
)
