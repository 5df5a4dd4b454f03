"""Fingerprints: four-byte digests of nodes and of the load that their pods put on them.

Equal state gives equal fingerprints. The scheduler computes them from its cache
(:mod:`kemu.emulated.scheduler.audits`), and the check ``cache-agrees-with-store`` computes them from the objects in the
store.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

BYTES = 4
"""The size of one fingerprint in :func:`packed`."""


def of_node(
    name: str,
    labels: Mapping[str, str],
    taints: Iterable[tuple[str, str, str]],
    unschedulable: bool,
    allocatable: Mapping[str, int],
) -> int:
    """The part that the Node object alone determines. Taints are (key, value, effect); amounts of 0 do not count."""
    amounts = sorted((resource, amount) for resource, amount in allocatable.items() if amount)
    return _number((name, sorted(labels.items()), [tuple(one) for one in taints], bool(unschedulable), amounts))


def of_load(name: str, uids: Iterable[str], requested: Mapping[str, int], non_zero: tuple[int, int]) -> int:
    """The pods on a node: their UIDs, the sum of their requests, and cpu and memory as scores count them."""
    amounts = sorted((resource, amount) for resource, amount in requested.items() if amount)
    return _number((name, sorted(uids), amounts, non_zero))


def of_names(names: Iterable[str]) -> int:
    """A set of names."""
    return _number(sorted(names))


def packed(numbers: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(BYTES, "big") for number in numbers)


def _number(value: object) -> int:
    return zlib.crc32(repr(value).encode())
