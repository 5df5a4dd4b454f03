"""Which field of a message stands for a field of a Go struct."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from kemu.emulated.objects.facts.go_types import Field

TEMPLATE = "core.v1.PodTemplateSpec"
QUANTITY, INT_OR_STRING, TIME = "api.resource.Quantity", "util.intstr.IntOrString", "meta.v1.Time"


@lru_cache(4096)
def member(descriptor: Descriptor, struct: str, field: Field) -> str:
    """The name of the field in the message that stands for a struct; empty: kemu's message has none."""
    if field.json:
        return field.json if field.json in descriptor.fields_by_name else ""
    wanted = field.type.rpartition(".")[2]
    messages = ((one.name, one.message_type) for one in descriptor.fields)
    return next((name for name, message in messages if message is not None and message.name == wanted), "")


def read(message: Message | None, struct: str, field: Field) -> Any:
    """The value of a field: a message, scalar, list or map; None: it is not set, or empty."""
    if message is None:
        return None
    name = member(message.DESCRIPTOR, struct, field)
    if not name:
        return None
    described = message.DESCRIPTOR.fields_by_name[name]
    if described.is_repeated:
        return getattr(message, name) or None
    return getattr(message, name) if message.HasField(name) else None
