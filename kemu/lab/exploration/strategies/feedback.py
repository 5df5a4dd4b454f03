"""Runs that went a new way are changed a little, in the hope that they go on from there.

A run is new if it has shown an order of events that no run before it had (:mod:`kemu.lab.exploration.coverage`). Of two
candidates the one with more that is new is built upon, so what was seen last and what opened most doors come up often.
"""

from __future__ import annotations

from kemu.lab.exploration.plans import Feedback, Plan, Record
from kemu.lab.exploration.strategies import situations, swarms
from kemu.lab.exploration.strategies.situations import Signature, Situation
from kemu.lab.exploration.strategies.subjects import Subject
from kemu.runtime.holds import Hold

MOST_HOLDS = 6
"""More are harder to read, and seldom needed."""


class Mutations:
    """Adds, removes, replaces and combines holds of runs that were new."""

    name = "feedback"

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._swarm = swarms.Swarm(subject, seed, self.name)
        self._generation = -1
        self._corpus: list[Record] = []
        self._situations: dict[Signature, list[Situation]] | None = None

    def plan(self, number: int, feedback: Feedback) -> Plan:
        if feedback.generation != self._generation:
            self._generation = feedback.generation
            self._corpus = [record for record in feedback.records if record.new and _is_readable(record.plan)]
        drawn = self._swarm.draw(number)
        stream = drawn.stream
        if not self._corpus or stream.random() < 0.1:
            return drawn.plan(holds=self._one(drawn))
        ancestor = max(stream.choice(self._corpus), stream.choice(self._corpus), key=lambda one: len(one.new))
        drawn.seed, drawn.overrides = ancestor.plan.seed, dict(ancestor.plan.overrides)
        holds = self._holds(ancestor)
        for _ in range(1 + (stream.random() < 0.3)):
            self._mutate(holds, drawn)
        return drawn.plan(holds=list(dict.fromkeys(holds))[:MOST_HOLDS])

    def _mutate(self, holds: list[Hold], drawn: swarms.Drawn) -> None:
        stream = drawn.stream
        how = stream.choice(("add", "add", "replace", "remove", "combine"))
        if how in ("replace", "remove") and holds:
            del holds[stream.randrange(len(holds))]
        if how in ("add", "replace"):
            holds += self._one(drawn)
        if how == "combine":
            holds += self._holds(stream.choice(self._corpus))

    def _holds(self, record: Record) -> list[Hold]:
        """Those that a run had beside the scenario's."""
        return list((record.plan.holds or ())[len(self._subject.scenario.holds) :])

    def _one(self, drawn: swarms.Drawn) -> list[Hold]:
        """A hold that would have changed something in the ordinary run."""
        if self._situations is None:
            self._situations = situations.situations(self._subject.baseline())
        groups = self._situations
        if not groups:
            return []
        group = groups[drawn.stream.choice(list(groups))]
        return [drawn.stream.choice(group).hold()]


def _is_readable(plan: Plan) -> bool:
    return plan.chooser is None and len(plan.holds or ()) <= MOST_HOLDS
