"""The scenario that is explored, and what the ordinary runs of its variants consist of."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kemu.lab.exploration.executions import Execution, execute
from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.sources import Source
from kemu.runtime.holds import Label
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.steering.messages import Counts, Message

Link = tuple[str, str]
"""Who sends, and who receives."""

MOST_KEPT = 8
"""Ordinary runs."""


@dataclass(frozen=True, slots=True)
class Sending:
    """A message of an ordinary run."""

    link: Link
    label: Label
    count: int
    """How many of that label the link had carried with it, from the beginning of the set-up."""
    sent_ns: int
    came_ns: int


@dataclass(frozen=True)
class Baseline:
    """A run of a variant in which nothing is later than the variant itself makes it."""

    execution: Execution
    events: Sequence[Entry]
    """From the start of the clock."""
    sendings: Sequence[Sending]
    """From the start of the clock: those that arrived."""
    loads: Mapping[Link, int]
    """How many messages each link has carried since then."""


class Subject:
    """A scenario under exploration. Whatever it answers depends on the scenario and the question only."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scenario = source.scenario(Plan())
        self._baselines: OrderedDict[str, Baseline] = OrderedDict()

    def baseline(self, plan: Plan | None = None) -> Baseline:
        """The ordinary run of the scenario, or of a variant."""
        plan = plan or Plan()
        key = json.dumps([plan.seed, plan.overrides], sort_keys=True, default=str)
        found = self._baselines.pop(key, None) or self._run(plan)
        self._baselines[key] = found
        if len(self._baselines) > MOST_KEPT:
            self._baselines.popitem(last=False)
        return found

    def _run(self, plan: Plan) -> Baseline:
        chooser = _Punctual()
        execution = execute(self.source.scenario(plan), chooser=chooser, keep_log=True)
        counts = Counts()
        loads: dict[Link, int] = {}
        sendings = []
        for message, labels in execution.messages:
            link = message.source, message.target
            counts.add(*link, labels)
            if message not in chooser.asked:
                continue
            loads[link] = loads.get(link, 0) + 1
            if message.arrived_ns >= 0:
                sendings += [
                    Sending(link, label, counts.of(*link, label), message.sent_ns, message.arrived_ns)
                    for label in dict.fromkeys(labels)
                    if label.what
                ]
        events = [event for event in execution.events if event.time_ns > 0]
        return Baseline(execution, events, sendings, loads)


class _Punctual:
    """A chooser that delays nothing, and remembers what it was asked about: nothing of the set-up."""

    def __init__(self) -> None:
        self.asked: dict[Message, None] = {}

    def delay_ns(self, message: Message) -> int:
        self.asked[message] = None
        return 0
