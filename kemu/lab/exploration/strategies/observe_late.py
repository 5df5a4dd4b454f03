"""News comes too late: after what its receiver decided in an ordinary run.

The strategy runs the scenario once as it is, and lists for each message the decisions before which it came
(:mod:`situations`). Then it tries one hold after the other, then two at once. Every second run does the same to another
variant of the swarm: other latencies, another seed.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.lab.exploration.plans import Feedback, Plan
from kemu.lab.exploration.strategies import situations, swarms
from kemu.lab.exploration.strategies.situations import Situation
from kemu.lab.exploration.strategies.subjects import Subject

ROUND = 24
"""Runs of one variant of the swarm: each costs one ordinary run more."""


class ObserveLate:
    """Holds messages back until decisions have been made."""

    name = "observe-late"

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._swarm = swarms.Swarm(subject, seed, "observe-late")
        self._ordinary: list[Situation] | None = None
        self._turn = -1
        self._of_turn: list[Situation] = []

    def plan(self, number: int, feedback: Feedback) -> Plan:
        if number % 2 == 0:
            return self._ordinary_plan(number // 2)
        turn, place = divmod(number // 2, ROUND)
        drawn = self._swarm.other(turn, self._swarm.stream(number))
        if turn != self._turn:
            self._of_turn = self._listed(drawn, "turn", turn)
            self._turn = turn
        return _held(drawn, self._of_turn, place, pairs_from=ROUND // 2)

    def _ordinary_plan(self, number: int) -> Plan:
        drawn = self._swarm.ordinary(number)
        if self._ordinary is None:
            self._ordinary = self._listed(drawn, "order")
        return _held(drawn, self._ordinary, number, pairs_from=len(self._ordinary))

    def _listed(self, drawn: swarms.Drawn, *names: str | int) -> list[Situation]:
        groups = situations.situations(self._subject.baseline(drawn.plan()))
        return situations.shuffled(groups, self._swarm.stream(*names))


def _held(drawn: swarms.Drawn, found: Sequence[Situation], place: int, pairs_from: int) -> Plan:
    if not found:
        return drawn.plan()
    if place < min(pairs_from, len(found)):
        return drawn.plan(holds=[found[place].hold()])
    first, second = drawn.stream.choice(found), drawn.stream.choice(found)
    return drawn.plan(holds=list(dict.fromkeys((first.hold(), second.hold()))))
