"""Faults of the disks of real files: begins each kind, and ends it.

Neighbours: ``files`` are the disks; the runtime tells of faults as it does the actors themselves (``faults.handlers``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Protocol

from kemu.runtime import distributions
from kemu.runtime.env import Clock
from kemu.runtime.faults.disks import MID_WRITE, DiskFaults, rotten, without_sectors
from kemu.runtime.faults.handlers import Assignment, End, Handler
from kemu.runtime.host.files import ActorDisk


class Holder(Protocol):
    """The Env of the actor whose disk it is."""

    name: str

    @property
    def clock(self) -> Clock: ...

    def step(self, name: str) -> None: ...

    def armed(self, step: str) -> bool: ...

    def on_fault(self, what: str, handler: Handler) -> None: ...


def attach(holder: Holder, disk: ActorDisk) -> None:
    """Let faults reach the disk."""
    disk.sleep = holder.clock.sleep

    def tear() -> NoReturn:
        holder.step(MID_WRITE)
        raise AssertionError("not armed")

    hits: dict[str, Callable[[str], None]] = {}
    faults = DiskFaults(lambda fault: hits[fault](""), tear, lambda: holder.armed(MID_WRITE))

    def lasting(add: Callable[[DiskFaults, Assignment], None]) -> Handler:
        def begin(assignment: Assignment) -> End:
            hits[assignment.id] = assignment.hit
            add(faults, assignment)
            disk.faults = faults

            def end() -> None:
                faults.end(assignment.id)
                disk.faults = faults if faults.any else None

            return end

        return begin

    def slow(faults: DiskFaults, assignment: Assignment) -> None:
        time = distributions.parse(assignment.parameters["fsync"])
        faults.slow[assignment.id] = lambda: time.draw(assignment.random)

    def bit_rot(assignment: Assignment) -> None:
        if disk.damage(assignment.random, lambda content: rotten(content, assignment.random)):
            assignment.hit("")

    def lost_sectors(assignment: Assignment) -> None:
        count = round(assignment.parameters["sectors"])
        if disk.damage(assignment.random, lambda content: without_sectors(content, count, assignment.random)):
            assignment.hit("")

    holder.on_fault("diskFull", lasting(lambda faults, one: faults.full.update({one.id: None})))
    holder.on_fault("failingFsync", lasting(lambda faults, one: faults.failing.update({one.id: None})))
    holder.on_fault("slowDisk", lasting(slow))
    holder.on_fault("tornWrite", lasting(lambda faults, one: faults.torn.update({one.id: one.random})))
    holder.on_fault("bitRot", bit_rot)
    holder.on_fault("lostSectors", lost_sectors)
