"""Faults of the simulation's disks: begins each kind, and ends it.

Neighbours: ``disks`` are the disks, ``faults`` knows which faults are in force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from kemu.runtime import distributions, random_streams
from kemu.runtime.faults.disks import MID_WRITE, DiskFaults
from kemu.runtime.faults.hits import Hits
from kemu.runtime.rpc.network_faults import Begin, End
from kemu.runtime.sim.disks import MemoryDisk


class World(Protocol):
    """What is needed of the simulation."""

    streams: random_streams.Streams
    hits: Hits

    def disk_of(self, name: str) -> MemoryDisk: ...

    def put_disk(self, name: str, disk: MemoryDisk) -> None: ...

    def crash_now(self, name: str, step: str) -> NoReturn: ...


class DiskFaultKinds:
    def __init__(self, world: World) -> None:
        self._world = world
        self.begins: dict[str, Begin] = {
            "diskFull": self._lasting(lambda faults, fault, _: faults.full.update({fault: None})),
            "failingFsync": self._lasting(lambda faults, fault, _: faults.failing.update({fault: None})),
            "slowDisk": self._lasting(self._slow),
            "tornWrite": self._lasting(self._tear),
            "lostRenames": self._lasting(lambda faults, fault, _: faults.renames.update({fault: None})),
            "bitRot": self._bit_rot,
            "lostSectors": self._lost_sectors,
            "restore": self._restore,
        }
        """By the name of the kind."""

    def _lasting(self, add: Callable[[DiskFaults, str, Mapping[str, Any]], None]) -> Begin:
        def begin(fault: str, parameters: Mapping[str, Any]) -> End:
            names = list(parameters["actor"])
            for name in names:
                add(self._faults_of(name), fault, parameters)
            return lambda: self._end(fault, names)

        return begin

    def _faults_of(self, name: str) -> DiskFaults:
        world = self._world
        disk = world.disk_of(name)
        if disk.faults is None:
            disk.faults = DiskFaults(
                lambda fault: world.hits.strike(fault, name), lambda: world.crash_now(name, MID_WRITE)
            )
        return disk.faults

    def _end(self, fault: str, names: list[str]) -> None:
        for name in names:
            disk = self._world.disk_of(name)
            if disk.faults is not None:
                disk.faults.end(fault)
                if not disk.faults.renames:
                    disk.settle()
                if not disk.faults.any:
                    disk.faults = None

    def _slow(self, faults: DiskFaults, fault: str, parameters: Mapping[str, Any]) -> None:
        time = distributions.parse(parameters["fsync"])
        stream = self._world.streams.stream("fault", fault)
        faults.slow[fault] = lambda: time.draw(stream)

    def _tear(self, faults: DiskFaults, fault: str, parameters: Mapping[str, Any]) -> None:
        faults.torn[fault] = self._world.streams.stream("fault", fault)

    def _bit_rot(self, fault: str, parameters: Mapping[str, Any]) -> None:
        for name in parameters["actor"]:
            stream = self._world.streams.stream("fault", fault, name)
            if self._world.disk_of(name).rot(stream):
                self._world.hits.strike(fault, name)

    def _lost_sectors(self, fault: str, parameters: Mapping[str, Any]) -> None:
        for name in parameters["actor"]:
            stream = self._world.streams.stream("fault", fault, name)
            if self._world.disk_of(name).lose_sectors(round(parameters["sectors"]), stream):
                self._world.hits.strike(fault, name)

    def _restore(self, fault: str, parameters: Mapping[str, Any]) -> End:
        """Takes a backup; the end puts it in the place of the disk of the actor, which must not be running."""
        world = self._world
        backups = {name: world.disk_of(name).backup() for name in parameters["actor"]}

        def put_back() -> None:
            for name, backup in backups.items():
                backup.faults = world.disk_of(name).faults
                world.put_disk(name, backup)
                world.hits.strike(fault, name)

        return put_back
