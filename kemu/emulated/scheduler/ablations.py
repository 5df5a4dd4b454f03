"""The parts of a scheduler without single safeguards (:mod:`kemu.emulated.safeguards`), for
:mod:`kemu.emulated.scheduler.loop`.

Each class is its base without one thing. The functions choose what a scheduler is made of.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any, ClassVar

from kemu.emulated import safeguards
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.queue.queues import SchedulingQueue


class _AssumesNothing(Cluster):
    """It remembers which pods are being bound, so that none is tried twice, but they take no room."""

    def assume(self, pod: PodInfo, node_name: str) -> None:
        self.assumed[pod.uid] = pod
        pod.node_name = node_name


class _FiltersOnce(Cluster):
    """The filters see each node as it is: nodes do not know who is nominated to them."""

    def _share_nominations(self, info: NodeInfo) -> None:
        return


class _TrustsNominations(Cluster):
    """The filters see each node only with the pods that are nominated to it, as if they were running there."""

    filters_again: ClassVar[bool] = False


class _MovesNobody(SchedulingQueue):
    """Unschedulable pods wait for the flush of old ones, whatever happens; events still count during an attempt."""

    def move(self, event: Event, old: Any, new: Any, only: Callable[[PodInfo], bool] | None = None) -> None:
        if event in self._of_interest:
            self._remember(event, old, new)


class _ForgetsFlights(SchedulingQueue):
    def _land(self, uid: str) -> list[tuple[Event, Any, Any]]:
        super()._land(uid)
        return []


def cluster(ablated: Collection[str]) -> type[Cluster]:
    lacking: dict[str, type[Cluster]] = {
        "assume-cache": _AssumesNothing,
        "two-pass-filtering": _FiltersOnce,
        "second-filtering-pass": _TrustsNominations,
    }
    return safeguards.without(Cluster, lacking, ablated)


def queue(ablated: Collection[str]) -> type[SchedulingQueue]:
    lacking: dict[str, type[SchedulingQueue]] = {"requeue-on-events": _MovesNobody, "in-flight-events": _ForgetsFlights}
    return safeguards.without(SchedulingQueue, lacking, ablated)


def policy(switches: Policy, ablated: Collection[str]) -> Policy:
    """Two safeguards are switches of experiments, too."""
    if "nomination" in ablated:
        switches = dataclasses.replace(switches, nomination=False)
    if "clear-lower-nominations" in ablated:
        switches = dataclasses.replace(switches, clearLowerNominations="never")
    return switches
