"""Requests with ``dryRun: All``: everything happens but the write, and the answer is what would have been.

As in Kubernetes the storage pretends (``registry.DryRunnableStorage``), so that defaults, admission, validation and
preconditions are those of a real request. Admission plugins that write something of their own look at :data:`ACTIVE`.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

ACTIVE: ContextVar[bool] = ContextVar("dry_run", default=False)
"""Whether the request that is being carried out is one."""


class Pretending:
    """For the requests within: whether they are dry."""

    __slots__ = ("_is_dry", "_was")

    _was: Token[bool]

    def __init__(self, is_dry: bool) -> None:
        self._is_dry = is_dry

    def __enter__(self) -> None:
        self._was = ACTIVE.set(self._is_dry)

    def __exit__(self, *_: object) -> None:
        ACTIVE.reset(self._was)
