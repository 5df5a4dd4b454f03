"""Requests with ``dryRun: All``: everything happens but the write, and the answer is what would have been.

As in Kubernetes the storage pretends (``registry.DryRunnableStorage``), so that defaults, admission, validation and
preconditions are those of a real request. Admission plugins that write something of their own look at :data:`ACTIVE`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ACTIVE: ContextVar[bool] = ContextVar("dry_run", default=False)
"""Whether the request that is being carried out is one."""


@contextmanager
def pretending(is_dry: bool) -> Iterator[None]:
    was = ACTIVE.set(is_dry)
    try:
        yield
    finally:
        ACTIVE.reset(was)
