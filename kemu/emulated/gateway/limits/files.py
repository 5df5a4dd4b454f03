"""File descriptors: each connection takes one."""

from __future__ import annotations

import resource

SPARE = 64
"""For whatever else the process opens."""


def raise_limit(wanted: int) -> int:
    """Allow this process so many open files, as far as it may. Returns how many connections that leaves room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted + SPARE:
        most = wanted + SPARE if hard == resource.RLIM_INFINITY else min(wanted + SPARE, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - SPARE)
