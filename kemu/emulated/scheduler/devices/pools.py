"""Pools: which slices offer devices to a node, and whether they are complete and make sense (``GatherPools``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.devices.inventory import Device, Slice

PoolID = tuple[str, str]
"""Driver and name."""


class Pool:
    """One pool as one node sees it."""

    __slots__ = ("counter_sets", "driver", "incomplete", "invalid", "name", "others", "slices")

    def __init__(self, driver: str, name: str) -> None:
        self.driver = driver
        self.name = name
        self.incomplete = False
        """Some slices of its generation are missing."""
        self.invalid = ""
        """Why nothing is allocated from it."""
        self.slices: list[Slice] = []
        """Slices with devices for this node, by name."""
        self.others: list[Slice] = []
        """Slices of other nodes, whose devices may have consumed counters."""
        self.counter_sets: dict[str, dict[str, int]] = {}

    @property
    def text(self) -> str:
        return f"{self.driver}/{self.name}"

    def devices(self) -> Iterable[Device]:
        for one in self.slices:
            yield from one.devices

    def all_devices(self) -> Iterable[Device]:
        yield from self.devices()
        for one in self.others:
            yield from one.devices


def gather(for_node: Iterable[Slice], node: NodeInfo, every: Sequence[Slice]) -> list[Pool]:
    """The pools for a node: by driver and name, those with binding conditions last. ``every``: all slices there are."""
    found: dict[PoolID, list[Slice]] = {}
    for one in for_node:
        if not _is_relevant(one, node):
            continue
        known = found.setdefault((one.driver, one.pool), [])
        if known and one.generation < known[0].generation:
            continue
        if known and one.generation > known[0].generation:
            known.clear()
        known.append(one)
    plain: list[Pool] = []
    with_conditions: list[Pool] = []
    for (driver, name), slices in found.items():
        pool = Pool(driver, name)
        every_of_pool: list[Slice] | None = None
        if len(slices) != slices[0].expected:
            newer, every_of_pool = _all_of(every, pool, slices[0].generation)
            if newer:
                continue
            if len(every_of_pool) != slices[0].expected:
                pool.incomplete = True
                plain.append(pool)
                continue
        _build(pool, slices, every_of_pool)
        conditional = any(device.binding_conditions for device in pool.devices())
        (with_conditions if conditional else plain).append(pool)
    plain.sort(key=_order)
    with_conditions.sort(key=_order)
    return plain + with_conditions


def _order(pool: Pool) -> PoolID:
    return pool.driver, pool.name


def _is_relevant(one: Slice, node: NodeInfo) -> bool:
    if one.counter_sets:
        return True
    if one.where.is_known:
        return one.where.matches(node)
    return one.per_device and any(device.where.matches(node) for device in one.devices)


def _all_of(every: Sequence[Slice], pool: Pool, generation: int) -> tuple[bool, list[Slice]]:
    """Whether there is a newer generation; all slices of this one."""
    found: list[Slice] = []
    for one in every:
        if one.driver != pool.driver or one.pool != pool.name:
            continue
        if one.generation > generation:
            return True, []
        if one.generation == generation:
            found.append(one)
    return False, found


def _build(pool: Pool, slices: list[Slice], every: list[Slice] | None) -> None:
    slices = sorted(slices, key=lambda one: one.name)
    with_devices = [one for one in slices if not one.counter_sets]
    sets: dict[str, dict[str, int]] = {}
    pool.invalid = _duplicate_device(with_devices) or _collect(sets, slices) or _wrong_counters(sets, slices)
    if pool.invalid:
        return
    others: list[Slice] = []
    if every is not None and len(every) != len(slices):
        known = {one.name for one in slices}
        others = [one for one in every if one.name not in known]
        pool.invalid = _wrong_counters(sets, others)
        if pool.invalid:
            return
    pool.slices, pool.others, pool.counter_sets = with_devices, others, sets


def _duplicate_device(slices: list[Slice]) -> str:
    known: set[str] = set()
    for one in slices:
        for device in one.devices:
            if device.name in known:
                return f"duplicate device name {device.name}"
            known.add(device.name)
    return ""


def _collect(sets: dict[str, dict[str, int]], slices: list[Slice]) -> str:
    for one in slices:
        for name, counters in one.counter_sets:
            if name in sets:
                return f"duplicate counter set name {name}"
            sets[name] = counters
    return ""


def _wrong_counters(sets: dict[str, dict[str, int]], slices: list[Slice]) -> str:
    for one in slices:
        for device in one.devices:
            for name, used in device.counters:
                if name not in sets:
                    return f"counter set {name} not found"
                for counter in used:
                    if counter not in sets[name]:
                        return f"counter {counter} not found in counter set {name}"
    return ""
