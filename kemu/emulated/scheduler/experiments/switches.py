# ruff: noqa: N815  (switches have the names that a scenario writes)
"""Experiment switches: the alternatives of the source documents beside today's behaviour.

They change one scheduler; the defaults are those of Kubernetes v1.36.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.declared import Section, setting, settings_of
from kemu.emulated.settings.documents import Document, Path
from kemu.emulated.settings.shapes import POSITIVE_SECONDS, Choice, Key, Record, Report, ScalarOr, Shape, Switch, Whole
from kemu.errors import FieldError, Problem

MIN_FEASIBLE_NODES = 100
"""The number of feasible nodes below which kube-scheduler's search never stops."""


class PolicyError(FieldError):
    """A switch that does not exist, or a value that it does not have. ``path`` names the switch."""


@dataclass(frozen=True)
class _Amount:
    """A switch with a number: off is 0, on the ``default``, or a mapping with the number as ``key``."""

    key: str
    default: float
    doc: str
    number: Shape

    @property
    def _shape(self) -> ScalarOr:
        return ScalarOr(Switch(), Record({self.key: Key(self.number, self.doc)}))

    def check(self, value: Json, path: Path, report: Report) -> object:
        found = self._shape.check(value, path, report)
        if isinstance(found, bool):
            return self.default if found else 0
        return found.get(self.key, self.default) if isinstance(found, dict) else found

    def schema(self) -> dict[str, Any]:
        return self._shape.schema()


@dataclass(frozen=True, slots=True)
class Policy:
    """One scheduler's switches, by their names in a scenario."""

    queue: str = setting(
        Choice(("priority", "fifo")), "fifo: in the order of arrival, the failed ones last.", "priority"
    )
    requeue: str = setting(
        # All but the addition of a pod (the design document), by a class of kemu.emulated.scheduler.variants.
        Choice(("hints", "all")),
        "all: any event requeues all unschedulable pods, not only those that it may help.",
        "hints",
    )
    nomination: bool = setting(Switch(), "Whether the room that preemption makes is kept for the preemptor.", True)
    nominatedNodeFirst: bool = setting(
        # The design document: "scheduler ignores NominatedNodeName of the pod".
        Switch(),
        "Whether a nominated node that passes is taken before any other node is looked at.",
        True,
    )
    cooperate: bool = setting(Switch(), "Whether nominations that other schedulers have made are honoured.", True)
    clearLowerNominations: str = setting(
        Choice(("current", "always", "if-unfit", "never")),
        "When a preemptor clears lower nominations on its node. current: not if all of its victims terminate already.",
        "current",
    )
    """``if-unfit``: also when all victims terminate already, but only nominations that no longer fit beside it (the
    design document, :mod:`kemu.emulated.scheduler.experiments.unfit_nominations`)."""
    preemptor: str = setting(Choice(("scheduler", "kubelet", "rescheduler", "none")), "Who preempts.", "scheduler")
    """``kubelet``: the scheduler binds as if pods of lower priority were not there
    (:mod:`kemu.emulated.scheduler.experiments.overcommitments`), and the node makes room; ``rescheduler``: an actor of
    its own (:mod:`kemu.emulated.scheduler.experiments.rescheduler`); ``none``: no preemption."""
    victimOrder: str = setting(
        Choice(("priority", "priority-then-qos", "qos", "qos-only")),
        "By what victims are ranked: QoS after, before or instead of priority.",
        "priority",
    )
    """:mod:`kemu.emulated.scheduler.preemption.victim_orders`; the design document has ``priority-then-qos``."""
    pdb: str = setting(
        Choice(("respect", "ignore")), "Whether victims under a disruption budget are spared if possible.", "respect"
    )
    eligibility: str = setting(
        Choice(("current", "alpha")),
        "When a pod that has preempted may preempt again. alpha: not while any lower pod terminates on its node.",
        "current",
    )
    runTimes: str = setting(
        # An oracle, so a scenario has to ask for it: what plugins decide with it no real scheduler can.
        Choice(("hidden", "known")),
        "known: plugins of one's own may ask how long each pod still runs.",
        "hidden",
    )
    """:mod:`kemu.emulated.scheduler.framework.run_times`."""
    disablePreemption: bool = setting(Switch(), "No preemption at all.", False)
    statusWrites: str = setting(
        # background: as under the feature gate SchedulerAsyncAPICalls.
        Choice(("blocking", "background")),
        "Whether the scheduling loop waits until the status of a pod that failed is written.",
        "blocking",
    )
    percentageAbove100: str = setting(
        # The documentation says cap; validation refuses.
        Choice(("refuse", "cap")),
        "cap: a percentageOfNodesToScore above 100 acts as 100.",
        "refuse",
    )
    crossNodePreemption: int = setting(
        _Amount("budget", 10_000, "How much an attempt searches before it gives up; 10000.", Whole(1)),
        "Victims on other nodes too, where no node helps by itself.",
        False,
    )
    """Evaluations of an attempt; 0: off (:mod:`kemu.emulated.scheduler.experiments.cross_node`)."""
    lowerPriorityAffinity: int = setting(
        _Amount("limit", 100, "How many sets of pods are tried on a node; 100.", Whole(1)),
        "Spare the victims that the preemptor has affinity to.",
        False,
    )
    """0: off (:mod:`kemu.emulated.scheduler.experiments.lower_priority_affinity`)."""
    victimSearch: str = setting(
        Choice(("sets", "one-by-one")),
        "How these two search: all sets of pods, or one pod after the other.",
        "sets",
    )
    """``sets``: small ones first. ``one-by-one``: all lower pods go and are reprieved one by one, so that the
    evaluations grow with the number of pods, not of sets."""
    avoidEvictedNode: float = setting(
        _Amount("for", 300.0, "How long; 5m.", POSITIVE_SECONDS),
        "Not back to the node whose kubelet evicted or rejected it, for a while.",
        False,
    )
    """In seconds, of the pod and those like it; 0: off (:mod:`kemu.emulated.scheduler.experiments.avoided_nodes`)."""
    minFeasibleNodes: int = setting(
        # The documentation of Kubernetes speaks of 50, the code of 100.
        Whole(1),
        "A search does not stop before it found so many nodes that pass; {default}.",
        MIN_FEASIBLE_NODES,
    )

    @property
    def preempts(self) -> bool:
        return not self.disablePreemption and self.preemptor == "scheduler"


SHAPE = Section(Policy)
_DEFAULTS = Policy()


def policy_of(switches: Mapping[str, Any]) -> Policy:
    """The policy of switches as a scenario writes them; once checked, they are a policy's fields. Raises
    :class:`PolicyError`."""
    problems: list[Problem] = []
    policy: Policy = SHAPE.check(dict(switches), (), Report(Document("", switches), problems, "policy"))
    for problem in problems:
        raise PolicyError(problem.path, problem.message, problem.suggestion)
    return policy


def alternatives(policy: Policy) -> tuple[str, ...]:
    """The switches that do not stand as in today's Kubernetes, as :mod:`kemu.emulated.variants` names them."""
    return tuple(
        f"{name}: {value}"
        for name in settings_of(Policy)
        if (value := getattr(policy, name)) != getattr(_DEFAULTS, name) and isinstance(value, str)
    )


def without_safeguards(policy: Policy, deviations: Collection[str]) -> Policy:
    """Two of the safeguards that ablations take away are switches, too."""
    if "nomination" in deviations:
        policy = dataclasses.replace(policy, nomination=False)
    if "clear-lower-nominations" in deviations:
        policy = dataclasses.replace(policy, clearLowerNominations="never")
    return policy
