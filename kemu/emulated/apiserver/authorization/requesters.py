"""The node whose kubelet made the request that is being carried out: what admission has to know of the user."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class Requester(NamedTuple):
    node: str
    is_kubelet: bool
    """False: a caller acts as that node."""


NOBODY: Requester | None = None
NODE: ContextVar[Requester | None] = ContextVar("node", default=NOBODY)
"""None: the user is no kubelet."""
