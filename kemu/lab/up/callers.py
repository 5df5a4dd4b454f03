"""Who makes a request from outside: so that a cluster in virtual time can say for whom it waits."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from kemu.emulated.gateway.faults import requests


class Caller(NamedTuple):
    agent: str
    """The program: what stands before the first space of User-Agent."""
    what: str
    """What it asks for, in words: ``patch configmaps default/a``."""


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""The caller of the request that is being served."""


def of(scope: MutableMapping[str, Any]) -> Caller:
    """The caller of a request, as ASGI has it."""
    asked = requests.of(scope)
    if not asked.resource:
        return Caller(asked.agent or "a client without a User-Agent", f"{asked.verb} {scope['path']}")
    name = "/".join(part for part in (asked.namespace, asked.name) if part)
    return Caller(asked.agent or "a client without a User-Agent", f"{asked.verb} {asked.resource} {name}".rstrip())
