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


pod = lru_cache(KEPT)(core_v1_pb2.Pod.FromString)
node = lru_cache(KEPT)(core_v1_pb2.Node.FromString)
STATUS_TAG = b"\x1a"
"""What the status of a pod begins with in its bytes; metadata and spec stand before it."""
_DEFINITION_TAGS = b"\x0a\x12"


@lru_cache(KEPT)
def _other(resource: str, value: bytes) -> KubernetesObject:
    return resources.MESSAGES[resource].FromString(value)


def parser(resource: str) -> Callable[[bytes], Any]:
    """Parser of the objects of a resource, by its plural."""
    known: dict[str, Callable[[bytes], Any]] = {"pods": pod, "nodes": node}
    return known.get(resource) or partial(_other, resource)


def status_at(value: bytes) -> int:
    """Where the status begins in the bytes of a pod; 0: there is none, or something else stands before it."""
    at = 0
    while at < len(value):
        tag = value[at : at + 1]
        if tag == STATUS_TAG:
            return at
        if tag not in _DEFINITION_TAGS:
            return 0
        at += 1
        size = shift = 0
        while value[at] & 0x80:
            size |= (value[at] & 0x7F) << shift
            shift += 7
            at += 1
        size |= value[at] << shift
        at += 1 + size
    return 0
