"""Functions of users that answer for containers: ``async def exec(session)``, ``attach`` and ``port_forward``.

Role: :mod:`kemu.emulated.gateway.verbs.sessions.requests` looks them up. They are named by who starts the cluster
alone, never by an object in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kemu.emulated.objects import selectors
from kemu.emulated.objects.pods.container_patterns import Patterns
from kemu.messages.k8s import core_v1_pb2

EXEC, ATTACH, PORT_FORWARD = "exec", "attach", "portforward"


class Session(Protocol):
    """What a handler is given."""

    pod: Mapping[str, Any]
    """The Pod, as JSON has it."""
    container: str
    command: tuple[str, ...]
    """Of exec."""
    tty: bool
    port: int
    """Of port-forward."""
    size: tuple[int, int] | None
    """Columns and rows of the client's terminal, as far as it has said."""

    async def read(self) -> bytes:
        """What the client sends; empty: it sends nothing more."""
        ...

    async def write(self, data: bytes | str) -> None:
        """To its standard output, or to its port. Raises ConnectionResetError where it has gone."""
        ...

    async def write_error(self, data: bytes | str) -> None:
        """To its standard error."""
        ...


Handler = Callable[[Any], Awaitable[int | None]]
"""Takes a :class:`Session`; of exec and attach it returns the exit code (None: 0)."""


@dataclass(frozen=True)
class Rule:
    """Which containers a handler answers for."""

    namespace: str
    """Empty: any."""
    selector: selectors.LabelSelector
    patterns: Patterns
    by_kind: Mapping[str, Handler]

    def matches(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> bool:
        metadata = pod.metadata
        return (
            self.namespace in ("", metadata.namespace)
            and self.selector.matches(metadata.labels)
            and self.patterns.match_pod(pod)
            and self.patterns.match_container(container)
        )


@dataclass(frozen=True)
class Handlers:
    rules: tuple[Rule, ...] = ()
    for_all: Mapping[str, Handler] = field(default_factory=dict)

    def find(self, kind: str, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> Handler | None:
        """The first that answers for that container."""
        for rule in self.rules:
            if kind in rule.by_kind and rule.matches(pod, container):
                return rule.by_kind[kind]
        return self.for_all.get(kind)


def checked(found: object, name: str) -> Handler:
    """Raises ValueError for what is no coroutine function."""
    if not inspect.iscoroutinefunction(found):
        raise ValueError(f"{name} must be a function that begins with async def")
    return found
