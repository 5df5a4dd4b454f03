"""Who takes which events: a method's annotation of its ``event`` says it.

def _on_victim(self, time_ns: int, actor: str, event: VictimDeleted | RescheduledVictimDeleted) -> None:
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Hashable
from typing import Any

from kemu.runtime.runlog.events.declared import BY_KIND, Event

PREFIX = "_on_"
"""What the names of methods that take events begin with."""


@functools.cache
def kinds(function: Callable[..., object]) -> tuple[str, ...]:
    """The kinds of the events that a function takes; of a class that several share, those of all of them."""
    annotation = typing.get_type_hints(function).get("event")
    found: dict[str, None] = {}
    for one in typing.get_args(annotation) or (annotation,):
        if isinstance(one, type) and issubclass(one, Event):
            several = (kind for kind, declared in BY_KIND.items() if issubclass(declared, one))
            found |= dict.fromkeys([one.KIND] if one.KIND else several)
    return tuple(found)


@functools.cache
def names(listener: type) -> dict[str, str]:
    """The names of its methods ``_on_…``, by the kinds of events that they take."""
    methods = {name for parent in listener.__mro__ for name in vars(parent) if name.startswith(PREFIX)}
    return {kind: name for name in sorted(methods) for kind in kinds(getattr(listener, name))}


def kinds_of(listener: type) -> tuple[str, ...]:
    """The kinds of the events that its methods ``_on_…`` take."""
    return tuple(names(listener))


def of(listener: Hashable) -> dict[str, Any]:
    """Its methods ``_on_…``, by the kinds of events that they take."""
    return {kind: getattr(listener, name) for kind, name in names(type(listener)).items()}
