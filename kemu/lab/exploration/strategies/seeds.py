"""Another seed for each run, and nothing else: what ``kemu run --seed`` does by hand."""

from __future__ import annotations

from dataclasses import dataclass

from kemu.lab.exploration.plans import Feedback, Plan
from kemu.runtime import random_streams


@dataclass(frozen=True)
class Seeds:
    """Finds what the random draws of the scenario itself decide: latencies with a distribution, arrivals, ties."""

    seed: int
    """The seed of the campaign."""
    name: str = "seeds"

    def plan(self, number: int, feedback: Feedback) -> Plan:
        return Plan(seed=random_streams.random_stream(self.seed, self.name, number).getrandbits(32))
