"""NodeDeclaredFeatures: a pod fits only on nodes that declare the features that it needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kemu.emulated.objects.pods import declared_features
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin, Scope, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable

_LACKING = unresolvable("node(s) didn't match Pod's required features")


class NodeDeclaredFeatures(FilterPlugin, SignPlugin):
    scope = Scope.NODE_OBJECT

    def prepare(self, cycle: Cycle) -> Any:
        return declared_features.for_scheduling(cycle.template.spec) or SKIP

    def verdict(self, state: tuple[str, ...], node: NodeInfo) -> int:
        return 1 if declared_features.missing(state, node.declared_features) else 0

    def explain(self, state: tuple[str, ...], verdict: int) -> Status:
        return _LACKING

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.features(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        # What a pod needs never changes.
        return [(Event.NODE_ADD, None), (Event.NODE_FEATURES, None)]
