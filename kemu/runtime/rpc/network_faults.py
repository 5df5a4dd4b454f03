"""The faults of the network, and what begins each kind of them: the same in the simulation and in a cell."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from kemu.runtime.rpc import impairments
from kemu.runtime.rpc.networks import Network

End = Callable[[], object]
"""Ends a fault."""
StreamOf = Callable[..., random.Random]
"""A random stream of the run, by its names."""

Begin = Callable[[str, Mapping[str, Any]], End | None]
"""Begins the fault of that id, with its parameters; None: it is over in an instant."""

KINDS = ("partition", "reset", "halfOpen", *impairments.KINDS)
"""Their names."""


def beginnings(network: Network, stream_of: StreamOf) -> dict[str, Begin]:
    """By the name of the kind. ``stream_of``: the random streams of the run, by name."""

    def partition(fault: str, parameters: Mapping[str, Any]) -> End:
        a, b = parameters["between"]
        network.partition(fault, a, b, parameters["oneWay"])
        return lambda: network.heal(fault)

    def impairment(what: str) -> Begin:
        def begin(fault: str, parameters: Mapping[str, Any]) -> End:
            def stream(source: str, target: str) -> random.Random:
                return stream_of("fault", fault, source, target)

            network.impair(impairments.impairment(fault, what, parameters, stream))
            return lambda: network.heal(fault)

        return begin

    def reset(fault: str, parameters: Mapping[str, Any]) -> None:
        network.reset(fault, *parameters["between"])

    def half_open(fault: str, parameters: Mapping[str, Any]) -> None:
        network.mute(fault, *parameters["between"])

    return {
        "partition": partition,
        "reset": reset,
        "halfOpen": half_open,
        **{what: impairment(what) for what in impairments.KINDS},
    }


def sides(what: str, parameters: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str]]:
    """The actors between which a fault acts."""
    one, other = (
        parameters["between"]
        if what in ("partition", "reset", "halfOpen")
        else (
            parameters["from"],
            parameters["to"],
        )
    )
    return frozenset(one), frozenset(other)
