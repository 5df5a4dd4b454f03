"""Standing heartbeats: a healthy kubelet states when it will renew its lease and report its status, and sends nothing.

The times are a pure function of the statement, so readers know them without a message: the API server, which shows
leases and conditions as the heartbeats would have left them (:func:`show`), and the node lifecycle controller. A
kubelet that sends its heartbeats sends them at the same times, so both modes show the same.

A statement is the annotation :data:`ANNOTATION` of a Lease (its renewals) or of a Node (the reports of its unchanged
status): a JSON object with the fields of :class:`Statement`, all in Unix nanoseconds. The two random parts of each pair
of renewals add up to the whole jitter. So each pause has the distribution of ``wait.JitterUntil``, and the time of any
renewal is computed directly, without those before it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kemu.emulated.objects import meta
from kemu.messages.k8s import coordination_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

ANNOTATION = "kemu.dev/standing-heartbeats"
CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
"""The conditions of a Node that its kubelet reports."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mixed(number: int) -> int:
    """64 pseudo-random bits (the finaliser of SplitMix64)."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A repeated action: its first time, its interval, and the largest extra length of a pause."""

    first: int
    every: int
    jitter: int = 0
    seed: int = 0

    def time(self, number: int) -> int:
        """The time of the heartbeat with that number, from 0."""
        pair, is_second = divmod(number, 2)
        begin = self.first + pair * (2 * self.every + self.jitter)
        if not is_second:
            return begin
        return begin + self.every + (_mixed((self.seed + pair * _GOLDEN) & _MASK) * self.jitter >> 64)

    def last_before(self, when: int) -> int:
        """The number of the last heartbeat before ``when``; -1: there was none."""
        if when <= self.first:
            return -1
        number = 2 * ((when - 1 - self.first) // (2 * self.every + self.jitter))
        return number + 1 if self.time(number + 1) < when else number

    def next_from(self, when: int) -> int:
        """The time of the first heartbeat at ``when`` or later."""
        return self.time(self.last_before(when) + 1)


@dataclass(frozen=True, slots=True)
class Statement:
    """``until``: from then on heartbeats are sent; None: never. ``arrives``: how long a heartbeat takes to reach the
    watch cache of the API server."""

    schedule: Schedule
    until: int | None
    arrives: int

    def last_seen(self, now: int, later: int = 0) -> int:
        """The time of the last heartbeat known at ``now`` to a reader whose news are ``later`` by so much; 0: none."""
        end = now - self.arrives - later + 1
        if self.until is not None and self.until < end:
            end = self.until
        number = self.schedule.last_before(end)
        return self.schedule.time(number) if number >= 0 else 0

    def encode(self) -> str:
        """The annotation."""
        one = self.schedule
        until = "null" if self.until is None else self.until
        return (
            f'{{"first": {one.first}, "every": {one.every}, "jitter": {one.jitter}, "seed": {one.seed}, '
            f'"until": {until}, "arrives": {self.arrives}}}'
        )


@lru_cache(1 << 15)
def _decoded(text: str) -> Statement | None:
    try:
        data = json.loads(text)
        until, arrives = data.pop("until"), data.pop("arrives")
        schedule = Schedule(**data)
        numbers = (schedule.first, schedule.every, schedule.jitter, schedule.seed, arrives)
        if all(type(number) is int for number in numbers) and type(until) in (int, type(None)) and schedule.every > 0:
            return Statement(schedule, until, arrives)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return None


def stated(obj: KubernetesObject) -> Statement | None:
    """The statement of an object. Text that cannot be read counts as none."""
    text = obj.metadata.annotations.get(ANNOTATION)
    return _decoded(text) if text else None


def state(obj: KubernetesObject, statement: Statement | None) -> None:
    """Write a statement into an object; None removes it."""
    if statement is not None:
        obj.metadata.annotations[ANNOTATION] = statement.encode()
    elif ANNOTATION in obj.metadata.annotations:
        del obj.metadata.annotations[ANNOTATION]


def renewed_ns(lease: coordination_v1_pb2.Lease, now: int, later: int = 0) -> int | None:
    """When a lease was last renewed, as known at ``now``; None: unknown."""
    renew_time = lease.spec.renewTime
    written = meta.unix_ns(renew_time) if lease.spec.HasField("renewTime") else None
    statement = stated(lease)
    if statement is None:
        return written
    seen = statement.last_seen(now, later)
    return max(written or 0, seen - seen % 1000) or None


def reported_ns(node: core_v1_pb2.Node, written: int, now: int, later: int = 0) -> int:
    """When a node last reported its status. ``written``: the time in the condition."""
    statement = stated(node)
    if statement is None:
        return written
    seen = statement.last_seen(now, later)
    return max(written, seen - seen % meta.SECOND_NS)


def report(node: core_v1_pb2.Node, seen: int) -> None:
    """Change a Node as its report of this time would have changed it."""
    for condition in node.status.conditions[:]:
        if condition.type in CONDITIONS:
            time = condition.lastHeartbeatTime
            meta.set_time(time, max(meta.unix_ns(time), seen))


PLURALS = ("leases", "nodes")
"""Kinds of the objects that may state heartbeats."""


def show(message: type[Any], wire: bytes, now: int) -> bytes:
    """A serialised Lease or Node, changed as its heartbeats up to ``now`` would have changed it."""
    if MARK not in wire:
        return wire
    obj = message.FromString(wire)
    if message is core_v1_pb2.Node:
        report(obj, reported_ns(obj, 0, now))
    else:
        renewed = renewed_ns(obj, now)
        if renewed is not None:
            meta.set_time(obj.spec.renewTime, renewed)
    shown: bytes = obj.SerializeToString(deterministic=True)
    return shown


MARK = ANNOTATION.encode()
"""What the bytes of an object that states its heartbeats contain."""
