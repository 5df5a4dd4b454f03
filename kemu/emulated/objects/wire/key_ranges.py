"""Ranges of keys in etcd's terms: a key and a range end (``clientv3.GetPrefixRangeEnd``).

An empty range end means the key alone, :data:`FROM_KEY` every key from the key on, anything else a half-open interval.
"""

from __future__ import annotations

FROM_KEY = b"\0"
"""The range end of a range without end."""


def prefix_end(prefix: bytes) -> bytes:
    """The range end that covers every key beginning with ``prefix``: its last byte below 0xff, plus one."""
    stem = prefix.rstrip(b"\xff")
    if not stem:
        return FROM_KEY
    return stem[:-1] + bytes((stem[-1] + 1,))
