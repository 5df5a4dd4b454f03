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
from kemu.emulated.settings.shapes import POSITIVE_SECONDS, Choice, Key, Record, ScalarOr, Switch, Whole
from kemu.errors import FieldError
from kemu.runtime import words

MIN_FEASIBLE_NODES = 100
"""The number of feasible nodes below which kube-scheduler's search never stops."""


class PolicyError(FieldError):
    """A switch that does not exist, or a value that it does not have. ``path`` names the switch."""


def _one_of(doc: str, *values: object, default: object) -> Any:
    return dataclasses.field(default=default, metadata={"doc": doc, "values": values})


def _amount(doc: str, amount_doc: str, key: str, default: float, whole: bool = True) -> Any:
    """A switch with a number: False is 0, True the ``default``, or a mapping with the number as ``key``."""
    metadata = {"doc": doc, "amount_doc": amount_doc, "key": key, "amount": default, "whole": whole}
    return dataclasses.field(default=0, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Policy:
    """One scheduler's switches, by their names in a scenario."""

    queue: str = _one_of("fifo: in the order of arrival, the failed ones last.", "priority", "fifo", default="priority")
    """``fifo``: first come, first served; a pod that failed goes to the end of the queue."""
    requeue: str = _one_of(
        "all: any event requeues all unschedulable pods, not only those that it may help.",
        "hints",
        "all",
        default="hints",
    )
    """``all``: every event but the addition of a pod requeues all unschedulable pods (the design document), whether or
    not the plugins that rejected them expect it to help (:mod:`kemu.emulated.scheduler.variants`)."""
    nomination: bool = _one_of(
        "Whether the room that preemption makes is kept for the preemptor.", True, False, default=True
    )
    """False: room that preemption makes is not kept for the preemptor."""
    nominatedNodeFirst: bool = _one_of(
        "Whether a nominated node that passes is taken before any other node is looked at.", True, False, default=True
    )
    """False: a pod is tried on all nodes although its nominated node passes (the design document: "scheduler ignores
    NominatedNodeName of the pod")."""
    cooperate: bool = _one_of(
        "Whether nominations that other schedulers have made are honoured.", True, False, default=True
    )
    """False: nominations of pods that another scheduler serves are not honoured."""
    clearLowerNominations: str = _one_of(
        "When a preemptor clears lower nominations on its node. current: not if all of its victims terminate already.",
        "current",
        "always",
        "if-unfit",
        "never",
        default="current",
    )
    """``current``: a new preemptor clears lower nominations on its node only together with evicting victims;
    ``always``: also when all of them are already terminating; ``if-unfit``: then too, but only those that no longer
    fit beside it (the design document, :mod:`kemu.emulated.scheduler.experiments.unfit_nominations`); ``never``:
    none."""
    preemptor: str = _one_of("Who preempts.", "scheduler", "kubelet", "rescheduler", "none", default="scheduler")
    """Who preempts. ``kubelet``: the scheduler binds as if pods of lower priority were not there
    (:mod:`kemu.emulated.scheduler.experiments.overcommitments`), and the node makes room; ``rescheduler``: an actor of
    its own (:mod:`kemu.emulated.scheduler.experiments.rescheduler`); ``none``: no preemption."""
    victimOrder: str = _one_of(
        "By what victims are ranked: QoS after, before or instead of priority.",
        "priority",
        "priority-then-qos",
        "qos",
        "qos-only",
        default="priority",
    )
    """What ranks pods (:mod:`kemu.emulated.scheduler.preemption.victim_orders`). ``priority-then-qos``: the QoS class
    breaks ties (the design document); ``qos``: the class comes first, and priority breaks ties; ``qos-only``: that
    alone."""
    pdb: str = _one_of(
        "Whether victims under a disruption budget are spared if possible.", "respect", "ignore", default="respect"
    )
    """``ignore``: victims are chosen regardless of disruption budgets."""
    eligibility: str = _one_of(
        "When a pod that has preempted may preempt again. alpha: not while any lower pod terminates on its node.",
        "current",
        "alpha",
        default="current",
    )
    """``alpha``: any terminating pod of lower priority on the nominated node bars another preemption."""
    disablePreemption: bool = _one_of("No preemption at all.", True, False, default=False)
    statusWrites: str = _one_of(
        "Whether the scheduling loop waits until the status of a pod that failed is written.",
        "blocking",
        "background",
        default="blocking",
    )
    """``blocking``: the loop waits until the status of a pod that failed is written; ``background``: it goes on, as
    under the feature gate SchedulerAsyncAPICalls."""
    percentageAbove100: str = _one_of(
        "cap: a percentageOfNodesToScore above 100 acts as 100.", "refuse", "cap", default="refuse"
    )
    """``cap``: a percentageOfNodesToScore above 100 acts as 100, as the documentation says; validation refuses it."""
    crossNodePreemption: int = _amount(
        "Victims on other nodes too, where no node helps by itself.",
        "How much an attempt searches before it gives up; 10000.",
        "budget",
        10_000,
    )
    """Victims on several nodes are searched for, with at most so many evaluations an attempt; 0: they are not
    (:mod:`kemu.emulated.scheduler.experiments.cross_node`)."""
    lowerPriorityAffinity: int = _amount(
        "Spare the victims that the preemptor has affinity to.",
        "How many sets of pods are tried on a node; 100.",
        "limit",
        100,
    )
    """Lower pods that the preemptor has affinity to are spared; at most so many sets of them are tried on a node; 0: it
    is not tried (:mod:`kemu.emulated.scheduler.experiments.lower_priority_affinity`)."""
    victimSearch: str = _one_of(
        "How these two search: all sets of pods, or one pod after the other.", "sets", "one-by-one", default="sets"
    )
    """How the two above search. ``sets``: all sets of pods, small ones first. ``one-by-one``: all lower pods go and are
    reprieved one by one, so that the evaluations grow with the number of pods, not of sets."""
    avoidEvictedNode: float = _amount(
        "Not back to the node whose kubelet evicted or rejected it, for a while.",
        "How long; 5m.",
        "for",
        300.0,
        whole=False,
    )
    """For so many seconds a pod is kept off a node whose kubelet evicted or rejected one like it; 0: it is not
    (:mod:`kemu.emulated.scheduler.experiments.avoided_nodes`)."""
    minFeasibleNodes: int = dataclasses.field(
        default=MIN_FEASIBLE_NODES,
        metadata={"least": 1, "doc": "A search does not stop before it found so many nodes that pass; 100."},
    )
    """A search may not stop before so many nodes that pass were found, whatever percentageOfNodesToScore says. The
    documentation of Kubernetes speaks of 50, the code of 100."""

    @property
    def preempts(self) -> bool:
        return not self.disablePreemption and self.preemptor == "scheduler"


def _key(metadata: Mapping[str, Any]) -> Key:
    if "least" in metadata:
        return Key(Whole(metadata["least"]), metadata["doc"])
    if "key" in metadata:
        number = Key(Whole(1) if metadata["whole"] else POSITIVE_SECONDS, metadata["amount_doc"])
        return Key(ScalarOr(Switch(), Record({metadata["key"]: number})), metadata["doc"])
    values = metadata["values"]
    return Key(Switch() if isinstance(values[0], bool) else Choice(values), metadata["doc"])


SWITCHES = {field.name: field for field in dataclasses.fields(Policy)}
"""By name."""
SHAPE = Record({name: _key(field.metadata) for name, field in SWITCHES.items()})
"""As a scenario writes them."""


def policy_of(switches: Mapping[str, Any]) -> Policy:
    """Check the switches of a scenario. Raises :class:`PolicyError`."""
    known = SWITCHES
    amounts: dict[str, float] = {}
    for name, value in switches.items():
        if name not in known:
            message = f"there is no such switch: {', '.join(known)}"
            raise PolicyError(f"policy.{name}", message, words.did_you_mean(name, known, '"'))
        if "key" in known[name].metadata:
            amounts[name] = _amount_of(name, value, known[name].metadata)
            continue
        if "least" in known[name].metadata:
            least = known[name].metadata["least"]
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise PolicyError(f"policy.{name}", f"must be a whole number of at least {least}: {value!r}")
            continue
        allowed = known[name].metadata["values"]
        if not any(value is one or (isinstance(one, str) and value == one) for one in allowed):
            texts = ", ".join(str(one).lower() if isinstance(one, bool) else str(one) for one in allowed)
            raise PolicyError(f"policy.{name}", f"{value!r} is not one of: {texts}")
    return Policy(**{**switches, **amounts})


def alternatives(policy: Policy) -> tuple[str, ...]:
    """The switches that do not stand as in today's Kubernetes, as :mod:`kemu.emulated.variants` names them."""
    return tuple(
        f"{name}: {value}"
        for name, field in SWITCHES.items()
        if (value := getattr(policy, name)) != field.default and isinstance(value, str)
    )


def without_safeguards(policy: Policy, deviations: Collection[str]) -> Policy:
    """Two of the safeguards that ablations take away are switches, too."""
    if "nomination" in deviations:
        policy = dataclasses.replace(policy, nomination=False)
    if "clear-lower-nominations" in deviations:
        policy = dataclasses.replace(policy, clearLowerNominations="never")
    return policy


def _amount_of(name: str, value: Json, metadata: Mapping[str, Any]) -> float:
    key, default = metadata["key"], metadata["amount"]
    if isinstance(value, bool):
        return default if value else 0  # type: ignore[no-any-return]
    path = f"policy.{name}"
    if not isinstance(value, Mapping):
        raise PolicyError(path, f"{value!r} is not one of: true, false, {{{key}: …}}")
    for other in value:
        if other != key:
            raise PolicyError(f"{path}.{other}", f"there is no such key: {key}")
    amount = value.get(key, default)
    allowed = int if metadata["whole"] else int | float
    if isinstance(amount, bool) or not isinstance(amount, allowed) or amount <= 0:
        kind = "a whole number" if metadata["whole"] else "a number of seconds"
        raise PolicyError(f"{path}.{key}", f"must be {kind} above 0, not {amount!r}")
    return amount
