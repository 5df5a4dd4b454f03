"""Defects that kemu had, planted back one at a time, for ``kemu fuzz`` to find without a hint.

``python -m tests.swarm.planted [ID …]`` searches the first scenario that shows each, among the first 3,000 of seed 1,
and writes those that it finds to ``found.json``; ``test_planted`` plants each of them again for that scenario alone.
Only scenarios are tried that have the features without which the defect has no effect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.autoscaler import templates
from kemu.emulated.autoscaler.simulator import snapshots
from kemu.emulated.kubelet import kubelet
from kemu.emulated.kubelet.pods import containers
from kemu.emulated.kubelet.pressure import oom_kills
from kemu.emulated.kubelet.sync import pod_workers, starts
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.scheduler import variants
from kemu.emulated.scheduler.queue import queues
from kemu.lab.checks.scheduling import priorities
from kemu.lab.fuzz import features, trials
from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.scenario.loading import controllers, loader
from kemu.lab.scenario.loading.objects import imports
from tests import searches

Plant = Callable[[pytest.MonkeyPatch], None]

FOUND = Path(__file__).with_name("found.json")
SEED, BUDGET = 1, 3000

DEFECTS: dict[str, Plant] = {}
"""By id, which says what is wrong."""
NEEDED: dict[str, Mapping[str, Collection[str]]] = {}
"""By id: features without which the defect has no effect, with the levels that will do; none: all but the plain one."""


def defect(name: str, **needed: Collection[str]) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        DEFECTS[name], NEEDED[name] = plant, needed
        return plant

    return register


@defect("adopted-pods-use-nothing", timing=["realistic", "kubelet-sync"])
def _(patch: pytest.MonkeyPatch) -> None:
    """A kubelet that acts late on news never looks at the usage of the pods that it adopts."""

    def on_batch_end(self: Any) -> None:
        listed, self._first_list = self._first_list, None
        if listed:
            begins = self._clock.now_ns() == 0
            listed.sort(
                key=lambda pod: (
                    begins and pod.status.phase != pod_phases.RUNNING,
                    pod.metadata.creationTimestamp.seconds,
                )
            )
            for pod in listed:
                self._act(self._observe, pod)

    adopt = pod_workers.PodWorkers._adopt

    def without_pressure(self: Any, worker: Any) -> None:
        pressures, self.pressures = self.pressures, None
        try:
            adopt(self, worker)
        finally:
            self.pressures = pressures

    patch.setattr(kubelet.Kubelet, "on_batch_end", on_batch_end)
    patch.setattr(pod_workers.PodWorkers, "_adopt", without_pressure)


@defect("preemptors-are-gated", policy=["requeue"], priorities=[])
def _(patch: pytest.MonkeyPatch) -> None:
    """``requeue: all``: what requeues a preemptor finds it gated, and nothing takes it up again."""

    def move(self: Any, event: Any, old: Any, new: Any, only: Any = None) -> None:
        if event not in variants.FOR_ALL_PODS:
            queues.SchedulingQueue.move(self, event, old, new, only)
            return
        held = list(self._held.values())
        self._requeue_all(event, only)
        self._move_held(held, event, old, new, only)
        self._remember(event, old, new)

    patch.setattr(variants._RequeuesAll, "move", move)
    for name in ("_move_held", "preemption_over"):
        patch.setattr(variants._RequeuesAll, name, getattr(queues.SchedulingQueue, name))


@defect("nominations-end-when-they-are-answered", priorities=[])
def _(patch: pytest.MonkeyPatch) -> None:
    """The check no-priority-inversion takes room for kept that a pod gives up as it goes to another node."""
    patch.setattr(priorities, "_ends_nomination", lambda attempt: False)


@defect("freed-memory-is-taken-back", usage=["memory", "ramp", "limits"])
def _(patch: pytest.MonkeyPatch) -> None:
    """A container that the kernel kills starts again at once and takes its memory back, so that others are killed."""
    exit_ = starts.Starts.exit

    def exits(self: Any, worker: Any, container: Any, code: int, reason: str = "") -> None:
        exit_(self, worker, container, code, reason)
        if container.state == containers.UNNOTICED:
            starts.cancel(container)
            container.state = containers.IDLE
            worker.passed = 0

    patch.setattr(starts.Starts, "exit", exits)
    patch.setattr(oom_kills, "_held", lambda killed, now_ns: 0)


def _keep_status(patch: pytest.MonkeyPatch, kind: str) -> None:
    clean = imports._clean_status

    def clean_others(data: dict[str, Any], status: Any, dropped: Any) -> None:
        if data["kind"] != kind:
            clean(data, status, dropped)

    patch.setattr(imports, "_clean_status", clean_others)


@defect("dumped-budgets-are-frozen", dumped=[], budget=[], controllers=[features.PLAIN])
def _(patch: pytest.MonkeyPatch) -> None:
    """A budget keeps the status of the cluster that it was dumped from, and the disruption controller does not run."""
    _keep_status(patch, "PodDisruptionBudget")
    needed = controllers._needed

    def without_disruption(nodes: Any, setup: Any, events: Any, *rest: Any) -> list[str]:
        found = needed(nodes, setup, events, *rest)
        objects = [each.message for each in setup] + [one for event in events for one in event.objects]
        budgets = [one for one in objects if one.DESCRIPTOR.name == "PodDisruptionBudget"]
        if all(budget.HasField("status") for budget in budgets):
            found = [name for name in found if name != controller_keys.DISRUPTION]
        return found

    patch.setattr(controllers, "_needed", without_disruption)


@defect("dumped-nodes-are-ghosts", dumped=["with-nodes"])
def _(patch: pytest.MonkeyPatch) -> None:
    """A Node among the manifests is an object without a kubelet: pods are bound there, and nobody takes them."""
    _keep_status(patch, "Node")
    patch.setattr(loader, "_is_node", lambda source: False)


@defect("simulations-drop-pods-that-run", autoscaler=[], daemon_set=[])
def _(patch: pytest.MonkeyPatch) -> None:
    """The pods of a node that the autoscaler imagines are those of the node that served as an example: when it forgets
    the node, it forgets them."""

    def add_node(self: Any, node: Any, pods: Any = ()) -> None:
        name = node.metadata.name
        self.cluster.set_node(node)
        self._undoable(lambda: self.cluster.remove_node(name))
        for pod in pods:
            self.place(pod, name)

    def place(self: Any, pod: Any, node: str) -> None:
        uid = pod.metadata.uid
        self.cluster.add_pod(self.cluster.pod(pod), node)
        self._undoable(lambda: self.cluster.remove_pod(uid))

    def named(self: Any, suffix: str) -> Any:
        made = named_before(self, suffix)
        pods = [type(pod).FromString(pod.SerializeToString()) for pod in made.pods]
        for pod in pods:
            pod.metadata.name = pod.metadata.uid = f"{pod.metadata.name}-{suffix}"
            pod.spec.nodeName = made.node.metadata.name
        return templates.Template(made.node, tuple(pods))

    named_before = templates.Template.named
    patch.setattr(snapshots.Snapshot, "add_node", add_node)
    patch.setattr(snapshots.Snapshot, "place", place)
    patch.setattr(templates.Template, "named", named)


def found_by(plant: Plant, number: int) -> list[str]:
    """What the scenario shows with the defect and not without it."""

    def ids() -> list[str]:
        record = trials.Trial(number).carry_out(trials.Source(SEED))
        return [f"{one.relation or one.id}" for one in record.findings]

    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        shown = ids()
    if not shown:
        return []
    sound = ids()
    return [one for one in shown if one not in sound]


def may_show(levels: features.Levels, needed: Mapping[str, Collection[str]]) -> bool:
    """Whether a scenario has what the defect needs."""
    return all(
        levels[feature] in wanted if wanted else levels[feature] != features.PLAIN for feature, wanted in needed.items()
    )


def search(name: str) -> dict[str, Any] | None:
    """The first scenario that shows it; None: there is none."""
    plan = features.Plan(SEED)
    for number in range(BUDGET):
        if not may_show(plan.levels(number), NEEDED[name]):
            continue
        found = found_by(DEFECTS[name], number)
        if found:
            return {"number": number, "by": found}
    return None


def main(arguments: list[str]) -> int:
    return searches.search(FOUND, tuple(DEFECTS), list(DEFECTS), arguments, search, "NOT FOUND")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
