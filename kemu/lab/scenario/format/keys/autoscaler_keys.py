"""The keys of ``autoscaler``: node groups, and the flags of the cluster autoscaler
(:mod:`kemu.emulated.autoscaler.settings`).

:mod:`kemu.lab.scenario.loading.node_groups` reads what they hold.
"""

from __future__ import annotations

from typing import Any

from kemu.emulated.autoscaler import clouds, settings
from kemu.emulated.settings.declared import keys
from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import (
    DURATION,
    NAME,
    SHARE,
    Choice,
    Key,
    ListOf,
    Number,
    Record,
    Whole,
)
from kemu.lab.scenario.format.keys import cluster_keys

_FAILURE = Record(
    {
        "kind": Key(
            Choice(clouds.FAILURES),
            "out-of-resources: the instance is reported as failed; error: the request is refused; never-registers: "
            "the machine runs, but no kubelet comes.",
            required=True,
        ),
        "from": Key(DURATION, "From when on; the start of the run by default."),
        "until": Key(DURATION, "Until when; the end of the run by default."),
        "share": Key(SHARE, "The share of instances, or of requests, that fail; all by default."),
    }
)

GROUP = Record(
    {
        "name": Key(NAME, "Its nodes are <name>-1, <name>-2, …; numbers are not used again.", required=True),
        "min": Key(Whole(0), "The least number of nodes; 0 by default."),
        "max": Key(Whole(0), "The greatest number of nodes.", required=True),
        "initial": Key(Whole(0), "How many there are when the clock starts; min by default."),
        "template": Key(Record(cluster_keys.NODE_FIELDS), "What its nodes are like: the keys of a node."),
        "provisioning": Key(TIME, "From the request until the machine runs and its kubelet starts; 60s by default."),
        "startup": Key(
            TIME,
            "How long a new node keeps a startup taint, until its agents are done; 0 by default.",
        ),
        "removal": Key(TIME, "From a node's deletion until machine and Node are gone; 30s by default."),
        "failures": Key(ListOf(_FAILURE), "When instances cannot be had."),
        "price": Key(Number(0), "Of one node for an hour; 0 by default. The metric bill.money adds it up."),
    }
)

SHAPE: Any = Record(
    {
        "nodeGroups": Key(ListOf(GROUP), "What it scales: groups of equal nodes.", required=True),
        **keys(settings.Settings),
    }
)
