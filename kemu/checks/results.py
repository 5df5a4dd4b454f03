"""The result of a check, and the interface that all checks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from kemu.checks.history import History


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one check."""

    id: str
    holds: bool | None
    """None: nothing in the run could be judged."""
    detail: str
    """What was examined, or what is wrong: who, when, where."""


class Check(Protocol):
    """Sees the events whose kinds it names, in order, then says its result."""

    id: ClassVar[str]
    """Reads like a sentence."""
    kinds: ClassVar[tuple[str, ...]]

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None: ...

    def result(self, history: History) -> Result: ...


def seconds(time_ns: int) -> str:
    """For people: ``12.345 s``."""
    return f"{time_ns / 1e9:.3f} s"


def counted(number: int, one: str, many: str = "") -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def several(findings: list[str], limit: int = 3) -> str:
    """The first few, and how many more there are."""
    more = len(findings) - limit
    return "; ".join(findings[:limit]) + (f"; and {more} more" if more > 0 else "")
