"""DynamicResources: what kube-scheduler's plugin says of pods without ResourceClaims, the only ones there are here.

It rejects no node and claims nothing, but its PostFilter is asked before DefaultPreemption and adds its word to the
message; where PreFilter ended before it was asked, it finds no state and ends PostFilter with an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import (
    SKIP,
    Cycle,
    Diagnosis,
    FilterPlugin,
    PostFilterPlugin,
    SignPlugin,
)
from kemu.emulated.scheduler.framework.results import PostFilterResult
from kemu.emulated.scheduler.framework.signers import Fragments

_NO_STATE = PostFilterResult(message="not found", failed=True)
_NO_CLAIMS = PostFilterResult(message="no new claims to deallocate")


class DynamicResources(FilterPlugin, PostFilterPlugin, SignPlugin):
    def prepare(self, cycle: Cycle) -> Any:
        cycle.data[self.name] = _NO_CLAIMS
        return SKIP

    def post_filter(self, diagnosis: Diagnosis) -> PostFilterResult:
        found: PostFilterResult = diagnosis.cycle.data.get(self.name, _NO_STATE)
        return found

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return None if pod.template.spec.resourceClaims else {}

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return []
