"""Quota and usage in a tree of cohorts with ClusterQueues as leaves (``pkg/cache/scheduler/resource_node.go``).

Amounts are integers by flavor and resource, as ``default/cpu``: millicores, or whole units. What a node may lend stays
with its parent; what it keeps to itself (``lendingLimit``) only it can use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Amounts = Mapping[str, int]
"""By flavor and resource."""


class Quota(NamedTuple):
    nominal: int
    borrowing_limit: int | None = None
    """None: no limit."""
    lending_limit: int | None = None


def resource_of(name: str) -> str:
    """``cpu`` of ``default/cpu``; names of resources may have a slash of their own."""
    return name.partition("/")[2]


class Share(NamedTuple):
    """How much more than its quota a node uses, for fair sharing (``DRS``)."""

    weight: float
    ratio: float
    """Of what could be lent, in thousandths, of the resource with the largest."""
    borrows: bool

    @property
    def key(self) -> tuple[bool, float]:
        """By which shares compare: those of a weight of 0 that borrow are above all others."""
        if self.weight == 0 and self.ratio != 0:
            return True, self.ratio
        return False, self.ratio / self.weight if self.ratio else 0.0


LEAST = Share(1.0, -1.0, False)


@dataclass(eq=False)
class Node:
    """A cohort, or (as :class:`kemu.emulated.queues.workloads.Queue`) a ClusterQueue."""

    name: str
    quotas: dict[str, Quota] = field(default_factory=dict)
    weight: float = 1.0
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    """Cohorts and queues."""
    subtree: dict[str, int] = field(default_factory=dict)
    """The quota of the node and of all below it that lends to it."""
    usage: dict[str, int] = field(default_factory=dict)

    # --- the tree ----------------------------------------------------------------------------------------------------

    def ancestors(self) -> Iterator[Node]:
        """From the parent to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def root(self) -> Node:
        return [self, *self.ancestors()][-1]

    def settle(self) -> None:
        """Compute ``subtree`` of all nodes from here down, without any usage."""
        self.usage = {}
        self.subtree = {name: quota.nominal for name, quota in self.quotas.items()}
        for child in self.children:
            child.settle()
            for name, amount in child.subtree.items():
                self.subtree[name] = self.subtree.get(name, 0) + amount - child.kept(name)

    # --- what there is -----------------------------------------------------------------------------------------------

    def kept(self, name: str) -> int:
        """What it does not lend (``localQuota``)."""
        quota = self.quotas.get(name)
        if quota is None or quota.lending_limit is None:
            return 0
        return max(0, self.subtree.get(name, 0) - quota.lending_limit)

    def kept_free(self, name: str) -> int:
        return max(0, self.kept(name) - self.usage.get(name, 0))

    def available(self, name: str) -> int:
        """What it may use besides, its own and borrowed; below zero if more is used than there is."""
        usage, total = self.usage.get(name, 0), self.subtree.get(name, 0)
        if self.parent is None:
            return total - usage
        above = self.parent.available(name)
        quota = self.quotas.get(name)
        if quota is not None and quota.borrowing_limit is not None:
            kept = self.kept(name)
            above = min(total - kept - max(0, usage - kept) + quota.borrowing_limit, above)
        return self.kept_free(name) + above

    def potential(self, name: str) -> int:
        """What it could use if nobody used anything."""
        if self.parent is None:
            return self.subtree.get(name, 0)
        found = self.kept(name) + self.parent.potential(name)
        quota = self.quotas.get(name)
        if quota is not None and quota.borrowing_limit is not None:
            found = min(self.subtree.get(name, 0) + quota.borrowing_limit, found)
        return found

    def is_within(self, names: Iterable[str]) -> bool:
        """Whether it uses no more than its subtree's quota of any of these."""
        return all(self.usage.get(name, 0) <= self.subtree.get(name, 0) for name in names)

    def borrows_with(self, name: str, amount: int) -> bool:
        quota = self.quotas.get(name)
        return self.usage.get(name, 0) + amount > (quota.nominal if quota else 0)

    # --- what is used ------------------------------------------------------------------------------------------------

    def add(self, amounts: Amounts) -> None:
        for name, amount in amounts.items():
            self._add(name, amount)

    def remove(self, amounts: Amounts) -> None:
        for name, amount in amounts.items():
            self._remove(name, amount)

    def _add(self, name: str, amount: int) -> None:
        free = self.kept_free(name)
        self.usage[name] = self.usage.get(name, 0) + amount
        if self.parent is not None and amount > free:
            self.parent._add(name, amount - free)

    def _remove(self, name: str, amount: int) -> None:
        lent = self.usage.get(name, 0) - self.kept(name)
        self.usage[name] = self.usage.get(name, 0) - amount
        if lent > 0 and self.parent is not None:
            self.parent._remove(name, min(amount, lent))

    # --- fair sharing ------------------------------------------------------------------------------------------------

    def share(self, more: Amounts | None = None) -> Share:
        """``more``: with these amounts besides."""
        if self.parent is None:
            return Share(self.weight, 0.0, False)
        borrowed: dict[str, int] = {}
        for name, quota in self.subtree.items():
            amount = (more or {}).get(name, 0) + self.usage.get(name, 0) - quota
            if amount > 0:
                borrowed[resource_of(name)] = borrowed.get(resource_of(name), 0) + amount
        if not borrowed:
            return Share(self.weight, 0.0, False)
        lendable: dict[str, int] = {}
        for name in self.root().subtree:
            lendable[resource_of(name)] = lendable.get(resource_of(name), 0) + self.parent.potential(name)
        ratios = [amount * 1000.0 / lendable[one] for one, amount in borrowed.items() if lendable.get(one, 0) > 0]
        return Share(self.weight, max(ratios, default=0.0), True)
