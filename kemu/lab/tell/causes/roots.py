"""What causes consist of: roots, the chain from each to what went wrong, and what a run without it says.

Role: what ``kemu explain``, the head of ``kemu story`` and the first screen of a report show; :mod:`finding` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_ROOTS = 5

ROLLOUT, ACTION, FAULT, CONFIGURATION, LOAD = "rollout", "action", "fault", "configuration", "load"
"""Kinds of roots: the template of a workload was changed or came; something else that a client did; a fault, also of a
machine; what stood as it is since the start; pods that keep coming from a workload of the scenario."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chain: things of one kind, of which each followed from those of the link before."""

    kind: str
    """What happened: ``pressure evicted waiting oomKilled unready rejected refused preempted …``"""
    what: str
    """Whole, with its count and unit: ``46 nodes run short of memory``."""
    count: int
    unit: str
    """``pods``, ``nodes``, ``requests``, ``containers``; in the singular where the count is 1."""
    first_ns: int
    last_ns: int
    names: tuple[str, ...] = ()
    """Of pods or nodes, the first ones."""

    def to_json(self) -> dict[str, Any]:
        """Times are seconds."""
        return {
            "kind": self.kind,
            "what": self.what,
            "count": self.count,
            "unit": self.unit,
            "first_s": self.first_ns / 1e9,
            "last_s": self.last_ns / 1e9,
            "names": list(self.names),
        }


@dataclass(frozen=True, slots=True)
class Effect:
    """One number, in this run and in that without the root."""

    what: str
    """``pods evicted``"""
    unit: str
    """``pods``, ``s`` …"""
    before: float
    """With the root: in this run."""
    after: float
    """Without it."""

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "unit": self.unit, "with": self.before, "without": self.after}


@dataclass(frozen=True, slots=True)
class Check:
    """What the same run without the root says."""

    without: str
    """What it lacks, in words: ``the event at 300 s``."""
    holds: bool | None
    """True: most of what the root should explain is gone without it. None: not known, see ``why``."""
    effects: tuple[Effect, ...] = ()
    """Those that differ, the largest first."""
    why: str = ""
    """Why it is not known: such a root cannot be taken away, there was no time."""
    instead: str = ""
    """What it has in place of what it lacks, in words: ``Deployment web with the template that it had before``; empty:
    nothing."""

    def to_json(self) -> dict[str, Any]:
        return {
            "without": self.without,
            "holds": self.holds,
            "effects": [one.to_json() for one in self.effects],
            "why": self.why,
            "instead": self.instead,
        }


@dataclass(frozen=True, slots=True)
class Root:
    """Why things went wrong: something that a client did, a fault, a configuration."""

    kind: str
    """One of those above."""
    name: str
    """``Deployment web``, ``ResourceQuota team/quota``, the id of a fault: what it is about."""
    what: str
    """``rollout of DaemonSet log-agent``: a phrase, without its time."""
    at_ns: int
    """When; 0: it stands so since the start."""
    chain: tuple[Link, ...]
    """From what followed at once to the symptoms."""
    share: float
    """How much of what went wrong it explains, 0 to 1. Shares of all roots of a run sum up to at most 1."""
    detail: str = ""
    """What of it matters: ``memory: uses up to 1.2 GiB, requests 64 MiB``; empty: nothing to add."""
    event: int | None = None
    """The place of its event in the scenario's ``events``, from 0; None: it is none of them."""
    events: tuple[int, ...] = ()
    """The places of all of its events."""
    fault: str = ""
    """The id of the fault, if it is one; of several machines that were lost at once, of the first."""
    also: tuple[str, ...] = ()
    """The ids of the others."""
    check: Check | None = None
    """None: not asked for."""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "what": self.what,
            "detail": self.detail,
            "at_s": self.at_ns / 1e9,
            "share": round(self.share, 4),
            "chain": [one.to_json() for one in self.chain],
            "event": self.event,
            "events": list(self.events),
            "fault": self.fault or None,
            "faults": [self.fault, *self.also] if self.fault else [],
            "check": None if self.check is None else self.check.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Causes:
    """Why a run went wrong, the weightiest root first."""

    roots: tuple[Root, ...]
    """At most :data:`MOST_ROOTS`; none where nothing went wrong."""
    symptoms: tuple[Link, ...]
    """All that went wrong, by kind, explained or not; the weightiest first."""
    unexplained: float = 0.0
    """How much of it no root explains, 0 to 1."""
    end_ns: int = 0
    """When the run ended, or its log does."""
    total: float = 0.0
    """How much went wrong: minutes that pods did not run which should; what is over in an instant counts as some."""

    def to_json(self) -> dict[str, Any]:
        return {
            "roots": [one.to_json() for one in self.roots],
            "symptoms": [one.to_json() for one in self.symptoms],
            "unexplained": round(self.unexplained, 4),
            "end_s": self.end_ns / 1e9,
            "total": round(self.total, 4),
        }
