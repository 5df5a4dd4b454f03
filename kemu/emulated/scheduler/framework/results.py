"""What the steps of an attempt hand on: preemption candidates and the result of PostFilter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.experiments.searches import Effort


class Candidate(NamedTuple):
    """A node, and the pods that would have to go."""

    node: str
    victims: tuple[PodInfo, ...]
    """Most important first."""
    violations: int
    """Victims whose disruption budget would be violated."""
    preference: tuple[int, ...]
    """The smaller, the better."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter found."""

    node: str | None = None
    """Where room will be: the pod is nominated to it. "" clears the nomination, None leaves it as it is."""
    message: str = ""
    """Why there is no such node."""
    candidate: Candidate | None = None
    """The chosen node with its victims."""
    candidates: int = 0
    """How many nodes were candidates."""
    efforts: tuple[Effort, ...] = ()
    """Searches that Kubernetes does not do, which cost time of their own."""
    failed: bool = False
    """The plugin met an error, told in ``message``: no other one is asked."""
    write: Callable[[], Awaitable[str]] | None = None
    """What has to be written before the pod is requeued; it returns what went wrong."""
    before: str = ""
    """What the plugins said that were asked before; told only if there is no node after all."""


def joined(*messages: str) -> str:
    """The messages of several plugins as one."""
    return ", ".join(message for message in messages if message)
