"""Actors fail where it hurts: at each named step of their work, and cut off from the API servers around it."""

from __future__ import annotations

import random
from typing import Any

from kemu.emulated.settings import values
from kemu.lab.exploration.plans import Feedback, Plan
from kemu.lab.exploration.strategies import situations, swarms, uniform
from kemu.lab.exploration.strategies.subjects import Baseline, Subject
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS
from kemu.runtime.faults.kinds import STEPS

STRUCK = ("store", "apiserver", "scheduler", "extender", "kubelet", "controller")
"""Roles of actors. Faults strike neither users nor the operator of the machines."""
APISERVERS = "apiserver/*"
PARTITIONS_S = (0.2, 2.0, 20.0)
BEFORE_NS = (0, 3 * MILLISECOND_NS, 300 * MILLISECOND_NS, 2 * SECOND_NS)
"""How long before something that an actor did a fault begins."""
MOST_FAULTS = 2


class Crash:
    """Crashes at steps, and partitions; in half of the runs messages are late as well."""

    name = "crash"

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._swarm = swarms.Swarm(subject, seed, self.name)
        self._places: _Places | None = None

    def plan(self, number: int, feedback: Feedback) -> Plan:
        drawn = self._swarm.draw(number)
        stream = drawn.stream
        places = self._found()
        struck = [_fault(places, stream) for _ in range(stream.randint(1, MOST_FAULTS))] if places.actors else []
        if struck:
            own = self._subject.scenario.resolved["spec"].get("chaos") or []
            drawn.overrides["chaos"] = [*own, *struck]
        if stream.random() < 0.5:
            return drawn.plan()
        return drawn.plan(chooser=uniform.drawn_widths(stream, 0.5, drawn.span_ns(uniform.WIDTHS_NS)))

    def _found(self) -> _Places:
        if self._places is None:
            self._places = _Places(self._subject.baseline())
        return self._places


class _Places:
    """Where and when faults could strike something under way."""

    def __init__(self, baseline: Baseline) -> None:
        self.moments = situations.moments(baseline)
        self.all_moments = sorted(time for times in self.moments.values() for time in times) or [0]
        self.actors: dict[str, list[str]] = {}
        """By role: there are many kubelets, and one store."""
        for actor in situations.actors(baseline):
            if situations.role(actor) in STRUCK:
                self.actors.setdefault(situations.role(actor), []).append(actor)


def _fault(places: _Places, stream: random.Random) -> dict[str, Any]:
    """As the format has it."""
    role = stream.choice(sorted(places.actors))
    actor = stream.choice(places.actors[role])
    times = places.moments.get(actor) or places.all_moments
    at_ns = max(0, stream.choice(times) - stream.choice(BEFORE_NS))
    at = values.duration_text(at_ns)
    steps = STEPS.get(role, ())
    can_be_cut_off = role not in ("store", "apiserver")
    if can_be_cut_off and (not steps or stream.random() < 0.4):
        sides = [actor, APISERVERS]
        stream.shuffle(sides)
        cut: dict[str, Any] = {"between": sides}
        if stream.random() < 0.5:
            cut["oneWay"] = True
        return {"at": at, "partition": cut, "for": f"{stream.choice(PARTITIONS_S):g}s"}
    crash: dict[str, Any] = {"actor": actor}
    if steps:
        crash["step"] = stream.choice(steps)
    return {"at": at, "crash": crash}
