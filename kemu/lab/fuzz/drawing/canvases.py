"""What the parts of a drawn scenario have to know of each other: sizes, names, times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.lab.fuzz.drawing.dice import Dice

Data = dict[str, Any]

MOST_NODES = 100
MOST_PODS = 120
QUIET_S = 150
"""How long nothing more happens at the end: longer than backoffs of schedulers and grace periods, and shorter than the
five minutes after which a scheduler looks at everything again."""
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Owner:
    """An object that keeps pods."""

    kind: str
    namespace: str
    name: str
    replicas: int

    @property
    def app(self) -> str:
        return self.name


@dataclass
class Canvas:
    """A scenario that is being drawn."""

    seed: int
    number: int
    levels: Mapping[str, str]
    nodes: int
    pods: int
    """How many there may be, more or less."""
    active_s: int
    """From the start until nothing more happens."""
    spec: Data = field(default_factory=dict)
    node_names: list[str] = field(default_factory=list)
    scheduler_names: list[str] = field(default_factory=lambda: ["default-scheduler"])
    cpu: int = 4
    """CPU of a usual node."""
    memory_mib: int = 8192
    owners: list[Owner] = field(default_factory=list)
    single_pods: list[str] = field(default_factory=list)
    """Names of pods in the namespace default that no controller keeps."""
    classes: list[str] = field(default_factory=list)
    pods_left: int = 0

    def dice(self, *part: str | int) -> Dice:
        return Dice(self.seed, self.number, *part)

    def level(self, feature: str) -> str:
        return self.levels[feature]

    def has(self, feature: str) -> bool:
        return self.levels[feature] != "-"

    def is_one(self, feature: str, *levels: str) -> bool:
        return self.levels[feature] in levels

    def manifest(self, item: Data) -> None:
        self.spec.setdefault("manifests", []).append(item)

    def event(self, at_s: float, action: str, what: object) -> None:
        self.spec.setdefault("events", []).append({"at": seconds(at_s), action: what})

    def fault(self, item: Data) -> None:
        self.spec.setdefault("chaos", []).append(item)

    def takes(self, dice: Dice, most: int) -> int:
        """So many of the pods that are left."""
        wanted = dice.log_whole(1, max(1, min(most, self.pods_left)))
        self.pods_left = max(0, self.pods_left - wanted)
        return wanted


def seconds(value: float) -> str:
    """``12.5`` is ``12500ms``."""
    return f"{value:g}s" if value == int(value) else f"{round(value * 1000)}ms"
