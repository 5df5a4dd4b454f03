"""Between a run's faults and the layer of the gateway that carries out those of clients, on one event loop.

:mod:`kemu.lab.up.virtual.strikes` does the same for worlds in virtual time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from kemu.emulated.gateway.faults.layer import Layer, Strike
from kemu.emulated.gateway.faults.rules import Rule
from kemu.runtime.env import Env
from kemu.runtime.faults.handlers import Assignment, End
from kemu.runtime.faults.kinds import CLIENT_FAULTS, KINDS
from kemu.runtime.runlog.events import RequestStruck

OF_EFFECTS: Mapping[str, tuple[str, ...]] = {
    what: tuple(one.name for one in KINDS[what].parameters if one.name not in ("nth", "times", "probability"))
    for what in CLIENT_FAULTS
}


def struck(strike: Strike) -> RequestStruck:
    """What was struck, and how."""
    rule, asked = strike.rule, strike.asked
    whom = {key: value for key, value in asked._asdict().items() if value}
    effect = {
        key: value
        for key, value in rule.parameters.items()
        if key in OF_EFFECTS[rule.what] and key not in (*asked._fields, "user", "by", "events")
    }
    if strike.seconds:
        effect["by"] = f"{strike.seconds * 1000:.3f}ms"
    if strike.events:
        effect["events"] = strike.events
    return RequestStruck(id=rule.fault, what=rule.what, **whom, n=strike.number, effect=effect)


def carried_out(env: Env, layer: Callable[[], Layer]) -> Callable[[Strike], None]:
    """Has the gateway's faults carried out. Returns what the layer is to be told of strikes."""

    def begin(what: str, fault: Assignment) -> End:
        layer().begin(Rule(fault.id, what, fault.parameters, fault.random, fault.hit))
        return lambda: layer().end(fault.id)

    for what in CLIENT_FAULTS:
        env.on_fault(what, functools.partial(begin, what))
    return lambda strike: env.log(struck(strike))
