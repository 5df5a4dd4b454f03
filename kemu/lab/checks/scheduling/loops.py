"""Detectors of loops: pods evicted where their predecessors were evicted, and preemption that leads nowhere.

An owner here is a controller, a workload of the scenario, or a pod that comes back under its own name
(``PodHistory.owner``); a line is a pod with those that took its place, one after the other (``lineages``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import Return
from kemu.lab.checks.limits import DEFAULT, MAX_EVICTION_RETURNS, MAX_PREEMPTION_RETURNS, Limits
from kemu.lab.checks.results import LimitedCheck, Result, seconds, several
from kemu.lab.checks.scheduling import lineages
from kemu.runtime.words import counted


class NoEvictionLoop(LimitedCheck):
    """No workload returns to a node and is evicted there again more often than allowed
    (``checks: loops: {evictions}``)."""

    id: ClassVar[str] = "no-eviction-loop"
    detector: ClassVar[bool] = True

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._most = limits.max_eviction_returns if limits.max_eviction_returns is not None else MAX_EVICTION_RETURNS

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return limits.max_eviction_returns is not None

    def result(self, history: History) -> Result:
        if not history.counts["pods_bound"] and not history.counts["pods_running"]:
            return Result(self.id, None, "no pod ran")
        return _judged(
            self.id,
            history.eviction_returns,
            self._most,
            "evicted again from",
            "came back to a node to be evicted there",
        )


class NoPreemptionLoop(LimitedCheck):
    """Preemption comes to an end: nothing in it repeats more often than allowed (``checks: loops: {preemptions}``).

    Three things are counted, each without its first time: two owners preempt each other in turn; one line preempts
    another (also one-sided, when the preemptor loses the room that it made and preempts the victim's successor);
    a line is preempted on one node, by whomever.
    """

    id: ClassVar[str] = "no-preemption-loop"
    detector: ClassVar[bool] = True

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._most = (
            limits.max_preemption_returns if limits.max_preemption_returns is not None else MAX_PREEMPTION_RETURNS
        )

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return limits.max_preemption_returns is not None

    def result(self, history: History) -> Result:
        if not history.counts["scheduling_attempts"]:
            return Result(self.id, None, "no pod had to be scheduled")
        if not history.victims:
            return Result(self.id, True, "nobody was preempted")
        how, nobody = "preempted in turn by", "preempted what had preempted it"
        mutual = _judged(self.id, history.preemption_returns, self._most, how, nobody)
        findings = [] if mutual.holds else [mutual.detail]
        pairs, places = _repeats(history)
        found = [repeat for repeat in pairs if repeat.times > self._most]
        told = {repeat.line for repeat in found}
        found += [repeat for repeat in places if repeat.times > self._most and repeat.line not in told]
        findings += [str(repeat) for repeat in sorted(found, key=lambda repeat: -repeat.times)]
        if findings:
            return Result(self.id, False, several(findings))
        most = max((repeat.times for repeat in (*pairs, *places)), default=0)
        counts = (
            f"{counted(len(history.victims), 'preemption')}, {counted(history.counts['preemption_returns'], 'return')}"
        )
        return Result(self.id, True, f"{counts}; at most {counted(most, 'repetition')} for one line of pods")


@dataclass(slots=True)
class _Repeat:
    """What happened to a line of pods again."""

    line: str
    """The first pod of the line, ``namespace/name``."""
    what: str
    times: int = -1
    """Without the first time."""
    last_ns: int = 0

    def __str__(self) -> str:
        again = f"{self.what} {counted(self.times, 'more time')}, the last at {seconds(self.last_ns)}"
        return f"{self.line}, with the pods that took its place, was {again}"


def _repeats(history: History) -> tuple[list[_Repeat], list[_Repeat]]:
    """By pair of preemptor and victim, and by victim and node."""
    first = lineages.founders(history)
    pairs: dict[tuple[str, str], _Repeat] = {}
    places: dict[tuple[str, str], _Repeat] = {}
    for time_ns, victim_uid, preemptor_uid in history.victims:
        victim, preemptor = first.get(victim_uid), first.get(preemptor_uid)
        if victim is None:
            continue
        node = history.pods[victim_uid].node
        if node:
            place = places.setdefault((victim.uid, node), _Repeat(victim.key, f"preempted on {node}"))
            place.times, place.last_ns = place.times + 1, time_ns
        if preemptor is not None:
            what = f"preempted for {preemptor.key} or its successors"
            pair = pairs.setdefault((preemptor.uid, victim.uid), _Repeat(victim.key, what))
            pair.times, pair.last_ns = pair.times + 1, time_ns
    return list(pairs.values()), list(places.values())


def _judged(check: str, found: list[Return], most: int, how: str, nobody: str) -> Result:
    worst: dict[tuple[str, str], Return] = {(one.who, one.where): one for one in found}
    findings = [
        f"{one.who} was {how} {one.where} {counted(one.times, 'time')}, the last at {seconds(one.time_ns)}"
        for one in sorted(worst.values(), key=lambda one: -one.times)
        if one.times > most
    ]
    if findings:
        return Result(check, False, several(findings))
    return Result(check, True, counted(len(found), "return") if found else f"nobody {nobody}")
