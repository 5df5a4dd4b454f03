"""Settings of a whole run, drawn from the campaign's seed and the number of the run.

Swarm testing (Groce and others, ISSTA 2012): many runs of different narrow settings find more than many runs of one
wide setting. Times that the scenario states stay; the others are constant, realistic or wide. Where a scenario expects
something of pods, nodes or counters, that is all that changes with the seed: an expectation is about the cluster that
it was written for. Where it only asks checks to hold, schedulers and API servers may have replicas, workloads more or
fewer pods.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.lab.exploration.strategies.subjects import Subject
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime import random_streams
from kemu.runtime.holds import Hold

WIDE: Mapping[str, Any] = {
    "apiLatency": {"lognormal": {"median": "1ms", "p99": "50ms"}},
    "watchLatency": {"lognormal": {"median": "5ms", "p99": "500ms"}},
    "storeLatency": {"lognormal": {"median": "500us", "p99": "20ms"}},
}
"""Latencies of a network that is sometimes slow."""

RUNS_OF_A_VARIANT = 16
"""Several runs in a row share one: it is read once."""

SLOWEST = 20
"""No message is later by more than this part of the duration: that runs are slow is no finding."""

LATENCIES = ("stated", "constant", "realistic", "wide")


class Swarm:
    """Swarm of one strategy of a campaign."""

    def __init__(self, subject: Subject, seed: int, strategy: str) -> None:
        self.subject = subject
        self._seed = seed
        self._strategy = strategy
        spec = subject.scenario.resolved["spec"]
        self._stated = _stated_times(spec)
        self._may_resize = _only_checks(subject.scenario)

    def stream(self, *names: str | int) -> random.Random:
        """For draws of the strategy that no single run makes."""
        return random_streams.random_stream(self._seed, "explore", self._strategy, *names)

    def ordinary(self, number: int) -> Drawn:
        """The scenario as it is."""
        return Drawn(self.subject.scenario, None, {}, self.stream(number))

    def draw(self, number: int) -> Drawn:
        """For a run. Half of them are of the scenario as it is: what is rare there should not get rarer."""
        stream = self.stream(number)
        if stream.random() < 0.5:
            return Drawn(self.subject.scenario, None, {}, stream)
        return self.other(number // RUNS_OF_A_VARIANT, stream)

    def other(self, turn: int, stream: random.Random) -> Drawn:
        """A variant; ``stream`` is for what else is drawn for the run."""
        of_variant = self.stream("variant", turn)
        overrides = self._times(of_variant.choice(LATENCIES))
        seed = of_variant.getrandbits(31)
        if self._may_resize:
            overrides |= _sizes(self.subject.scenario, of_variant)
        return Drawn(self.subject.scenario, seed, overrides, stream)

    def _times(self, latencies: str) -> dict[str, Any]:
        if latencies in ("constant", "realistic"):
            return {"timing": latencies}
        if latencies == "wide":
            return {f"timing.{key}": value for key, value in WIDE.items() if key not in self._stated}
        return {}


class Drawn:
    """The settings of one run, and the stream for what else is drawn for it."""

    def __init__(self, scenario: Scenario, seed: int | None, overrides: dict[str, Any], stream: random.Random) -> None:
        self._scenario = scenario
        self.seed = seed
        self.overrides = overrides
        self.stream = stream

    def span_ns(self, choices: Sequence[int]) -> int:
        """One of these times, but none that makes everything too late for the duration of the scenario."""
        most_ns = self._scenario.duration_ns // SLOWEST
        return self.stream.choice([span_ns for span_ns in choices if span_ns <= most_ns] or [min(choices)])

    def plan(self, *, holds: Sequence[Hold] = (), chooser: ChooserSpec | None = None) -> Plan:
        """``holds``: beside those of the scenario."""
        return Plan(self.overrides, self.seed, chooser, (*self._scenario.holds, *holds) if holds else None)


def _stated_times(spec: Mapping[str, Any]) -> frozenset[str]:
    timing = spec.get("timing")
    return frozenset(timing) if isinstance(timing, Mapping) else frozenset()


def _only_checks(scenario: Scenario) -> bool:
    expected = scenario.resolved["spec"].get("expect") or ()
    return all("check" in item for item in expected)


def _sizes(scenario: Scenario, stream: random.Random) -> dict[str, Any]:
    """Replicas and sizes that another cluster might have."""
    found: dict[str, Any] = {}
    spec = scenario.resolved["spec"]
    named = str(spec.get("chaos") or "") + str(spec.get("holds") or "")
    if "apiserver/" not in named and stream.random() < 0.3:
        found["apiServers.replicas"] = stream.choice((2, 3))
    for index, scheduler in enumerate(scenario.schedulers):
        if f"scheduler/{scheduler.name}" not in named and stream.random() < 0.3:
            found |= _replicas(spec, index, scheduler.name)
    for index, workload in enumerate(spec.get("workloads") or ()):
        arrivals = workload.get("arrivals") or {}
        if isinstance(arrivals.get("count"), int) and arrivals["count"] > 1 and stream.random() < 0.5:
            found[f"workloads[{index}].arrivals.count"] = stream.randint(1, 2 * arrivals["count"])
    return found


def _replicas(spec: Mapping[str, Any], index: int, name: str) -> dict[str, Any]:
    if spec.get("schedulers"):
        return {f"schedulers[{index}].replicas": 2}
    return {"schedulers": [{"name": name, "replicas": 2}]}
