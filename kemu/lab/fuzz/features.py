"""What a drawn scenario may have: a table of features with their levels, and the plan of a search over it.

The first level of a feature is the plain one: the scenario without it. A plan is made of a covering array, in which
every level of every feature meets every level of every other one: ``array.txt``, made by ``python -m
tests.swarm.arrays``.
Each seed exchanges the levels in its columns at random, which leaves it one. Every tenth scenario has a row of the
array as it stands. The others have only a part of a row, a swarm, the rest plain: features hide each other's bugs, and
a scenario that has everything shows little. A swarm has a theme: much of what has to do with each other, little else.

    levels = Plan(seed=7).levels(41)

Neighbours: :mod:`drawing` makes scenarios of levels; :mod:`coverage` counts the pairs that were met.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kemu.errors import KemuError
from kemu.lab.fuzz.drawing.dice import Dice
from kemu.runtime.faults import kinds

Levels = Mapping[str, str]

DAMAGING = ("bitRot", "lostSectors", "restore", "lostRenames")
"""Faults that take away what was acknowledged: checks must fail then, and say so."""
# good first: nodes with devices and pods that claim them, so that faults of drivers can be drawn, too
OF_SINGLE_RUNS = tuple(
    name
    for name in kinds.KINDS
    if name not in (*kinds.CLIENT_FAULTS, *kinds.PROCESS_FAULTS, *kinds.DEVICE_FAULTS, *DAMAGING)
)
"""Faults of actors in virtual time under which every check must hold; drawn clusters have no devices."""

PLAIN = "-"
_SWITCH = (PLAIN, "yes")

FEATURES: Mapping[str, tuple[str, ...]] = {
    # the cluster
    "room": ("ample", "tight", "over"),
    "shape": (PLAIN, "mixed", "capacity"),
    "zones": (PLAIN, "two", "three"),
    "taints": (PLAIN, "NoSchedule", "PreferNoSchedule", "NoExecute"),
    "cordoned": _SWITCH,
    "kubelet": (PLAIN, "limits", "eviction", "soft-eviction", "shutdown", "static-pods", "heartbeats"),
    "node_usage": (PLAIN, "constant", "ramp"),
    "machine": (PLAIN, "imagefs", "pids"),
    "images": (PLAIN, "sized", "pulled"),
    # the control plane
    "timing": (PLAIN, "realistic", "kubelet-sync", "slow"),
    "schedulers": (PLAIN, "racing", "elected", "two-names"),
    "scheduler_config": (PLAIN, "most-allocated", "few-nodes", "backoff"),
    "policy": (
        PLAIN, "requeue", "nomination", "clearLowerNominations", "eligibility", "preemptor-kubelet",
        "preemptor-rescheduler", "disablePreemption", "statusWrites", "victimOrder", "pdb", "crossNodePreemption",
        "lowerPriorityAffinity", "avoidEvictedNode", "fifo",
    ),
    "api_servers": (PLAIN, "two", "three"),
    "api": (PLAIN, "cache-lag", "bind-check", "plugins", "flow"),
    "store": (PLAIN, "always"),
    "controllers": (PLAIN, "elected", "lagging", "settings"),
    "records": (PLAIN, "exact", "sparing", "no-events"),
    "autoscaler": (PLAIN, "grows", "shrinks"),
    # objects
    "pods": (PLAIN, "single", "placed", "finite"),
    "deployment": (PLAIN, "rolling", "recreate"),
    "replica_set": _SWITCH,
    "stateful_set": (PLAIN, "ordered", "parallel"),
    "daemon_set": (PLAIN, "all-nodes", "some-nodes"),
    "job": (PLAIN, "plain", "indexed", "failing"),
    "cron_job": _SWITCH,
    "workload": (PLAIN, "poisson", "every", "at-once"),
    "budget": (PLAIN, "min", "max", "percent"),
    "quota": (PLAIN, "quota", "limit-range"),
    "claims": (PLAIN, "templates", "ephemeral"),
    "namespaces": _SWITCH,
    "dumped": (PLAIN, "objects", "list", "with-nodes"),
    # pods
    "priorities": (PLAIN, "classes", "never", "critical"),
    "qos": (PLAIN, "best-effort", "guaranteed", "mixed"),
    "affinity": (PLAIN, "node", "pod", "anti", "preferred"),
    "spread": (PLAIN, "soft", "hard"),
    "tolerations": (PLAIN, "some", "all", "seconds"),
    "containers": (PLAIN, "init", "sidecar", "ports", "crashing"),
    "probes": (PLAIN, "readiness", "liveness"),
    "grace": (PLAIN, "short", "long"),
    "usage": (PLAIN, "memory", "ramp", "disk", "limits"),
    "lives": _SWITCH,
    # what happens
    "nodes_change": (PLAIN, "join", "leave", "drain", "cordon", "taint", "shutdown"),
    "pods_change": (PLAIN, "evict", "delete", "finish", "resize", "late"),
    "workloads_change": (PLAIN, "scale", "restart", "delete", "image"),
    "fault": (PLAIN, *OF_SINGLE_RUNS),
    "fault_times": (PLAIN, "every", "long"),
    "second_fault": (PLAIN, "crash", "pause", "partition", "cutWatches"),
}  # fmt: skip
"""By name: its levels, the plain one first."""

ARRAY = Path(__file__).with_name("array.txt")


@dataclass(frozen=True)
class Theme:
    """Features that have to do with each other."""

    core: tuple[str, ...]
    """Never plain. With ``room``: the cluster is tight or overfull."""
    rest: tuple[str, ...]


THEMES = (
    Theme(
        ("usage", "pods", "room"),
        ("node_usage", "kubelet", "machine", "qos", "priorities", "timing", "containers", "images", "daemon_set"),
    ),
    Theme(
        # Nominations live as long as victims take to go.
        ("priorities", "pods", "grace", "room"),
        ("policy", "workload", "schedulers", "timing", "pods_change", "nodes_change", "budget", "deployment"),
    ),
    Theme(
        ("policy", "priorities", "pods", "grace", "room"),
        ("workload", "schedulers", "timing", "pods_change", "nodes_change", "budget"),
    ),
    Theme(
        ("affinity",),
        ("spread", "taints", "tolerations", "zones", "scheduler_config", "schedulers", "pods", "workload", "deployment",
         "nodes_change", "timing"),
    ),
    Theme(
        ("deployment",),
        ("replica_set", "stateful_set", "daemon_set", "job", "cron_job", "budget", "quota", "claims", "namespaces",
         "controllers", "workloads_change", "nodes_change", "probes", "grace"),
    ),
    Theme(
        ("autoscaler", "room"),
        ("deployment", "daemon_set", "workload", "pods", "budget", "priorities", "taints", "nodes_change"),
    ),
    Theme(
        ("fault",),
        ("second_fault", "fault_times", "api_servers", "api", "store", "schedulers", "controllers", "deployment",
         "stateful_set", "workload", "timing", "records"),
    ),
    Theme(("dumped",), ("deployment", "stateful_set", "budget", "job", "pods", "namespaces", "quota")),
)  # fmt: skip
"""Pressure, preemption, its switches, placement, workloads, scaling, faults, imports."""
IN_THEME, BESIDE = (0.4, 0.6, 0.9), (0.02, 0.08, 0.2)
"""How much of a row a swarm keeps, of its theme and of the rest."""
PART_OF_WHOLE_ROWS = 10
"""Every tenth scenario has all of its row; it takes as long as seven others."""


class Plan:
    """Which levels each scenario of a seed has. The same seed gives the same plan in every process."""

    def __init__(self, seed: int, pinned: Levels | None = None) -> None:
        """``pinned``: levels that all scenarios have. Raises KemuError for what is no feature or no level of it."""
        self._seed = seed
        self._pinned = dict(pinned or {})
        for name, level in self._pinned.items():
            if level not in FEATURES.get(name, ()):
                known = ", ".join(FEATURES.get(name, FEATURES))
                raise KemuError(
                    f"{name}={level}: there is no such {'level' if name in FEATURES else 'feature'}: {known}"
                )
        self._array = array()
        self._exchanged: tuple[int, dict[str, list[str]]] = (-1, {})

    def levels(self, number: int) -> dict[str, str]:
        """Levels of the scenario with that number, from 0 on."""
        dice = Dice(self._seed, number, "features")
        row = self._row(number)
        if number % PART_OF_WHOLE_ROWS:
            row = _swarm(row, dice)
        return {name: self._pinned.get(name, row[name]) for name in FEATURES}

    def _row(self, number: int) -> Levels:
        epoch, place = divmod(number, len(self._array) * PART_OF_WHOLE_ROWS)
        whole, is_part = divmod(place, PART_OF_WHOLE_ROWS)
        # Whole rows come in their order, so that a search of four times their number has had them all.
        row = self._array[Dice(self._seed, number, "row").whole(0, len(self._array) - 1) if is_part else whole]
        if self._exchanged[0] != epoch:
            dice = Dice(self._seed, epoch, "array")
            self._exchanged = epoch, {name: dice.shuffled(list(levels)) for name, levels in FEATURES.items()}
        return {name: self._exchanged[1][name][level] for name, level in zip(FEATURES, row, strict=True)}


def _swarm(row: Levels, dice: Dice) -> Levels:
    theme, inside, beside = dice.pick(THEMES), dice.pick(IN_THEME), dice.pick(BESIDE)
    found = {}
    for name, levels in FEATURES.items():
        # The room decides how the rest shows, so it is never plain by chance.
        is_kept = dice.chance(inside if name in theme.rest else beside) or name == "room"
        found[name] = row[name] if is_kept else levels[0]
        if name in theme.core and found[name] == levels[0]:
            found[name] = dice.pick(levels[1:])
    return found


@functools.cache
def array() -> Sequence[Sequence[int]]:
    """The covering array: rows of the numbers of levels, a column for each feature."""
    lines = ARRAY.read_text().splitlines()
    return [[int(digit, 36) for digit in line] for line in lines if not line.startswith("#")]


def pairs(levels: Levels) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """All pairs of levels that a scenario has."""
    yield from itertools.combinations(((name, levels[name]) for name in FEATURES), 2)


def count_of_pairs() -> int:
    """How many there are."""
    sizes = [len(levels) for levels in FEATURES.values()]
    return sum(first * second for first, second in itertools.combinations(sizes, 2))
