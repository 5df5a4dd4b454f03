"""Which kubelets may state their heartbeats instead of sending them, and when
(:mod:`kemu.emulated.objects.heartbeats`).

Role: one step of :mod:`kemu.lab.scenario.playing.plans`. Whatever may come between a kubelet and those who watch over
it stands in the scenario with its time: from ten seconds before until ten seconds after, heartbeats are sent as
messages. Faults of a kubelet, or of its connection, concern that kubelet and all others that their patterns may mean;
those of the store, of API servers and of the node lifecycle controller concern all, from then on; of an API server that
crashes and comes back at a known time, until every kubelet has found it again. In real time, with latencies that vary
and with a lag of the watch caches heartbeats are always sent: what the cluster knows at a time would not be known
beforehand.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kemu.emulated.objects import resources
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.keys.controller_keys import NODE_LIFECYCLE
from kemu.lab.scenario.scenarios import Fault, Scenario
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS
from kemu.runtime.sim.wires import DEFAULT_LATENCY_S

MARGIN_NS = 10 * SECOND_NS
"""Long enough for messages in transit to arrive, and for connections to recover."""

RECONNECTED_NS = 60 * SECOND_NS
"""Until every client has found an API server that came back, and its heartbeats are on time again."""

_WATCHERS = "store", "controller/node-lifecycle"
_CLOCKS = "clockSkew", "clockJump"
_HARMLESS = "cordon", "uncordon", "drain", "taint", "untaint", "finish", "resize", "evict", "addNode"
_OBJECTS = "nodes", "leases"

Times = tuple[int, int | None]
"""From when until when; None: until the end."""


class Heartbeats:
    """Heartbeats of the kubelets of one run."""

    def __init__(self, scenario: Scenario, runtime: str) -> None:
        """``runtime``: its name."""
        latencies = [_latency_ns(scenario.timing, name) for name in ("apiLatency", "storeLatency", "watchLatency")]
        self.arrives_ns: int | None = None
        """From a heartbeat until the API servers' watch caches have it; None: heartbeats are sent."""
        self.watch_ns = 0
        """From there until it comes out of a watch."""
        lifecycle = scenario.controllers.get(NODE_LIFECYCLE)
        elects = lifecycle is not None and lifecycle.election(NODE_LIFECYCLE) is not None
        if (
            scenario.heartbeats == "standing"
            and runtime == "sim"
            and not scenario.api_servers.cache_lag_ns
            and not elects
        ):
            api_ns, store_ns, watch_ns = latencies
            if api_ns is not None and store_ns is not None and watch_ns is not None:
                self.arrives_ns, self.watch_ns = api_ns + 2 * store_ns, watch_ns
        self._calm: dict[str, Any] = {"restless": [], "arrives_ns": self.arrives_ns}
        self._servers = [f"apiserver/{index}" for index in range(scenario.api_servers.replicas)]
        self._faults = [(fault, self._times(fault, scenario.duration_ns)) for fault in scenario.chaos]
        self._events = [event for event in scenario.events if event.what not in _HARMLESS]

    def standing(self, node: str) -> dict[str, Any] | None:
        """``standing`` in the config of that node's kubelet."""
        if self.arrives_ns is None:
            return None
        restless = [*self._of_faults(f"kubelet/{node}"), *self._of_events(node)]
        if not restless:
            return self._calm  # one for all
        return {"restless": [list(times) for times in _merged(restless)], "arrives_ns": self.arrives_ns}

    def _of_faults(self, kubelet: str) -> Iterable[Times]:
        for fault, times in self._faults:
            if _matches([kubelet], fault.patterns()) or self._concerns_all(fault):
                yield from times

    def _times(self, fault: Fault, duration_ns: int) -> list[Times]:
        """Around every time at which it comes."""
        lasts_ns = 0 if fault.what == "crash" else fault.for_ns
        if fault.what in _CLOCKS:
            # What was written by a wrong clock outlives it.
            lasts_ns = None
        first_ns = fault.at_ns if fault.at_ns is not None else fault.from_ns
        if self._is_restart(fault):
            assert fault.for_ns is not None
            return [(first_ns - MARGIN_NS, first_ns + fault.for_ns + RECONNECTED_NS)]
        # It is not known beforehand when it comes that waits for something to happen.
        if lasts_ns is None or fault.when is not None or self._concerns_all(fault):
            return [(first_ns - MARGIN_NS, None)]
        if fault.at_ns is not None:
            return [(first_ns - MARGIN_NS, first_ns + lasts_ns + MARGIN_NS)]
        end_ns = duration_ns if fault.until_ns is None else min(duration_ns, fault.until_ns)
        every = distributions.parse(fault.every).constant
        if every is None or every * SECOND_NS <= 2 * MARGIN_NS:
            return [(first_ns - MARGIN_NS, end_ns + lasts_ns + MARGIN_NS)]
        every_ns = round(every * SECOND_NS)
        comes = range(first_ns + every_ns, end_ns + 1, every_ns)
        return [(when_ns - MARGIN_NS, when_ns + lasts_ns + MARGIN_NS) for when_ns in comes]

    def _is_restart(self, fault: Fault) -> bool:
        """Whether API servers alone go, at a time, for a time: the store keeps what they knew."""
        patterns = fault.patterns()
        timed = fault.at_ns is not None and fault.for_ns is not None and fault.when is None
        alone = all(pattern.startswith("apiserver/") for pattern in patterns)
        return fault.what == "crash" and timed and alone and not fault.parameters.get("step")

    def _concerns_all(self, fault: Fault) -> bool:
        # Of two sides, one is always the API servers where a kubelet is the other.
        others = _WATCHERS if len(fault.actors) > 1 or "between" in fault.actors else (*_WATCHERS, *self._servers)
        return _matches(others, fault.patterns())

    def _of_events(self, node: str) -> Iterable[Times]:
        for event in self._events:
            if _concerns(event, node):
                begin_ns = event.at_ns - MARGIN_NS
                yield begin_ns, event.at_ns + MARGIN_NS if event.what == "removeNode" else None


def _concerns(event: Event, node: str) -> bool:
    """Whether an event may touch a kubelet, its Node or its Lease."""
    if event.objects:
        return any(
            one.metadata.name == node and resources.of(one).plural in _OBJECTS  # type: ignore[attr-defined]
            for one in event.objects
        )
    return event.target.name == node and event.target.resource in _OBJECTS


def _latency_ns(timing: Mapping[str, Any], name: str) -> int | None:
    """None: it varies."""
    constant = distributions.parse(timing.get(name, DEFAULT_LATENCY_S)).constant
    return None if constant is None else round(constant * SECOND_NS)


def _matches(names: Iterable[str], patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _merged(all_times: Iterable[Times]) -> list[Times]:
    """In their order, apart."""
    merged: list[Times] = []
    for begin_ns, end_ns in sorted(all_times, key=lambda times: times[0]):
        if merged and (merged[-1][1] is None or begin_ns <= merged[-1][1]):
            last_begin, last_end = merged[-1]
            merged[-1] = last_begin, None if last_end is None or end_ns is None else max(last_end, end_ns)
        else:
            merged.append((begin_ns, end_ns))
    return merged
