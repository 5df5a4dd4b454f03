"""The containers of a pod, and words that the checks share (``policy/visitor.go``, ``policy/helpers.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

Container = core_v1_pb2.Container | core_v1_pb2.EphemeralContainerCommon
Metadata = meta_v1_pb2.ObjectMeta
Spec = core_v1_pb2.PodSpec

WINDOWS = "windows"


class Violation(NamedTuple):
    reason: str
    detail: str


def containers(spec: Spec) -> Iterator[Container]:
    yield from spec.initContainers
    yield from spec.containers
    for one in spec.ephemeralContainers:
        yield one.ephemeralContainerCommon


def quoted(items: Iterable[str]) -> str:
    return ", ".join([f'"{one}"' for one in items])


def number(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def named(names: Sequence[str]) -> str:
    """``containers "a", "b"``"""
    return f"{number('container', 'containers', len(names))} {quoted(names)}"


def setters(of_pod: bool, names: Sequence[str]) -> str:
    """Who sets something: the pod, containers, or both; "": nobody."""
    return " and ".join([*(["pod"] if of_pod else ()), *([named(names)] if names else ())])


def has_own_users(spec: Spec) -> bool:
    """Whether a pod has a user namespace of its own, for which later versions allow more."""
    return bool(spec.HasField("hostUsers") and not spec.hostUsers)


def is_windows(spec: Spec) -> bool:
    return bool(spec.os.name == WINDOWS)
