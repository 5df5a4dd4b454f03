"""Node state in numpy columns: one array element per node, in the order in which nodes are tried.

:class:`ResourceColumns` mirrors the sums of :class:`~kemu.emulated.scheduler.cache.nodes.NodeInfo`; it is updated
before it is read, row by row, from the log of changed rows. :class:`LabelColumn` holds the values of one
label as small numbers, :class:`ChangeLog` says which rows changed. All are owned by
:class:`~kemu.emulated.scheduler.cache.cluster.Cluster`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kemu.emulated.scheduler.cache.nodes import NodeInfo

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Scalar = TypeVar("Scalar", bound=np.generic)

LOG_LIMIT = 1 << 16


class ChangeLog:
    """Rows in the order in which they changed; readers remember how far they have read."""

    __slots__ = ("_base", "end", "rows")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self._base = 0
        self.end = 0
        """How many changes there have been."""

    def append(self, row: int) -> None:
        self.rows.append(row)
        self.end += 1
        if len(self.rows) > LOG_LIMIT:
            self.shorten()

    def shorten(self) -> None:
        """Forget the older half."""
        del self.rows[: LOG_LIMIT // 2]
        self._base += LOG_LIMIT // 2

    def since(self, position: int) -> list[int] | None:
        """The distinct rows that changed after ``position``; None: too long ago to tell."""
        if position < self._base:
            return None
        changed = self.rows[position - self._base :]
        return changed if len(changed) < 2 else list(dict.fromkeys(changed))


def zeros(capacity: int) -> IntArray:
    """A column that cannot be written."""
    column = np.zeros(capacity, dtype=np.int64)
    column.flags.writeable = False
    return column


def pair(table: IntArray, rows: IntArray | None, every: int) -> IntArray:
    """The first two lines of a table, of these rows or of the first ``every``."""
    return table[:2, :every] if rows is None else table[:2].take(rows, axis=1)


def grown(array: npt.NDArray[Scalar], capacity: int) -> npt.NDArray[Scalar]:
    """A copy with room for ``capacity`` rows (the last axis), new rows 0."""
    wider = np.zeros((*array.shape[:-1], capacity), dtype=array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider


def permuted(array: npt.NDArray[Scalar], sources: IntArray) -> npt.NDArray[Scalar]:
    """Rows in a new order: row ``i`` comes from ``sources[i]``, or is 0 where that is -1. Keeps the capacity."""
    moved = np.zeros_like(array)
    known = np.flatnonzero(sources >= 0)
    moved[..., known] = array[..., sources[known]]
    return moved


class ResourceColumns:
    """Allocatable and requested amounts. Read it through :meth:`Cluster.resources`, which brings it up to date."""

    __slots__ = ("allocatable", "allowed_pods", "non_zero", "pods", "requested", "seen")

    def __init__(self, resources: int, capacity: int) -> None:
        self.allocatable: IntArray = np.zeros((resources, capacity), dtype=np.int64)
        self.requested: IntArray = np.zeros((resources, capacity), dtype=np.int64)
        self.non_zero: IntArray = np.zeros((2, capacity), dtype=np.int64)
        """cpu and memory as scores count them."""
        self.pods: IntArray = np.zeros(capacity, dtype=np.int64)
        self.allowed_pods: IntArray = np.zeros(capacity, dtype=np.int64)
        self.seen = 0

    def write(self, node: NodeInfo) -> None:
        row = node.row
        self.allocatable[:, row] = node.allocatable
        self.requested[:, row] = node.requested
        self.non_zero[0, row] = node.non_zero_cpu
        self.non_zero[1, row] = node.non_zero_memory
        self.pods[row] = len(node.pods)
        self.allowed_pods[row] = node.allowed_pods

    def permute(self, sources: IntArray) -> None:
        """As :func:`permuted`."""
        self.allocatable = permuted(self.allocatable, sources)
        self.requested = permuted(self.requested, sources)
        self.non_zero = permuted(self.non_zero, sources)
        self.pods = permuted(self.pods, sources)
        self.allowed_pods = permuted(self.allowed_pods, sources)

    def write_all(self, nodes: Sequence[NodeInfo]) -> None:
        n = len(nodes)
        if n == 0:
            return
        self.allocatable[:, :n] = np.array([node.allocatable for node in nodes], dtype=np.int64).T
        self.requested[:, :n] = np.array([node.requested for node in nodes], dtype=np.int64).T
        self.non_zero[0, :n] = [node.non_zero_cpu for node in nodes]
        self.non_zero[1, :n] = [node.non_zero_memory for node in nodes]
        self.pods[:n] = [len(node.pods) for node in nodes]
        self.allowed_pods[:n] = [node.allowed_pods for node in nodes]


class LabelColumn:
    """The values of one label, numbered from 1 in order of their first appearance; 0 stands for "no such label"."""

    __slots__ = ("ids", "key", "used", "values", "version")

    def __init__(self, key: str, capacity: int, number: int = 0) -> None:
        """``number``: how many columns there were before, so that no version comes twice."""
        self.key = key
        self.ids: IntArray = np.zeros(capacity, dtype=np.int64)
        self.values: dict[str, int] = {}
        self.version = number << 40
        self.used = 0

    @property
    def size(self) -> int:
        """One more than the largest number in use."""
        return len(self.values) + 1

    def number(self, labels: Mapping[str, str]) -> int:
        """The number of the value of these labels; a new value gets a new number."""
        value = labels.get(self.key)
        if value is None:
            return 0
        number = self.values.get(value)
        if number is None:
            number = self.values[value] = len(self.values) + 1
        return number

    def write(self, row: int, labels: Mapping[str, str]) -> None:
        self.ids[row] = self.number(labels)
        self.version += 1

    def renumber(self, nodes: Iterable[NodeInfo]) -> None:
        """Forget the values that no node has any more."""
        self.values.clear()
        for node in nodes:
            self.write(node.row, node.labels)
