"""What the defaults of several kinds have in common."""

from __future__ import annotations

from typing import Any

from kemu.messages.k8s import meta_v1_pb2


def default_replicas(spec: Any) -> None:
    if not spec.HasField("replicas"):
        spec.replicas = 1


def set_int_or_string(target: meta_v1_pb2.IntOrString, value: int | str) -> None:
    if isinstance(value, int):
        target.type, target.intVal = 0, value
    else:
        target.type, target.strVal = 1, value


def prepare_status(obj: Any) -> None:
    """A kind with a spec that users write and a status that controllers write."""
    obj.metadata.generation = 1
    obj.ClearField("status")


def prepare_generation(obj: Any) -> None:
    obj.metadata.generation = 1
