"""Room for recursion over trees whose depth the parser bounds.

Python's frames lie on the heap, so that its limit of recursion only guards against endless recursion; a tree of the
depth that Kubernetes admits needs more than the default. The limit is raised while such a tree is visited, never
lowered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_DEEPEST = 60_000
_users = 0
_before = 0


@contextmanager
def room() -> Iterator[None]:
    """Room for a tree of any admitted depth; the former limit holds again when the last user has left."""
    global _users, _before
    if _users == 0:
        _before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(_before, _DEEPEST))
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        if _users == 0:
            sys.setrecursionlimit(_before)
