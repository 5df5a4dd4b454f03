"""Objects as the store holds them, parsed once for all who read a run.

Every change of a pod is looked at by the history and by several checks, one after the other. What they get is one
message for all of them: it may not be changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from kemu.emulated.objects import resources
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

KEPT = 1024
"""Values. The next reader of the same change comes soon."""


@lru_cache(KEPT)
def pod(value: bytes) -> core_v1_pb2.Pod:
    return core_v1_pb2.Pod.FromString(value)


@lru_cache(KEPT)
def node(value: bytes) -> core_v1_pb2.Node:
    return core_v1_pb2.Node.FromString(value)


@lru_cache(KEPT)
def _other(resource: str, value: bytes) -> KubernetesObject:
    return resources.BY_PLURAL[resource].message.FromString(value)


def parser(resource: str) -> Callable[[bytes], Any]:
    """Parser of the objects of a resource, by its plural."""
    known: dict[str, Callable[[bytes], Any]] = {"pods": pod, "nodes": node}
    return known.get(resource) or partial(_other, resource)
