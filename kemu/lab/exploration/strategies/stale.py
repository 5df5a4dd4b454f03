"""API servers answer from the past, and actors hear it from them: after a restart, or when they are cut off from the
servers that are up to date.

What an actor decides on is late by seconds here, not by a message: a cache that has forgotten what it assumed, a
kubelet that starts what was deleted. Checks and expectations about time break as well, so this strategy only runs when
it is asked for.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from kemu.emulated.settings import values
from kemu.lab.exploration.plans import Feedback, Plan
from kemu.lab.exploration.strategies import situations, swarms
from kemu.lab.exploration.strategies.subjects import Baseline, Subject
from kemu.runtime.env import SECOND_NS

BEHIND_S = (5, 30, 60)
"""How far a server is behind."""
LASTS = (1, 3)
"""How long, in multiples of that: as long as it shows an old state, or as late as it goes on."""
WITNESSES = (1, 1, 2)
"""So many actors hear from it alone."""
AWAY_S = 2
"""How long one that restarts is away."""
CUT_OFF_S = 30
KUBELET = "kubelet/"


class Stale:
    """One server behind, and one or two actors that restart or lose the other servers."""

    name = "stale"

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._swarm = swarms.Swarm(subject, seed, self.name)
        self._cluster: _Cluster | None = None

    def plan(self, number: int, feedback: Feedback) -> Plan:
        drawn = self._swarm.ordinary(number)
        if self._cluster is None:
            self._cluster = _Cluster(self._subject.baseline())
        own = self._subject.scenario.resolved["spec"].get("chaos") or []
        drawn.overrides["chaos"] = [*own, *_faults(self._cluster, drawn.stream)]
        return drawn.plan()


class _Cluster:
    """Who is there, and when something happens."""

    def __init__(self, baseline: Baseline) -> None:
        everybody = situations.actors(baseline)
        self.servers = [actor for actor in everybody if situations.role(actor) == "apiserver"]
        self.witnesses: dict[str, list[str]] = {}
        """By role: kubelets, schedulers, controllers."""
        for actor in everybody:
            if situations.role(actor) not in ("apiserver", "store", "user"):
                self.witnesses.setdefault(situations.role(actor), []).append(actor)
        self.moments = sorted(time for times in situations.moments(baseline).values() for time in times) or [0]


def _faults(cluster: _Cluster, stream: random.Random) -> list[dict[str, Any]]:
    """As the format has them."""
    server = stream.choice(cluster.servers)
    behind_s = stream.choice(BEHIND_S)
    lasts_s = behind_s * stream.choice(LASTS)
    begin_ns = stream.choice(cluster.moments)
    found = [{"at": _text(begin_ns), "for": f"{lasts_s}s", "staleReads": {"apiServer": server, "by": f"{behind_s}s"}}]
    others = [each for each in cluster.servers if each != server]
    end_ns = begin_ns + lasts_s * SECOND_NS
    while_stale = [time_ns for time_ns in cluster.moments if begin_ns < time_ns < end_ns] or [begin_ns]
    for _ in range(stream.choice(WITNESSES) if cluster.witnesses else 0):
        actor = stream.choice(cluster.witnesses[stream.choice(sorted(cluster.witnesses))])
        found += _witness(actor, others, stream.choice(while_stale), stream)
    return found


def _witness(actor: str, others: Sequence[str], at_ns: int, stream: random.Random) -> list[dict[str, Any]]:
    """The actor, or the machine of a kubelet, restarts, or loses the other servers, or both."""
    is_cut_off = bool(others) and stream.random() < 0.7
    found: list[dict[str, Any]] = []
    if is_cut_off:
        found.append({"at": _text(at_ns), "for": f"{CUT_OFF_S}s", "partition": {"between": [actor, list(others)]}})
    if not is_cut_off or stream.random() < 0.7:
        whom = {"actor": actor}
        if actor.startswith(KUBELET) and stream.random() < 0.7:
            whom = {"node": actor.removeprefix(KUBELET)}
        found.append({"at": _text(at_ns), "for": f"{AWAY_S}s", "crash": whom})
    return found


def _text(time_ns: int) -> str:
    return values.duration_text(time_ns)
