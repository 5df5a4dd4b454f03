"""Draws a scenario: the parts in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.lab.fuzz.drawing import chaos, clusters, dumps, happenings, objects
from kemu.lab.fuzz.drawing.canvases import MOST_NODES, MOST_PODS, QUIET_S, Canvas
from kemu.lab.scenario.loading import loader


@dataclass(frozen=True)
class Drawn:
    """A scenario that was drawn."""

    seed: int
    number: int
    levels: Mapping[str, str]
    data: dict[str, Any]
    """The document."""

    @property
    def name(self) -> str:
        return f"fuzz-{self.seed}-{self.number}"


def draw(seed: int, number: int, levels: Mapping[str, str]) -> Drawn:
    """The scenario with that number; the same arguments give the same document in every process."""
    dice = Canvas(seed, number, levels, 0, 0, 0).dice("sizes")
    # Most are small: a bug that needs a hundred nodes is rare, and costs as much as fifty that need two.
    nodes = dice.log_whole(1, MOST_NODES) if dice.chance(0.15) else dice.log_whole(1, 5)
    pods = dice.log_whole(2, MOST_PODS) if dice.chance(0.15) else dice.log_whole(2, 20)
    active_s = dice.whole(30, 180)
    canvas = Canvas(seed, number, levels, nodes, pods, active_s, pods_left=pods)
    canvas.spec = {"seed": dice.whole(0, 10**6), "duration": f"{active_s + QUIET_S}s"}
    clusters.draw_nodes(canvas)
    clusters.draw_control_plane(canvas)
    clusters.draw_autoscaler(canvas)
    objects.draw(canvas)
    happenings.draw(canvas)
    dumps.draw(canvas)
    if canvas.has("fault") or canvas.has("second_fault") or canvas.has("controllers"):
        # Which controllers run follows from the rest; a fault that strikes none of them brings those of nodes.
        if canvas.has("fault") or canvas.has("second_fault"):
            canvas.fault({"at": "1s", "for": "1s", "pause": {"actor": "store"}})
        running = list(loader.of_data(document(canvas), "drawn.yaml", None).controllers)
        canvas.spec.pop("chaos", None)
        chaos.draw(canvas, running)
        if any(f"controller/{name}" in str(canvas.spec.get("chaos")) for name in running):
            # Named, because another fault may need other ones.
            canvas.spec["controllers"] = running
        clusters.draw_controllers(canvas, [name for name in running if name != "cluster-autoscaler"])
        if "autoscaler" in canvas.spec and "controllers" in canvas.spec:
            controllers = canvas.spec["controllers"]
            if isinstance(controllers, dict):
                controllers["cluster-autoscaler"] = {}
    return Drawn(seed, number, levels, document(canvas))


def document(canvas: Canvas) -> dict[str, Any]:
    metadata = {"name": f"fuzz-{canvas.seed}-{canvas.number}"}
    return {"apiVersion": "kemu.dev/v1", "kind": "Scenario", "metadata": metadata, "spec": dict(canvas.spec)}
