"""How small failures have to become, and which are larger for a reason.

What shrinking made of the museum's pieces and of the lost safeguards stands in the records of their searches; nothing
is run here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.exploration.shrinking import shrinker
from tests import json_files
from tests.ablations import search as ablations
from tests.museum import explorations

MOST = {"holds": 3, "pods": 3, "nodes": 2}
LIMITS = {"executions": shrinker.MOST_EXECUTIONS, "cpu_s": shrinker.MOST_S}
"""What ``kemu explore`` grants each failure."""

_COUNTS = "every so-many-th message or write is wrong, whatever it is about"
LARGER: Mapping[str, str] = {
    "a-list-leaves-out-an-object": "only lists of more than five objects are wrong",
    "a-watch-sends-old-bytes": _COUNTS,
    "a-watch-falls-silent": _COUNTS,
    "an-event-is-sent-twice": _COUNTS,
    "an-informer-loses-an-event": _COUNTS,
    "a-watch-skips-an-event": _COUNTS,
    "a-write-is-answered-before-it-is-made": "what is lost depends on when the store crashes",
    "pressure-never-evicts": "what four pods use adds up to the pressure at the expected time",
    "the-wrong-pod-is-evicted-first": "what four pods use adds up to the pressure at the expected time",
    "clear-lower-nominations": "two victims, one who preempts the first, and one who preempts both",
    "compare-and-swap": "two schedulers choose different nodes by chance: of three at this seed, of two not",
    "117": "two gangs of two",
    "65240": "what four pods write adds up to the pressure",
    "72593": "the node has room for eight pods, and the ninth is refused",
    "141694": "the run has many random delays, and the 600 executions end before all are taken back",
    "91492": "two preemptors, and three possible victims of which one is not needed",
    "91601": "the list of nodes has to end in the middle of a round, and nodes that join are events, which stay",
    "106946": "nodes that join are events, which stay",
    "126479": "pods end one after the other until the important one has failed more often than the modest one",
    "133602": "one pod more than there are devices is what fails, and the devices of the nodes stay",
    "126700": "a victim, two who preempt it, and one who would fit beside the second",
}
"""What needs more, and why: planted bugs, safeguards and, by number, pieces of the museum."""


def records() -> dict[str, dict[str, Any]]:
    """What became of each piece and each safeguard, by number or name."""
    pieces = json_files.load(explorations.EXPLORED)
    return {
        **{number: record["shrunk"] for number, record in pieces.items()},
        **{name: record["explored"]["shrunk"] for name, record in ablations.load().items()},
    }


def is_small(counts: Mapping[str, Any]) -> bool:
    return all(counts[key] <= most for key, most in MOST.items())
