"""Hashes of templates and revisions, in the letters that Kubernetes allows in generated names.

Mirrors ``ComputeHash`` of ``pkg/controller``, ``HashControllerRevision`` of ``pkg/controller/history`` and
``SafeEncodeString`` of ``apimachinery/pkg/util/rand``.
"""

from __future__ import annotations

from functools import lru_cache

from kemu.emulated.objects.templates import dumps
from kemu.messages.k8s import core_v1_pb2

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET, _PRIME, _MASK = 2166136261, 16777619, 2**32 - 1


def of_template(template: core_v1_pb2.PodTemplateSpec, collision_count: int | None = None) -> str:
    """The value of the label ``pod-template-hash``; ``collision_count`` as in the owner's status, None where it has
    none."""
    return _of_template(template.SerializeToString(deterministic=True), collision_count)


@lru_cache(4096)
def _of_template(template: bytes, collision_count: int | None) -> str:
    text = dumps.text(core_v1_pb2.PodTemplateSpec.FromString(template)).encode()
    if collision_count is not None:
        text += collision_count.to_bytes(4, "little") + bytes(4)
    return _fnv(text)


def of_text(text: str) -> str:
    """The hash in a name that is made of another one."""
    return _fnv(text.encode())


def _fnv(text: bytes) -> str:
    value = _OFFSET
    for byte in text:  # FNV-1a
        value = (value ^ byte) * _PRIME & _MASK
    return safe(value)


def of_revision(data: bytes, collision_count: int | None = None) -> str:
    """The hash in the name of a ControllerRevision with this data."""
    return _of_revision(data if collision_count is None else data + str(collision_count).encode())


@lru_cache(4096)
def _of_revision(data: bytes) -> str:
    value = _OFFSET
    for byte in data:  # FNV-1
        value = value * _PRIME & _MASK ^ byte
    return safe(value)


def safe(value: int) -> str:
    """A number in letters that form no words."""
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(value))
