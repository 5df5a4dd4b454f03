"""Experiment switches: the alternatives of the source documents beside today's behaviour.

They change one scheduler; the defaults are those of Kubernetes v1.36.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.errors import FieldError
from kemu.runtime import words

MIN_FEASIBLE_NODES = 100
"""The number of feasible nodes below which kube-scheduler's search never stops."""


class PolicyError(FieldError):
    """A switch that does not exist, or a value that it does not have. ``path`` names the switch."""


def _one_of(*values: object, default: object) -> Any:
    return dataclasses.field(default=default, metadata={"values": values})


def _amount(key: str, default: float, whole: bool = True) -> Any:
    """A switch with a number: False is 0, True the ``default``, or a mapping with the number as ``key``."""
    return dataclasses.field(default=0, metadata={"key": key, "amount": default, "whole": whole})


@dataclass(frozen=True, slots=True)
class Policy:
    """One scheduler's switches, by their names in a scenario."""

    queue: str = _one_of("priority", "fifo", default="priority")
    """``fifo``: first come, first served; a pod that failed goes to the end of the queue."""
    requeue: str = _one_of("hints", "all", default="hints")
    """``all``: every event but the addition of a pod requeues all unschedulable pods (the design document), whether or
    not the plugins that rejected them expect it to help (:mod:`kemu.emulated.scheduler.variants`)."""
    nomination: bool = _one_of(True, False, default=True)
    """False: room that preemption makes is not kept for the preemptor."""
    nominatedNodeFirst: bool = _one_of(True, False, default=True)  # noqa: N815
    """False: a pod is tried on all nodes although its nominated node passes (the design document: "scheduler ignores
    NominatedNodeName of the pod")."""
    cooperate: bool = _one_of(True, False, default=True)
    """False: nominations of pods that another scheduler serves are not honoured."""
    clearLowerNominations: str = _one_of("current", "always", "if-unfit", "never", default="current")  # noqa: N815
    """``current``: a new preemptor clears lower nominations on its node only together with evicting victims;
    ``always``: also when all of them are already terminating; ``if-unfit``: then too, but only those that no longer
    fit beside it (the design document, :mod:`kemu.emulated.scheduler.experiments.unfit_nominations`); ``never``:
    none."""
    disablePreemption: bool = _one_of(True, False, default=False)  # noqa: N815
    eligibility: str = _one_of("current", "alpha", default="current")
    """``alpha``: any terminating pod of lower priority on the nominated node bars another preemption."""
    preemptor: str = _one_of("scheduler", "kubelet", "rescheduler", "none", default="scheduler")
    """Who preempts. ``kubelet``: the scheduler binds as if pods of lower priority were not there
    (:mod:`kemu.emulated.scheduler.experiments.overcommitments`), and the node makes room; ``rescheduler``: an actor of
    its own (:mod:`kemu.emulated.scheduler.experiments.rescheduler`); ``none``: no preemption."""
    pdb: str = _one_of("respect", "ignore", default="respect")
    """``ignore``: victims are chosen regardless of disruption budgets."""
    victimOrder: str = _one_of("priority", "priority-then-qos", "qos", "qos-only", default="priority")  # noqa: N815
    """What ranks pods (:mod:`kemu.emulated.scheduler.preemption.victim_orders`). ``priority-then-qos``: the QoS class
    breaks ties (the design document); ``qos``: the class comes first, and priority breaks ties; ``qos-only``: that
    alone."""
    statusWrites: str = _one_of("blocking", "background", default="blocking")  # noqa: N815
    """``blocking``: the loop waits until the status of a pod that failed is written; ``background``: it goes on, as
    under the feature gate SchedulerAsyncAPICalls."""

    crossNodePreemption: int = _amount("budget", 10_000)  # noqa: N815
    """Victims on several nodes are searched for, with at most so many evaluations an attempt; 0: they are not
    (:mod:`kemu.emulated.scheduler.experiments.cross_node`)."""
    lowerPriorityAffinity: int = _amount("limit", 100)  # noqa: N815
    """Lower pods that the preemptor has affinity to are spared; at most so many sets of them are tried on a node; 0: it
    is not tried (:mod:`kemu.emulated.scheduler.experiments.lower_priority_affinity`)."""
    victimSearch: str = _one_of("sets", "one-by-one", default="sets")  # noqa: N815
    """How the two above search. ``sets``: all sets of pods, small ones first. ``one-by-one``: all lower pods go and are
    reprieved one by one, so that the evaluations grow with the number of pods, not of sets."""
    avoidEvictedNode: float = _amount("for", 300.0, whole=False)  # noqa: N815
    """For so many seconds a pod is kept off a node whose kubelet evicted or rejected one like it; 0: it is not
    (:mod:`kemu.emulated.scheduler.experiments.avoided_nodes`)."""

    percentageAbove100: str = _one_of("refuse", "cap", default="refuse")  # noqa: N815
    """``cap``: a percentageOfNodesToScore above 100 acts as 100, as the documentation says; validation refuses it."""
    minFeasibleNodes: int = dataclasses.field(default=MIN_FEASIBLE_NODES, metadata={"least": 1})  # noqa: N815
    """A search may not stop before so many nodes that pass were found, whatever percentageOfNodesToScore says. The
    documentation of Kubernetes speaks of 50, the code of 100."""

    @property
    def preempts(self) -> bool:
        return not self.disablePreemption and self.preemptor == "scheduler"


SWITCHES = {field.name: field for field in dataclasses.fields(Policy)}
"""By name."""


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
