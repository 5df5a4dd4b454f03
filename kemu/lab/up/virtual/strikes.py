"""Between the faults of a world in virtual time and the layer of the gateway that carries out those of clients.

A fault begins within a slice; what it strikes is told the world as an input.
"""

from __future__ import annotations

import contextlib

from kemu.emulated.gateway.faults.layer import Layer, Strike
from kemu.emulated.gateway.faults.rules import Rule
from kemu.lab.up.chaos import clients
from kemu.lab.up.virtual.drivers import Driver, Ended
from kemu.runtime.faults.handlers import Assignment


class Strikes:
    """``worlds.World(client_faults=…)``; layer and driver are told when they are there."""

    def __init__(self) -> None:
        self.layer: Layer | None = None
        self.driver: Driver | None = None

    def begin(self, what: str, fault: Assignment) -> None:
        if self.layer is not None:
            self.layer.begin(Rule(fault.id, what, fault.parameters, fault.random))

    def end(self, fault: str) -> None:
        if self.layer is not None:
            self.layer.end(fault)

    def struck(self, strike: Strike) -> None:
        if self.driver is not None:
            with contextlib.suppress(Ended):
                self.driver.put(["struck", strike.rule.fault, strike.asked.agent, clients.struck(strike)])
